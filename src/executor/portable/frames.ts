/**
 * Frames between host and child: four bytes of length (big endian), then that many bytes of JSON. The reader believes
 * nothing: a length above its cap or text that is no JSON ends the conversation.
 */
const headerBytes = 4;

export class FrameError extends Error {}

export function encodeFrame(message: unknown): Buffer {
  const text = JSON.stringify(message);
  const bytes = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(headerBytes + bytes);
  frame.writeUInt32BE(bytes, 0);
  frame.write(text, headerBytes, "utf8");
  return frame;
}

export class FrameReader {
  /** Changes with the run: the largest honest frame depends on its output limit. */
  bytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** The next whole message, or undefined until more bytes come. Throws FrameError. */
  next(): unknown {
    const header = this.#peek(headerBytes);
    if (header === undefined) return undefined;
    const bytes = header.readUInt32BE(0);
    if (bytes > this.bytesMax) throw new FrameError(`A frame of ${bytes} bytes is above ${this.bytesMax}`);
    if (this.#bytes < headerBytes + bytes) return undefined;
    const whole = this.#peek(headerBytes + bytes) as Buffer;
    this.#drop(headerBytes + bytes);
    const message = parse(whole.toString("utf8", headerBytes));
    if (message === undefined) throw new FrameError("A frame holds no JSON");
    return message;
  }

  #peek(bytes: number): Buffer | undefined {
    if (this.#bytes < bytes) return undefined;
    // Joined only when a frame is whole or its header is split, so a large frame is copied once.
    if ((this.#chunks[0]?.length ?? 0) < bytes) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]?.subarray(0, bytes);
  }

  #drop(bytes: number): void {
    const first = this.#chunks[0] as Buffer;
    this.#bytes -= bytes;
    if (first.length === bytes) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(bytes);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
