/** The body of an answer: read, decoded, and never more of it than asked for, on the wire or after decompression. */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, type InputType, inflate, inflateRaw, type ZlibOptions } from "node:zlib";
import { Failure } from "../errors/failure.ts";
import { outboundCodingsMax } from "../limits.ts";

type Decoder = (bytes: InputType, options: ZlibOptions) => Promise<Buffer>;

const decoders: Readonly<Record<string, Decoder>> = {
  gzip: promisify<InputType, ZlibOptions, Buffer>(gunzip),
  "x-gzip": promisify<InputType, ZlibOptions, Buffer>(gunzip),
  br: promisify<InputType, ZlibOptions, Buffer>(brotliDecompress),
  deflate: inflateEither,
};

/** What cannot be compressed grows by a few bytes. */
const codingOverheadBytes = 1_024;

export interface EncodedBody {
  readonly host: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Value of content-encoding. */
  readonly encoding: string | undefined;
  /** Value of content-length. */
  readonly length: string | undefined;
  readonly bytesMax: number;
}

/** @throws Failure too_large, upstream_failed; whatever the chunks throw. */
export async function readBody(body: EncodedBody): Promise<Uint8Array> {
  const codings = codingsOf(body);
  const wireBytesMax = codings.length === 0 ? body.bytesMax : body.bytesMax + codingOverheadBytes;
  if (Number(body.length ?? 0) > wireBytesMax) throw tooLarge(body);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body.chunks) {
    bytes += chunk.byteLength;
    if (bytes > wireBytesMax) throw tooLarge(body);
    chunks.push(chunk);
  }
  let decoded: Uint8Array = Buffer.concat(chunks);
  // Applied in the order listed, so undone from the end.
  for (const decode of codings.toReversed()) decoded = await decodeOnce(body, decode, decoded);
  if (decoded.byteLength > body.bytesMax) throw tooLarge(body);
  return decoded;
}

function codingsOf({ host, encoding = "" }: EncodedBody): readonly Decoder[] {
  const names = encoding
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length > outboundCodingsMax)
    throw new Failure("upstream_failed", `"${host}" sent a body with too many content codings`);
  return names.map((name) => {
    const decoder = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
    if (decoder === undefined)
      throw new Failure("upstream_failed", `"${host}" sent a body in a content coding that was not asked for`);
    return decoder;
  });
}

async function decodeOnce(body: EncodedBody, decode: Decoder, bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.byteLength === 0) return bytes;
  try {
    return await decode(bytes, { maxOutputLength: Math.max(1, body.bytesMax) });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(body);
    throw new Failure("upstream_failed", `"${body.host}" sent a body that cannot be decompressed`, { cause: error });
  }
}

/** Servers mean the zlib format or the bare stream by "deflate"; the first byte tells which. */
async function inflateEither(bytes: InputType, options: ZlibOptions): Promise<Buffer> {
  const first = bytes instanceof Uint8Array ? (bytes[0] ?? 0) : 0;
  return promisify<InputType, ZlibOptions, Buffer>((first & 0x0f) === 8 ? inflate : inflateRaw)(bytes, options);
}

function tooLarge({ host, bytesMax }: EncodedBody): Failure {
  return new Failure("too_large", `The answer of "${host}" is larger than ${bytesMax} bytes`);
}
