/**
 * Where things lie in the store. Parts are percent-encoded, so a `/` always separates.
 *
 *   a/<kind>/<key>                      record
 *   b/<kind>/<key>/<name>               blob: large value beside a record
 *   x/<kind>/<index>/<sort>             index entry; value = actor key
 *   w/<due>/<kind>/<key>/<name>         wake, due as 15 digits of epoch milliseconds
 *   m/sequence/<kind>                   highest key handed out
 *   m/changes                           changes have numbers below this one
 */
import type { Address, IndexEntry } from "./kind.ts";

const part = encodeURIComponent;

export const recordKey = (address: Address): string => `a/${part(address.kind)}/${part(address.key)}`;
export const blobPrefix = (address: Address): string => `b/${part(address.kind)}/${part(address.key)}/`;
export const blobKey = (address: Address, name: string): string => `${blobPrefix(address)}${part(name)}`;
export const indexPrefix = (kind: string, name: string): string => `x/${part(kind)}/${part(name)}/`;
export const indexKey = (kind: string, entry: IndexEntry): string => `${indexPrefix(kind, entry.name)}${entry.sort}`;
export const changesKey = "m/changes";
export const sequenceKey = (kind: string): string => `m/sequence/${part(kind)}`;

/** The index of actors that owe work; kept by the machine for every kind. */
export const owedIndex = "owed";

export const wakePrefix = "w/";
const dueDigits = 15;
export const wakeKey = (address: Address, name: string, due: number): string =>
  `${wakePrefix}${String(Math.max(0, Math.ceil(due))).padStart(dueDigits, "0")}/${part(address.kind)}/${part(address.key)}/${part(name)}`;

export interface Wake {
  readonly due: number;
  readonly address: Address;
  readonly name: string;
}

export function parseWakeKey(key: string): Wake {
  const [, due = "", kind = "", actorKey = "", name = ""] = key.split("/");
  return {
    due: Number(due),
    address: { kind: decodeURIComponent(kind), key: decodeURIComponent(actorKey) },
    name: decodeURIComponent(name),
  };
}

/** Newest first as an ascending key: a store's descending range may cost a sort of everything (etcd). */
export function newestFirst(epochMs: number, tie: string): string {
  return `${String(9_999_999_999_999 - epochMs).padStart(13, "0")}.${tie}`;
}

/** Larger numbers sort first. */
export function largestFirst(value: number): string {
  return String(Number.MAX_SAFE_INTEGER - value).padStart(16, "0");
}
