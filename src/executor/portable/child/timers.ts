/** Timers of one run, by the guest's ids. The number is bounded by the guest's own count (`timersPerRunMax`). */
const delayMsMax = 2 ** 31 - 1;

export class Timers {
  readonly #fire: (id: string) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(fire: (id: string) => void) {
    this.#fire = fire;
  }

  get size(): number {
    return this.#timers.size;
  }

  /** A delay beyond the range of timers waits as long as they can, instead of firing at once. */
  set(id: string, delayMs: number, repeats: boolean): void {
    const wait = Number.isNaN(delayMs) ? 0 : Math.min(Math.max(delayMs, 0), delayMsMax);
    const timer = repeats
      ? setInterval(() => this.#fire(id), wait)
      : setTimeout(() => {
          this.#timers.delete(id);
          this.#fire(id);
        }, wait);
    this.#timers.set(id, timer);
  }

  remove(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  clear(): void {
    for (const id of [...this.#timers.keys()]) this.remove(id);
  }
}
