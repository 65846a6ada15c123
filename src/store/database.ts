/**
 * What the store needs of an ordered key-value engine. LevelDB and memory-level both offer it; tests wrap it to inject faults.
 * Keys sort by their UTF-8 bytes, a batch lands whole or not at all, reads see what has landed.
 */
import type { RawEntry } from "../ports/snapshot.ts";

export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };

export interface KeyRange {
  readonly gte?: string;
  readonly gt?: string;
  readonly lt?: string;
  readonly limit: number;
}

/** Bounds of a walk over a snapshot. */
export interface RawRange {
  readonly gte?: string;
  readonly lt?: string;
  readonly keysOnly?: boolean;
}

export interface RawIterator {
  /** The next stretch; empty at the end. */
  next(): Promise<readonly RawEntry[]>;
  close(): Promise<void>;
}

/** What the database held when it was taken. Closing the database closes it as well. */
export interface DatabaseSnapshot {
  getMany(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  iterate(range: RawRange): RawIterator;
  close(): Promise<void>;
}

export interface Database {
  get(key: string): Promise<string | undefined>;
  getMany(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  entries(range: KeyRange): Promise<readonly (readonly [string, string])[]>;
  /** Resolves once the batch survives power loss. */
  batchSynced(operations: readonly Operation[]): Promise<void>;
  /** Absent where the engine has none. */
  snapshot?(): DatabaseSnapshot;
  /** Waits for what is under way. */
  close(): Promise<void>;
}

/** How a database comes to be, again and again: after each failure the store closes it and asks for another. */
export interface Engine {
  open(): Promise<Database>;
  /** Rejects while the disk takes no writes. Asked before a failing database, which can still be read, is given up. */
  writable(): Promise<void>;
  /** After the last close. */
  release(): Promise<void>;
}
