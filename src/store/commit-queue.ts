/**
 * Commits waiting for their batch, in the order they were made. A caller hands over several commits and gets one promise;
 * they may end up in different batches, each whole in one.
 */
import { Failure } from "../errors/failure.ts";
import type { Commit, Outcome } from "../ports/store.ts";

export interface QueueBounds {
  readonly commitsMax: number;
  readonly charactersMax: number;
}

export interface BatchBounds {
  readonly writesMax: number;
  readonly charactersMax: number;
}

/** One commit in the queue, answered exactly once. */
export interface QueuedCommit {
  readonly commit: Commit;
  readonly characters: number;
  answer(outcome: Outcome): void;
  /** It was never tried. Rejects its caller, unless another commit of the same call was tried: then the answer is `unknown`. */
  refuse(failure: Failure): void;
}

/** A full queue is about a second of writing. */
const retryAfterSeconds = 1;

export class CommitQueue {
  readonly #bounds: QueueBounds;
  #waiting: QueuedCommit[] = [];
  #characters = 0;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Takes all of them or, beyond a bound, none (Failure `overloaded`). One call alone may be larger than the bound. */
  add(commits: readonly Commit[], nowMs: number): Promise<readonly Outcome[]> {
    const sizes = commits.map(charactersOf);
    const added = sizes.reduce((sum, size) => sum + size, 0);
    if (this.#waiting.length > 0 && this.#isBeyond(commits.length, added)) {
      const resetAt = Math.ceil(nowMs / 1000) + retryAfterSeconds;
      const exhaustion = { limit: this.#bounds.commitsMax, remaining: 0, resetAt, retryAfterSeconds };
      throw new Failure("overloaded", "The store has too many writes waiting", { exhaustion, retryAfterSeconds });
    }
    this.#characters += added;
    return new Promise((resolve, reject) => {
      const outcomes: Outcome[] = new Array<Outcome>(commits.length).fill("unknown");
      let left = commits.length;
      let tried = false;
      const settle = () => {
        left -= 1;
        if (left === 0) resolve(outcomes);
      };
      commits.forEach((commit, place) => {
        this.#waiting.push({
          commit,
          characters: sizes[place]!,
          answer(outcome) {
            outcomes[place] = outcome;
            tried = true;
            settle();
          },
          refuse(failure) {
            if (!tried) reject(failure);
            settle();
          },
        });
      });
    });
  }

  /** The next batch: as many as fit, at least one. */
  take(bounds: BatchBounds): readonly QueuedCommit[] {
    let writes = 0;
    let characters = 0;
    let count = 0;
    for (const { commit, characters: size } of this.#waiting) {
      writes += 1 + commit.writes.length;
      characters += size;
      if (count > 0 && (writes > bounds.writesMax || characters > bounds.charactersMax)) break;
      count += 1;
    }
    const taken = this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    for (const { characters: size } of taken) this.#characters -= size;
    return taken;
  }

  takeAll(): readonly QueuedCommit[] {
    return this.take({ writesMax: Number.POSITIVE_INFINITY, charactersMax: Number.POSITIVE_INFINITY });
  }

  #isBeyond(commits: number, characters: number): boolean {
    return (
      this.#waiting.length + commits > this.#bounds.commitsMax ||
      this.#characters + characters > this.#bounds.charactersMax
    );
  }
}

function charactersOf(commit: Commit): number {
  let sum = commit.record.key.length + (commit.record.value?.length ?? 0);
  for (const { key, value } of commit.writes) sum += key.length + (value?.length ?? 0);
  return sum;
}
