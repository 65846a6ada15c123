/**
 * Bytes as they come, copied into room that doubles. A message may come byte by byte: kept as they came, its pieces would take a hundred
 * times its size, and adding them up again for each would take longer than anybody waits.
 */
export class GrowingBuffer {
  #room: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What is held now; good until the next `add`. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  /** The first chunk is held as it is. */
  add(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length;
    if (this.#length === 0) this.#room = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    else {
      if (needed > this.#room.length) {
        const roomier = Buffer.allocUnsafe(2 * needed);
        roomier.set(this.bytes);
        this.#room = roomier;
      }
      this.#room.set(chunk, this.#length);
    }
    this.#length = needed;
  }

  /** All of it; nothing is held afterwards, and what was taken stays as it is. */
  take(): Buffer {
    const { bytes } = this;
    this.#room = Buffer.alloc(0);
    this.#length = 0;
    return bytes;
  }
}
