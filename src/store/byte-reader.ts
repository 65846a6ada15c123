/** Reads the length-prefixed pieces and variable-length integers of which LevelDB's files are made. Throws at the end of the bytes. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw new RangeError("The bytes end too early");
    this.#at += 1;
    return byte;
  }

  /** Exact up to 2^53, which no file size or number reaches. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new RangeError("A number is too long");
  }

  take(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new RangeError("The bytes end too early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  prefixed(): Uint8Array {
    return this.take(this.varint());
  }
}
