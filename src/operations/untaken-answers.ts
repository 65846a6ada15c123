/**
 * Answers that their callers have not taken yet are in memory meanwhile: each for a while only, and of each caller only so many bytes.
 * Who asks and does not read is refused before anything is done for it, and nobody else is.
 */
import { Failure } from "../errors/failure.ts";
import { answerTakenMs, untakenAnswerBytesMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

/** Smaller answers are bounded by how many calls a connection may have. */
const smallAnswerBytes = 16_384;

/** What an answer is written to: a stream of HTTP/2, a response of HTTP/1.1. */
interface Outlet {
  readonly destroyed: boolean;
  once(event: "close", listener: () => void): unknown;
}

export class UntakenAnswers {
  readonly #clock: Clock;
  /** By caller, as requests are counted; only of those who have any. */
  readonly #bytes = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Before a call is looked at. Throws Failure overloaded. */
  admit(countedAs: string): void {
    if (this.#bytes.size > 0) this.#refuse(countedAs, "read them first");
  }

  /**
   * An answer is about to be handed to its outlet, which closes when all of it was taken. `giveUp` is called when that takes too long.
   * Throws Failure overloaded: many calls that were admitted together would otherwise all be answered.
   */
  add(countedAs: string, bytes: number, outlet: Outlet, giveUp: () => void): void {
    if (bytes <= smallAnswerBytes || outlet.destroyed) return;
    this.#refuse(countedAs, "the call was carried out, and its answer is not kept");
    this.#count(countedAs, bytes);
    const cancelLimit = this.#clock.after(answerTakenMs, giveUp);
    outlet.once("close", () => {
      cancelLimit();
      this.#count(countedAs, -bytes);
    });
  }

  #refuse(countedAs: string, advice: string): void {
    const bytes = this.#bytes.get(countedAs) ?? 0;
    if (bytes <= untakenAnswerBytesMax) return;
    const mib = Math.round(bytes / 1024 ** 2);
    throw new Failure("overloaded", `${mib} MiB of answers wait to be read by you: ${advice}`, {
      retryAfterSeconds: 1,
    });
  }

  #count(countedAs: string, bytes: number): void {
    const sum = (this.#bytes.get(countedAs) ?? 0) + bytes;
    if (sum > 0) this.#bytes.set(countedAs, sum);
    else this.#bytes.delete(countedAs);
  }
}
