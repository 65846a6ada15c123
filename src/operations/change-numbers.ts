/**
 * Numbers of changes, which only grow, also over restarts: a start counts on from the time of day in microseconds, and in any case from what
 * the store says may have been used. That mark is stored before a number below it is given out, for many numbers at once.
 */
import { Failure } from "../errors/failure.ts";
import { changeNumbersReserved } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import { changesKey } from "../runtime/keys.ts";

const conflictsMax = 3;

export interface ChangeNumbersParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

export class ChangeNumbers {
  readonly first: number;
  readonly #parts: ChangeNumbersParts;
  #reserved: number;
  #isReserving = false;

  private constructor(parts: ChangeNumbersParts, first: number) {
    this.#parts = parts;
    this.first = first;
    this.#reserved = first + changeNumbersReserved;
  }

  /** Rejects with Failure unavailable while the store does not take the mark. */
  static async open(parts: ChangeNumbersParts): Promise<ChangeNumbers> {
    return new ChangeNumbers(parts, await reserve(parts.store, Math.floor(parts.clock.now()) * 1_000));
  }

  /** Half of what is reserved is left then: changes are durable steps, and there are none while the store takes nothing. */
  used(number: number): void {
    if (this.#isReserving || number < this.#reserved - changeNumbersReserved / 2) return;
    this.#isReserving = true;
    const { store, log } = this.#parts;
    reserve(store, this.#reserved)
      .then(
        (from) => {
          this.#reserved = from + changeNumbersReserved;
        },
        (error: unknown) => log.warn("change-numbers-not-reserved", "The next change tries again", { error }),
      )
      .finally(() => {
        this.#isReserving = false;
      });
  }
}

/** The first of those reserved. */
async function reserve(store: Store, from: number): Promise<number> {
  for (let conflicts = 0; ; conflicts++) {
    const stored = await store.load(changesKey);
    const first = Math.max(from, Number(stored?.value ?? 0));
    const record = { key: changesKey, expect: stored?.revision ?? 0, value: String(first + changeNumbersReserved) };
    const [outcome] = await store.commit([{ record, writes: [], epoch: store.epoch }]);
    if (outcome === "ok") return first;
    if (outcome !== "conflict" || conflicts >= conflictsMax) throw notReserved(outcome);
  }
}

function notReserved(outcome: string | undefined): Failure {
  return new Failure("unavailable", `Numbers for changes could not be reserved: ${outcome}`, { retryAfterSeconds: 1 });
}
