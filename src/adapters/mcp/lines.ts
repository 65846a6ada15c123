/** Bytes to lines, none longer than allowed. A chunk is copied once, however long the line it belongs to. */
export class Lines {
  readonly #bytesMax: number;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that end in this chunk, without their ends; undefined when one is longer than allowed: then this is of no more use. */
  push(chunk: Buffer): string[] | undefined {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      if (!this.#keep(chunk.subarray(from, at))) return undefined;
      lines.push(Buffer.concat(this.#pieces, this.#bytes).toString("utf8").replace(/\r$/, ""));
      this.#pieces = [];
      this.#bytes = 0;
      from = at + 1;
    }
    return this.#keep(chunk.subarray(from)) ? lines : undefined;
  }

  #keep(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (piece.length > 0) this.#pieces.push(piece);
    return this.#bytes <= this.#bytesMax;
  }
}
