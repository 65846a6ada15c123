/** The streams that one face has open: bounded, and told together that the server closes. */
import { Failure } from "../errors/failure.ts";
import { eventStreamsMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Call } from "./call.ts";

export class OpenStreams {
  readonly #calls = new Set<Call>();
  readonly #clock: Clock;
  readonly #max: number;
  #closed = false;

  constructor(clock: Clock, max = eventStreamsMax) {
    this.#clock = clock;
    this.#max = max;
  }

  /**
   * The answer takes it off again and ends the call, so that whoever works for it stops. Throws Failure overloaded; or unavailable, because
   * the message of a call that was admitted may have been complete only after `close`.
   */
  add(call: Call): () => void {
    if (this.#closed) throw shuttingDown();
    if (this.#calls.size >= this.#max) throw tooMany(this.#max, this.#clock.now());
    this.#calls.add(call);
    return () => {
      this.#calls.delete(call);
      call.end(new Failure("cancelled", "The stream is over"));
    };
  }

  close(): void {
    this.#closed = true;
    for (const call of this.#calls) call.end(shuttingDown());
  }
}

function shuttingDown(): Failure {
  return new Failure("unavailable", "The server is shutting down");
}

function tooMany(limit: number, now: number): Failure {
  return new Failure("overloaded", `${limit} event streams are open already`, {
    exhaustion: {
      limit,
      remaining: 0,
      resetAt: Math.ceil(now / 1_000) + retryAfterSeconds,
      retryAfterSeconds,
    },
  });
}

/** Streams last: trying again at once is in vain. */
const retryAfterSeconds = 5;
