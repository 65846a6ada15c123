/**
 * Packs files into a gzipped tar archive (POSIX ustar). The same files always make the same bytes: no time, no owner, and the
 * order given.
 */
import { gzipSync } from "node:zlib";

export interface TarFile {
  /** Relative, with forward slashes, at most 100 bytes. */
  readonly path: string;
  readonly content: string | Buffer;
}

const blockBytes = 512;
/** Readers expect whole records of 20 blocks. */
const recordBytes = 20 * blockBytes;
const pathBytesMax = 100;

export function packTgz(files: readonly TarFile[]): Buffer {
  const parts = files.flatMap(({ path, content }) => {
    const bytes = Buffer.from(content);
    return [headerOf(path, bytes.length), padded(bytes, blockBytes)];
  });
  // Two empty blocks end the archive.
  return gzipSync(padded(Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]), recordBytes), { level: 9 });
}

/** Numbers are octal text that ends with a zero byte. */
function headerOf(path: string, bytes: number): Buffer {
  if (Buffer.byteLength(path) > pathBytesMax) throw new Error(`Path "${path}" is too long for an archive`);
  const header = Buffer.alloc(blockBytes);
  const put = (at: number, text: string) => header.write(text, at, "utf8");
  const putOctal = (at: number, width: number, value: number) => put(at, value.toString(8).padStart(width - 1, "0"));
  put(0, path);
  putOctal(100, 8, 0o644);
  putOctal(108, 8, 0);
  putOctal(116, 8, 0);
  putOctal(124, 12, bytes);
  putOctal(136, 12, 0);
  put(156, "0");
  put(257, "ustar\0" + "00");
  // The checksum counts itself as eight spaces.
  put(148, " ".repeat(8));
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return header;
}

function padded(bytes: Buffer, unit: number): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((unit - (bytes.length % unit)) % unit)]);
}
