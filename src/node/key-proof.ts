/**
 * Proof, at each start, that the secrets keys given are those the data was written with. The store keeps one canary for every key
 * that something may still be sealed with: all of them must open, so no key can be left out too early.
 */
import type { Store } from "../ports/store.ts";
import type { Vault } from "../ports/vault.ts";
import { checkCanary, makeCanary } from "../secrets/canary.ts";

const recordKey = "m/canary";

/** Rejects with Failure refused when one of the keys is missing or wrong. Adds a canary of the current key where there is none. */
export async function proveKeys(store: Store, vault: Vault): Promise<void> {
  const stored = await store.load(recordKey);
  const canaries = stored?.value.split("\n") ?? [];
  const known = canaries.map((canary) => checkCanary(vault, canary));
  if (!known.includes("current")) await write(store, stored?.revision ?? 0, [...canaries, makeCanary(vault)]);
}

/** Once nothing is sealed with a previous key any more: the next start may do without it. */
export async function forgetPreviousKeys(store: Store, vault: Vault): Promise<void> {
  const stored = await store.load(recordKey);
  await write(store, stored?.revision ?? 0, [makeCanary(vault)]);
}

async function write(store: Store, expect: number, canaries: readonly string[]): Promise<void> {
  const record = { key: recordKey, expect, value: canaries.join("\n") };
  const [outcome] = await store.commit([{ record, writes: [], epoch: store.epoch }]);
  if (outcome !== "ok") throw new Error(`The canary of the secrets key could not be written: ${outcome}`);
}
