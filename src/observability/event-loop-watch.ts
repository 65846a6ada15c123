/**
 * How late the event loop comes to what is due, minute by minute: over all the time since the start, a bad minute would disappear among the
 * good ones. Node looks every `resolutionMs` and counts the whole time between two looks, so what is late is the rest.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../ports/clock.ts";

export interface EventLoopDelay {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly windowSeconds: number;
}

const resolutionMs = 20;
const windowMs = 60_000;
const nanosecondsInMs = 1_000_000;

export class EventLoopWatch {
  readonly #clock: Clock;
  readonly #histogram: IntervalHistogram;
  #since: number;
  #before: EventLoopDelay | undefined;
  #cancelTimer: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#histogram = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#histogram.enable();
    this.#since = clock.monotonic();
    this.#nextWindow();
  }

  /** The minute that is under way, and the one before it. */
  read(): { readonly current: EventLoopDelay; readonly before: EventLoopDelay | undefined } {
    return { current: this.#delay(), before: this.#before };
  }

  close(): void {
    this.#cancelTimer();
    this.#histogram.disable();
  }

  #nextWindow(): void {
    this.#cancelTimer = this.#clock.after(windowMs, () => {
      this.#before = this.#delay();
      this.#histogram.reset();
      this.#since = this.#clock.monotonic();
      this.#nextWindow();
    });
  }

  #delay(): EventLoopDelay {
    const isEmpty = this.#histogram.count === 0;
    const late = (nanoseconds: number): number =>
      isEmpty ? 0 : Math.max(0, Math.round((nanoseconds / nanosecondsInMs - resolutionMs) * 1_000) / 1_000);
    return {
      p50Ms: late(this.#histogram.percentile(50)),
      p99Ms: late(this.#histogram.percentile(99)),
      maxMs: late(this.#histogram.max),
      windowSeconds: Math.round((this.#clock.monotonic() - this.#since) / 1_000),
    };
  }
}
