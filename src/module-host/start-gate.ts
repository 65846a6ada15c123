/** Lets a few start at once, the others in the order they came. */
export class StartGate {
  readonly #atOnceMax: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
  }

  async through<T>(start: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#atOnceMax) this.#inside += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await start();
    } finally {
      // The place is handed on rather than given back, so that nobody overtakes.
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside -= 1;
      else next();
    }
  }
}
