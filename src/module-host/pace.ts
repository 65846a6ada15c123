/** How much of something is taken in one second. What is above waits for the next one, so that a flood costs its sender only. */
import type { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";

const secondMs = 1_000;

export class Pace {
  readonly #clock: Clock;
  readonly #perSecondMax: number;
  #secondStart = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(clock: Clock, perSecondMax: number) {
    this.#clock = clock;
    this.#perSecondMax = perSecondMax;
  }

  /** False when this second's share is used up: the amount is counted all the same. */
  take(amount: number): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#secondStart >= secondMs) {
      this.#secondStart = now;
      this.#taken = 0;
    }
    this.#taken += amount;
    return this.#taken <= this.#perSecondMax;
  }

  get msToNext(): number {
    return Math.max(0, this.#secondStart + secondMs - this.#clock.monotonic());
  }
}

/** Reads `stream` no faster than `pace` allows: over it the stream is paused until the second is over. */
export function readPaced(stream: Readable, pace: Pace, clock: Clock, take: (chunk: Buffer) => void): () => void {
  let stopTimer = () => {};
  stream.on("data", (chunk: Buffer) => {
    if (!pace.take(chunk.length)) {
      stream.pause();
      stopTimer = clock.after(pace.msToNext, () => stream.resume());
    }
    take(chunk);
  });
  // What is left of a stream that nobody reads would keep it from ever closing.
  return () => {
    stopTimer();
    stream.resume();
  };
}
