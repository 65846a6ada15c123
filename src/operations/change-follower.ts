/**
 * Follows the changes of the node: a snapshot first, then every change after it, or every change after the one its reader has.
 *
 * 1. A snapshot is exact: it is the state after the change whose number it bears, and before the next.
 * 2. A reader who comes back from too far, or falls behind what is held, starts over with a snapshot that says so.
 * 3. It takes the next change when its reader has taken the last one, so a slow one holds nobody up.
 */
import { Failure } from "../errors/failure.ts";
import { snapshotReadsMax } from "../limits.ts";
import type { ChangeRing } from "./change-ring.ts";

/** start: none was asked to go on from. forgotten: what came after that one is not held. behind: the reader was too slow. */
export const snapshotReasons = ["start", "forgotten", "behind"] as const;
export type SnapshotReason = (typeof snapshotReasons)[number];

export interface Following<Change, Rows, Item> {
  readonly ring: ChangeRing<Change>;
  /** Number of the last change the reader has. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
  /** What there is; it may be read while changes come in, which `apply` then brings in: that must do no harm where a change is in already. */
  readonly read: () => Promise<Rows>;
  readonly apply: (rows: Rows, change: Change) => void;
  readonly snapshot: (rows: Rows, reason: SnapshotReason, sequence: number) => Item;
  /** Undefined: the reader did not ask for it. */
  readonly item: (change: Change, sequence: number) => Item | undefined;
}

export async function* followChanges<Change, Rows, Item>(
  following: Following<Change, Rows, Item>,
): AsyncGenerator<Item, void, undefined> {
  const { ring, after, signal } = following;
  let position = after;
  let reason: SnapshotReason = after === undefined ? "start" : "forgotten";
  for (;;) {
    signal.throwIfAborted();
    if (position === undefined || !ring.remembers(position)) {
      const { rows, sequence } = await readExactly(following);
      signal.throwIfAborted();
      position = sequence;
      yield following.snapshot(rows, reason, sequence);
    } else {
      const change = ring.at(position + 1);
      if (change === undefined) await ring.appended(position, signal);
      else {
        position += 1;
        const item = following.item(change, position);
        if (item !== undefined) yield item;
      }
    }
    reason = "behind";
  }
}

/** Invariant 1. */
async function readExactly<Change, Rows>({
  ring,
  read,
  apply,
}: Pick<Following<Change, Rows, unknown>, "ring" | "read" | "apply">): Promise<{ rows: Rows; sequence: number }> {
  for (let reads = 0; reads < snapshotReadsMax; reads++) {
    let sequence = ring.last;
    const rows = await read();
    if (!ring.remembers(sequence)) continue;
    for (; sequence < ring.last; sequence++) apply(rows, ring.at(sequence + 1) as Change);
    return { rows, sequence };
  }
  throw new Failure("unavailable", "More changes come in than a snapshot can be taken of", { retryAfterSeconds: 1 });
}
