/**
 * A snapshot as others see it. It belongs to the database it was taken of: when the store closes that, or opens it again after a failure,
 * the snapshot is over and the next read says so. It never keeps the store from doing either.
 */
import type { RawEntry, SnapshotRange, StoreSnapshot } from "../ports/snapshot.ts";
import type { DatabaseSnapshot, RawIterator } from "./database.ts";
import { prefixEnd } from "./keys.ts";
import { epochKey, formatKey, metaKeys } from "./meta.ts";

/** Runs a read of the database the snapshot is of. Rejects with Failure `unavailable` when that is gone. */
export type GuardedRead = <T>(work: () => Promise<T>) => Promise<T>;

export async function openStoreSnapshot(taken: DatabaseSnapshot, guarded: GuardedRead): Promise<StoreSnapshot> {
  const [format, epoch] = await guarded(() => taken.getMany([formatKey, epochKey]));
  return {
    format: Number(format ?? 0),
    epoch: Number(epoch ?? 0),
    stretches: (range) => stretches(taken, guarded, range),
    read: (keys) => (keys.length === 0 ? Promise.resolve([]) : guarded(() => taken.getMany(keys))),
    close: () => taken.close(),
  };
}

async function* stretches(
  taken: DatabaseSnapshot,
  guarded: GuardedRead,
  { prefix = "", keysOnly = false }: SnapshotRange = {},
): AsyncGenerator<readonly RawEntry[], void, undefined> {
  const lt = prefixEnd(prefix);
  const range = { keysOnly, ...(prefix === "" ? {} : { gte: prefix }), ...(lt === undefined ? {} : { lt }) };
  const iterator: RawIterator = await guarded(async () => taken.iterate(range));
  try {
    for (;;) {
      const entries = await guarded(() => iterator.next());
      if (entries.length === 0) return;
      yield entries.filter(([key]) => !isMark(key));
    }
  } finally {
    await iterator.close();
  }
}

const marks = [...metaKeys].map((key) => Buffer.from(key));

function isMark(key: Buffer): boolean {
  return marks.some((mark) => mark.equals(key));
}
