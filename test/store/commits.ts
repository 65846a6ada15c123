/** Commits in the short form the tests read best in. */
import type { Commit, Store } from "../../src/ports/store.ts";

export type Open = () => Promise<Store>;

export function change(
  store: Store,
  key: string,
  expect: number,
  value: string | null,
  writes: Commit["writes"] = [],
): Commit {
  return { epoch: store.epoch, record: { key, expect, value }, writes };
}

export async function one(store: Store, commit: Commit): Promise<string> {
  const [outcome] = await store.commit([commit]);
  return outcome!;
}
