/**
 * Ordered, durable text. Keys and values are strings; keys sort by their UTF-8 bytes. A record carries a revision that grows
 * with each commit to it; other entries (indexes, wakes, blobs) ride along in the same atomic commit.
 */
export interface StoredRecord {
  readonly value: string;
  /** 1 for a first write, one more for each that follows. */
  readonly revision: number;
}

/** `value: null` deletes. */
export interface Write {
  readonly key: string;
  readonly value: string | null;
}

export interface Commit {
  /** The record this commit is about; its value, revision check and the `writes` land together or not at all. */
  readonly record: { readonly key: string; readonly expect: number; readonly value: string | null };
  readonly writes: readonly Write[];
  /** The `epoch` of the store the writer believes in. */
  readonly epoch: number;
}

/**
 * ok: durable (survives power loss). fenced: the epoch is not the current one, the writer owns nothing any more.
 * conflict: the record's revision is not `expect`; nothing was written. unknown: no answer; it may or may not be there.
 */
export type Outcome = "ok" | "fenced" | "conflict" | "unknown";

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** `prefix` selects; `after` (exclusive, a full key) continues; ascending only. */
export interface Range {
  readonly prefix: string;
  readonly after?: string | undefined;
  readonly limit: number;
}

export type StoreHealth =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly since: number };

/** Reads and commits reject with Failure `unavailable` while the store is failing. */
export interface Store {
  /** Raised at each open (one node) or change of owner (cluster). */
  readonly epoch: number;
  load(key: string): Promise<StoredRecord | undefined>;
  /** Values of entries that are not records, in the order asked; undefined where absent. */
  read(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  /** Records, in the order asked. */
  loadMany(keys: readonly string[]): Promise<readonly (StoredRecord | undefined)[]>;
  /** One outcome per commit, in order. Commits of one turn of the event loop share a synced batch. */
  commit(commits: readonly Commit[]): Promise<readonly Outcome[]>;
  range(range: Range): Promise<readonly Entry[]>;
  health(): StoreHealth;
  /** Called on each change of health; the answer unsubscribes. */
  onHealth(listener: (health: StoreHealth) => void): () => void;
  close(): Promise<void>;
}
