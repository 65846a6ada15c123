/**
 * One step → one atomic commit: the record, and the difference between the index entries, wakes and owed-work marker of the
 * state before and after. Pure.
 */
import type { Commit, Write } from "../ports/store.ts";
import { blobKey, indexKey, owedIndex, recordKey, wakeKey } from "./keys.ts";
import type { Address, AnyKind, Step } from "./kind.ts";
import { type AnsweredCommand, encodeRecord } from "./record.ts";

export interface StepToCommit {
  readonly kind: AnyKind;
  readonly address: Address;
  readonly epoch: number;
  readonly revision: number;
  readonly before: unknown;
  readonly step: Step<unknown, unknown>;
  readonly commands: readonly AnsweredCommand[];
  readonly extra: readonly Write[];
}

export function planCommit({ kind, address, epoch, revision, before, step, commands, extra }: StepToCommit): Commit {
  const after = step.state;
  const writes: Write[] = [...extra];
  difference(entriesOf(kind, address, before), entriesOf(kind, address, after), address.key, writes);
  difference(wakesOf(kind, address, before), wakesOf(kind, address, after), address.key, writes);
  // The blobs of an actor that ends are in `extra`; a step cannot keep one.
  for (const [name, value] of after === null ? [] : Object.entries(step.blobs ?? {})) {
    writes.push({ key: blobKey(address, name), value });
  }
  const value = after === null ? null : encodeRecord(kind, after, commands);
  return { record: { key: recordKey(address), expect: revision, value }, writes, epoch };
}

function entriesOf(kind: AnyKind, address: Address, state: unknown): ReadonlySet<string> {
  const keys = new Set<string>();
  if (state === null) return keys;
  for (const entry of kind.index(state, address.key)) keys.add(indexKey(kind.name, entry));
  if (kind.owed(state).length > 0) {
    keys.add(indexKey(kind.name, { name: owedIndex, sort: encodeURIComponent(address.key) }));
  }
  return keys;
}

function wakesOf(kind: AnyKind, address: Address, state: unknown): ReadonlySet<string> {
  const keys = new Set<string>();
  if (state === null) return keys;
  for (const [name, due] of Object.entries(kind.wakes?.(state) ?? {})) keys.add(wakeKey(address, name, due));
  return keys;
}

function difference(before: ReadonlySet<string>, after: ReadonlySet<string>, value: string, into: Write[]): void {
  for (const key of before) if (!after.has(key)) into.push({ key, value: null });
  for (const key of after) if (!before.has(key)) into.push({ key, value });
}
