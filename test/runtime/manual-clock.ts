/** A clock that moves only when told to. Timers fire in order of their time, each after the promises before it have run. */
import type { Clock } from "../../src/ports/clock.ts";

interface Timer {
  readonly at: number;
  readonly action: () => void;
}

export class ManualClock implements Clock {
  #now: number;
  readonly #start: number;
  readonly #timers = new Set<Timer>();

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
    this.#start = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { at: this.#now + delayMs, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.action();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets promises, and real I/O of the memory store, come to rest. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}
