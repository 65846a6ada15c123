/** Chance that can be repeated: the same seed gives the same choices. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1, which is left out. */
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  below(limit: number): number {
    return Math.floor(this.unit() * limit);
  }

  chance(share: number): boolean {
    return this.unit() < share;
  }

  of<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new Error("There is nothing to choose from");
    return items[this.below(items.length)] as Item;
  }
}
