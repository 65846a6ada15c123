/**
 * What the store needs of an ordered key-value engine. LevelDB and memory-level both offer it; tests wrap it to inject faults.
 * Keys sort by their UTF-8 bytes, a batch lands whole or not at all, reads see what has landed.
 */
export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };

export interface KeyRange {
  readonly gte?: string;
  readonly gt?: string;
  readonly lt?: string;
  readonly limit: number;
}

export interface Database {
  get(key: string): Promise<string | undefined>;
  getMany(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  entries(range: KeyRange): Promise<readonly (readonly [string, string])[]>;
  /** Resolves once the batch survives power loss. */
  batchSynced(operations: readonly Operation[]): Promise<void>;
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
