/**
 * Archives made byte by byte, the well-formed and the hostile alike: nothing is checked here, every field of a header can be set to
 * what no honest tool would write.
 */
import { createHash } from "node:crypto";
import { constants, deflateRawSync, gzipSync } from "node:zlib";

const blockBytes = 512;

/** Type flags as POSIX and GNU number them. */
export const flags = {
  file: "0",
  hardLink: "1",
  symbolicLink: "2",
  characterDevice: "3",
  blockDevice: "4",
  folder: "5",
  pipe: "6",
  contiguous: "7",
  pax: "x",
  paxGlobal: "g",
  gnuLongName: "L",
  gnuLongLink: "K",
  gnuSparse: "S",
  gnuVolume: "V",
  gnuMultiVolume: "M",
} as const;

export interface RawEntry {
  readonly name: string | Buffer;
  readonly flag?: string;
  readonly content?: string | Buffer;
  readonly linkName?: string;
  readonly mode?: number;
  readonly prefix?: string;
  /** Instead of the length of the content. */
  readonly size?: number;
  /** Instead of a size in octal: the whole field. */
  readonly sizeField?: Buffer;
  /** `ustar` with version, or what another tool writes there. */
  readonly magic?: string;
  /** Added to the right checksum. */
  readonly checksumOff?: number;
}

export function entry(raw: RawEntry): Buffer {
  const content = Buffer.from(raw.content ?? "");
  return Buffer.concat([headerOf(raw, content.length), filledUp(content)]);
}

export function file(name: string, content: string | Buffer = ""): Buffer {
  return entry({ name, content });
}

/** Two empty blocks. */
export const endMark = Buffer.alloc(2 * blockBytes);

export function gzip(...parts: readonly Buffer[]): Buffer {
  return gzipSync(Buffer.concat(parts));
}

export function tgz(...entries: readonly Buffer[]): Buffer {
  return gzip(...entries, endMark);
}

/** A pax header; `flag` may make it a global one. */
export function pax(records: Readonly<Record<string, string>>, flag: string = flags.pax): Buffer {
  const content = Object.entries(records).map(([key, value]) => paxRecord(key, value));
  return entry({ name: "PaxHeader/x", flag, content: Buffer.concat(content) });
}

export function gnuLongName(name: string): Buffer {
  return entry({ name: "././@LongLink", flag: flags.gnuLongName, content: `${name}\0`, magic: "ustar  \0" });
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * A gzip stream of so many MiB of zeros behind `head`, made in no time: the same compressed MiB again and again. Its checksum is wrong,
 * which nobody finds out who stops in time.
 */
export function gzipBomb(head: Buffer, mebibytes: number): Buffer {
  const options = { finishFlush: constants.Z_FULL_FLUSH, level: 9 };
  const mebibyte = deflateRawSync(Buffer.alloc(1024 * 1024), options);
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]);
  const pieces = Array.from({ length: mebibytes }, () => mebibyte);
  const end = Buffer.concat([deflateRawSync(""), Buffer.alloc(8)]);
  return Buffer.concat([header, deflateRawSync(head, options), ...pieces, end]);
}

/** A number as GNU writes those that octal has no room for; negative ones as two's complement. */
export function base256(value: bigint, width = 12): Buffer {
  const field = Buffer.alloc(width);
  let rest = value;
  for (let at = width - 1; at > 0; at -= 1) {
    field[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  field[0] = value < 0n ? 0xff : 0x80;
  return field;
}

function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (String(length).length > String(bytes).length) length = bytes + String(length).length;
  return Buffer.from(`${length}${rest}`);
}

function headerOf(raw: RawEntry, contentBytes: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const put = (at: number, width: number, bytes: string | Buffer) => Buffer.from(bytes).copy(header, at, 0, width);
  const octal = (width: number, value: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  put(0, 100, raw.name);
  put(100, 8, octal(8, raw.mode ?? 0o644));
  put(108, 8, octal(8, 0));
  put(116, 8, octal(8, 0));
  put(124, 12, raw.sizeField ?? octal(12, raw.size ?? contentBytes));
  put(136, 12, octal(12, 0));
  put(156, 1, raw.flag ?? flags.file);
  put(157, 100, raw.linkName ?? "");
  put(257, 8, raw.magic ?? "ustar\x0000");
  put(345, 155, raw.prefix ?? "");
  put(148, 8, " ".repeat(8));
  const sum = header.reduce((total, byte) => total + byte, 0) + (raw.checksumOff ?? 0);
  put(148, 8, `${sum.toString(8).padStart(6, "0")}\0 `);
  return header;
}

function filledUp(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)]);
}
