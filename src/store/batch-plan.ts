/**
 * Decides a batch: which commits land, in which operations, and what is then known of revisions. Pure.
 *
 * 1. Commits are decided in queue order, and each sees the revisions left by those before it in the same batch.
 * 2. The answer of a commit is given only once the whole batch has landed: a conflict may be with a write of this batch.
 */
import type { Commit, Outcome } from "../ports/store.ts";
import type { Operation } from "./database.ts";
import { encodeRecord } from "./record-text.ts";

export interface BatchPlan {
  readonly operations: readonly Operation[];
  /** One per commit, in order. */
  readonly outcomes: readonly Outcome[];
  /** Revisions once the operations have landed. */
  readonly revisions: ReadonlyMap<string, number>;
}

/** `revisions` holds the current one of every record the commits are about, NaN for text that is no record. */
export function planBatch(
  commits: readonly Commit[],
  epoch: number,
  revisions: ReadonlyMap<string, number>,
): BatchPlan {
  const after = new Map(revisions);
  const operations: Operation[] = [];
  const outcomes = commits.map((commit): Outcome => {
    if (commit.epoch !== epoch) return "fenced";
    const { key, expect, value } = commit.record;
    if (after.get(key) !== expect) return "conflict";
    const revision = value === null ? 0 : expect + 1;
    after.set(key, revision);
    operations.push(value === null ? deletion(key) : { type: "put", key, value: encodeRecord({ revision, value }) });
    for (const write of commit.writes) {
      operations.push(write.value === null ? deletion(write.key) : { type: "put", key: write.key, value: write.value });
      // A record should not be changed past its revision; if it is, what was known of it must not outlive that.
      if (after.has(write.key)) after.set(write.key, write.value === null ? 0 : Number.NaN);
    }
    return "ok";
  });
  return { operations, outcomes, revisions: after };
}

function deletion(key: string): Operation {
  return { type: "del", key };
}
