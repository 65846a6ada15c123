/**
 * Turns at something that one may use at a time. Keys take turns, not callers: a key with a thousand callers delays every other key by one
 * of them. When too many wait, the key that has most of them loses its newest, so that a flood of one key is its own loss.
 */
import { Failure } from "../../errors/failure.ts";
import type { Clock } from "../../ports/clock.ts";

export interface FairTurnsOptions {
  /** For error texts: "parameter worker". */
  readonly name: string;
  readonly waitingMax: number;
  readonly waitMs: number;
  readonly clock: Clock;
}

export interface TurnOptions {
  readonly key: string;
  /** Who leaves while waiting has no turn; one that has begun goes on to its end. */
  readonly signal?: AbortSignal | undefined;
}

interface Turn {
  /** Never rejects. */
  run(): Promise<void>;
  refuse(failure: Failure): void;
}

export class FairTurns {
  readonly #options: FairTurnsOptions;
  /** The first key is next; of a key, the oldest. No key is without turns. */
  readonly #waiting = new Map<string, Set<Turn>>();
  #count = 0;
  #taken = false;
  #closed = false;

  constructor(options: FairTurnsOptions) {
    this.#options = options;
  }

  /** What `work` comes to, or Failure: overloaded, unavailable (waited too long, or closed), cancelled. */
  take<Result>({ key, signal }: TurnOptions, work: () => Promise<Result>): Promise<Result> {
    const { name, waitMs, clock } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#closed) throw closed(name);
      if (signal?.aborted) throw new Failure("cancelled", "The caller went away");
      const stopWaiting = (): void => {
        stopTimer();
        signal?.removeEventListener("abort", onAbort);
        this.#remove(key, turn);
      };
      const turn: Turn = {
        run: () => {
          stopWaiting();
          return work().then(resolve, reject);
        },
        refuse: (failure) => {
          stopWaiting();
          reject(failure);
        },
      };
      const onAbort = (): void => turn.refuse(new Failure("cancelled", "The caller went away"));
      signal?.addEventListener("abort", onAbort, { once: true });
      const stopTimer = clock.after(waitMs, () =>
        turn.refuse(new Failure("unavailable", `The ${name} was busy for ${waitMs} ms`)),
      );
      this.#add(key, turn);
      this.#advance();
    });
  }

  /** Refuses all who wait and all who come. */
  close(): void {
    this.#closed = true;
    for (const turn of [...this.#waiting.values()].flatMap((turns) => [...turns])) {
      turn.refuse(closed(this.#options.name));
    }
  }

  #add(key: string, turn: Turn): void {
    const turns = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, turns.add(turn));
    this.#count += 1;
    if (this.#count <= this.#options.waitingMax) return;
    const longest = [...this.#waiting.values()].reduce((most, other) => (other.size > most.size ? other : most), turns);
    const { name, waitingMax } = this.#options;
    [...longest].at(-1)?.refuse(new Failure("overloaded", `The ${name} has ${waitingMax} requests waiting`));
  }

  #remove(key: string, turn: Turn): void {
    const turns = this.#waiting.get(key);
    if (turns?.delete(turn) !== true) return;
    this.#count -= 1;
    if (turns.size === 0) this.#waiting.delete(key);
  }

  #advance(): void {
    if (this.#taken) return;
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [key, turns] = first;
    const [turn] = turns;
    // To the end of the line: it is the next key's turn.
    this.#waiting.delete(key);
    this.#waiting.set(key, turns);
    this.#taken = true;
    void turn?.run().then(() => {
      this.#taken = false;
      this.#advance();
    });
  }
}

function closed(name: string): Failure {
  return new Failure("unavailable", `The ${name} is closed`);
}
