/**
 * Deadlines of waiting callers on one coarse timer: a timer per ask costs as much as the ask. A deadline fires at most one
 * tick late, never early.
 */
import type { Clock } from "../ports/clock.ts";

const tickMs = 50;

/** Whoever waits: `expire` is called once when the deadline passes first. */
export interface Expiring {
  readonly deadline: number;
  /** Which tick it was filed under; kept here so that removing needs no search. */
  tick: number;
  expire(): void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #buckets = new Map<number, Set<Expiring>>();
  #cancel: (() => void) | undefined;
  #lastTick: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastTick = Math.floor(clock.monotonic() / tickMs);
  }

  add(waiter: Expiring): void {
    if (waiter.deadline === Number.POSITIVE_INFINITY) return;
    const tick = Math.max(Math.floor(waiter.deadline / tickMs) + 1, this.#lastTick + 1);
    waiter.tick = tick;
    const bucket = this.#buckets.get(tick);
    if (bucket === undefined) this.#buckets.set(tick, new Set([waiter]));
    else bucket.add(waiter);
    this.#arm();
  }

  remove(waiter: Expiring): void {
    const bucket = this.#buckets.get(waiter.tick);
    if (bucket === undefined) return;
    bucket.delete(waiter);
    if (bucket.size === 0) this.#buckets.delete(waiter.tick);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#buckets.clear();
  }

  #arm(): void {
    if (this.#cancel !== undefined || this.#buckets.size === 0) return;
    this.#cancel = this.#clock.after(tickMs, () => {
      this.#cancel = undefined;
      this.#fire();
      this.#arm();
    });
  }

  #fire(): void {
    const current = Math.floor(this.#clock.monotonic() / tickMs);
    // A long pause skips many ticks: walk the buckets then, not the ticks.
    const due =
      current - this.#lastTick <= this.#buckets.size
        ? Array.from({ length: current - this.#lastTick }, (_, offset) => this.#lastTick + 1 + offset)
        : [...this.#buckets.keys()].filter((tick) => tick <= current);
    this.#lastTick = current;
    for (const tick of due) {
      const bucket = this.#buckets.get(tick);
      if (bucket === undefined) continue;
      this.#buckets.delete(tick);
      for (const waiter of bucket) waiter.expire();
    }
  }
}
