/** Work done a few at a time. Others wait in the order they came, in a queue with an end: whatever they hold is held meanwhile. */
import { Failure } from "../errors/failure.ts";

export interface TurnsOptions {
  readonly atOnce: number;
  readonly waitingMax: number;
  /** Opens the refusal: `Cannot add a module package`. */
  readonly subject: string;
}

export class Turns {
  readonly #options: TurnsOptions;
  readonly #waiting: (() => void)[] = [];
  #working = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** Rejects with Failure overloaded when as many wait as may, else with what `work` rejects with. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    const { atOnce, waitingMax, subject } = this.#options;
    if (this.#working < atOnce) this.#working += 1;
    else {
      if (this.#waiting.length >= waitingMax) throw new Failure("overloaded", `${subject}: ${waitingMax} wait already`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      // Handed on rather than given back, so that nobody overtakes.
      const next = this.#waiting.shift();
      if (next === undefined) this.#working -= 1;
      else next();
    }
  }
}
