/** The store as it was at one moment, for whoever has to see all of it while others write: backups and their proof. */

/** Key and value as UTF-8 bytes. */
export type RawEntry = readonly [key: Buffer, value: Buffer];

export interface SnapshotRange {
  /** Absent: everything. */
  readonly prefix?: string | undefined;
  /** Values are left out (and empty): large ones need not be read. */
  readonly keysOnly?: boolean | undefined;
}

/** Reads reject with Failure `unavailable` when the store was closed or opened again since. */
export interface StoreSnapshot {
  /** Of the stored text, as the store counts it. */
  readonly format: number;
  readonly epoch: number;
  /**
   * Entries in key order, a stretch at a time: some 256 KiB, or one larger entry. What the store writes about itself is left out.
   * Nobody waits for whoever iterates slowly, but the disk keeps what is overwritten meanwhile.
   */
  stretches(range?: SnapshotRange): AsyncIterable<readonly RawEntry[]>;
  /** Values in the order asked; undefined where absent. */
  read(keys: readonly string[]): Promise<readonly (string | undefined)[]>;
  /** May be called again. */
  close(): Promise<void>;
}

export interface SnapshotSource {
  /** Holds everything that was acknowledged before the call. */
  snapshot(): Promise<StoreSnapshot>;
}
