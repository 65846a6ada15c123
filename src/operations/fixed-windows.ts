/**
 * Counts what each caller did within a window of fixed length that begins with the caller's first request: after its end the count is
 * forgotten, so waiting as long as a refusal says always helps.
 *
 * Memory is bounded by the number of callers; a surplus pushes out those whose windows end first.
 */
import type { Clock } from "../ports/clock.ts";

export interface WindowRule {
  /** Requests per window. */
  readonly limit: number;
  readonly windowMs: number;
}

export class Window {
  count = 0;
  readonly limit: number;
  /** On the monotonic clock, milliseconds. */
  readonly endsAt: number;
  /** Unix seconds, as told to callers. */
  readonly resetAt: number;

  constructor({ limit, windowMs }: WindowRule, clock: Clock) {
    this.limit = limit;
    this.endsAt = clock.monotonic() + windowMs;
    this.resetAt = Math.ceil((clock.now() + windowMs) / 1_000);
  }

  get remaining(): number {
    return Math.max(0, this.limit - this.count);
  }

  get isExceeded(): boolean {
    return this.count > this.limit;
  }
}

export class FixedWindows {
  readonly #rule: WindowRule;
  readonly #clock: Clock;
  readonly #callersMax: number;
  /** In the order in which the windows end, which is that of their beginnings. */
  readonly #windows = new Map<string, Window>();

  constructor(rule: WindowRule, clock: Clock, callersMax: number) {
    this.#rule = rule;
    this.#clock = clock;
    this.#callersMax = callersMax;
  }

  /** The window that is open for this caller, if any. */
  open(caller: string): Window | undefined {
    const window = this.#windows.get(caller);
    return window !== undefined && window.endsAt > this.#clock.monotonic() ? window : undefined;
  }

  /** Counts one, and answers the window that it counts in. What is beyond the limit is not counted on and on. */
  count(caller: string): Window {
    const window = this.open(caller) ?? this.#begin(caller);
    if (!window.isExceeded) window.count++;
    return window;
  }

  get size(): number {
    return this.#windows.size;
  }

  #begin(caller: string): Window {
    const now = this.#clock.monotonic();
    this.#windows.delete(caller);
    for (const [other, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < this.#callersMax) break;
      this.#windows.delete(other);
    }
    const window = new Window(this.#rule, this.#clock);
    this.#windows.set(caller, window);
    return window;
  }
}
