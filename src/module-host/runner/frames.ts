/**
 * Frames between host and module process: four bytes of length (big endian), then that many bytes of JSON. The host reads them as
 * hostile: a length above the cap, JSON nested too deep, or text that is no JSON ends the conversation. An honest runner keeps the same
 * bounds when it writes, so that a large answer costs an error and not the process.
 */
const headerBytes = 4;

export interface FrameBounds {
  readonly bytesMax: number;
  readonly depthMax: number;
}

/** For the direction in which the other side is believed. */
export const noBounds: FrameBounds = { bytesMax: Number.POSITIVE_INFINITY, depthMax: Number.POSITIVE_INFINITY };

export class FrameError extends Error {}

/** Throws FrameError above the bounds, and what JSON.stringify throws. */
export function encodeFrame(message: unknown, { bytesMax, depthMax }: FrameBounds = noBounds): Buffer {
  const text = JSON.stringify(message);
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) throw new FrameError(`it is larger than ${bytesMax} bytes as JSON`);
  if (nestsDeeper(text, depthMax)) throw new FrameError(`it nests deeper than ${depthMax} levels`);
  const frame = Buffer.allocUnsafe(headerBytes + bytes);
  frame.writeUInt32BE(frame.length - headerBytes, 0);
  frame.write(text, headerBytes, "utf8");
  return frame;
}

export class FrameReader {
  readonly #bounds: FrameBounds;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(bounds: FrameBounds) {
    this.#bounds = bounds;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** The next whole message, or undefined until more bytes come. Throws FrameError. */
  next(): unknown {
    if (this.#bytes < headerBytes) return undefined;
    const bytes = this.#join(headerBytes).readUInt32BE(0);
    if (bytes > this.#bounds.bytesMax) throw new FrameError(`a message of ${bytes} bytes`);
    const whole = headerBytes + bytes;
    if (this.#bytes < whole) return undefined;
    const joined = this.#join(whole);
    this.#bytes -= whole;
    if (joined.length === whole) this.#chunks.shift();
    else this.#chunks[0] = joined.subarray(whole);
    return parse(joined.toString("utf8", headerBytes, whole), this.#bounds.depthMax);
  }

  /** Copies only what is split, and only once a frame is whole: many small chunks of a large frame are not joined again and again. */
  #join(bytes: number): Buffer {
    const first = this.#chunks[0] as Buffer;
    if (first.length >= bytes) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}

function parse(text: string, depthMax: number): unknown {
  if (nestsDeeper(text, depthMax)) throw new FrameError("a message that nests too deep");
  try {
    return JSON.parse(wellFormed(text));
  } catch {
    throw new FrameError("a message that is no JSON");
  }
}

/** JSON may escape half a surrogate pair; neither UTF-8 nor protobuf can hold that, so it becomes U+FFFD. */
function wellFormed(json: string): string {
  if (!/\\ud/i.test(json)) return json;
  return json.replace(
    /\\u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(d[89a-f][0-9a-f]{2}))|\\./gis,
    (found, half: string | undefined) => (half === undefined ? found : "\ufffd"),
  );
}

/** Looked at as text: whoever walks a value pays for each of its nodes. */
export function nestsDeeper(json: string, depthMax: number): boolean {
  if (depthMax === Number.POSITIVE_INFINITY) return false;
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (isString) {
      if (unit === backslash) at += 1;
      else if (unit === quote) isString = false;
    } else if (unit === quote) isString = true;
    else if (unit === openBrace || unit === openBracket) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (unit === closeBrace || unit === closeBracket) depth -= 1;
  }
  return false;
}

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
