/** Numbers that only grow, for keys of a sequenced kind. The highest one is made durable with each record it names. */
export class Sequence {
  #last = 0;

  get last(): number {
    return this.#last;
  }

  continueFrom(last: number): void {
    this.#last = Math.max(this.#last, last);
  }

  next(): number {
    return ++this.#last;
  }
}
