/** What an operator asks of the whole server: a copy of what it keeps, a proof that it is sound, and to make room for another. */

export interface BackupHeader {
  /** Of the server it was taken from. */
  readonly serverVersion: string;
  /** Of the stored text. */
  readonly storeFormat: number;
  readonly epoch: number;
  /** ISO-8601: everything acknowledged before is in it. */
  readonly takenAt: string;
  /** Of the secrets keys that its sealed values need: the keys themselves are never in a backup. */
  readonly secretsKeyIds: readonly string[];
  /** Module packages in it. */
  readonly packages: number;
  /** Packages of installed modules that were gone or damaged already: such a module is listed as missing, as it was before. */
  readonly packagesLeftOut: readonly { readonly id: string; readonly hash: string; readonly reason: string }[];
}

export interface BackupCounts {
  readonly entries: number;
  readonly packages: number;
  /** Of packages. */
  readonly files: number;
  /** Of the whole backup. */
  readonly bytes: number;
}

/** The header first, then chunks, the counts last. All chunks, one after another, are the file. */
export type BackupMessage =
  | { readonly header: BackupHeader }
  | { readonly chunk: Uint8Array }
  | { readonly trailer: BackupCounts };

/**
 * record: does not decode by its kind, or lacks entries it wants. index, wake: names no record that wants it. blob: belongs to no record.
 * secret: sealed with a key that the store does not know. entry: nothing of ours. package: missing or changed. table: a file of the store
 * differs from its checksums.
 */
export const findingSubjects = ["record", "index", "wake", "blob", "secret", "entry", "package", "table"] as const;

export interface VerifyFinding {
  readonly subject: (typeof findingSubjects)[number];
  /** `process/12`, a key of the store, `module/csv-table` or the name of a file. */
  readonly address: string;
  /** A sentence; no content of what was found. */
  readonly problem: string;
}

export interface VerifyCounts {
  readonly tables: number;
  readonly records: number;
  readonly indexEntries: number;
  readonly wakes: number;
  readonly blobs: number;
  readonly secrets: number;
  readonly packages: number;
  /** All of them, also those that were too many to tell. */
  readonly findings: number;
}

/** Progress now and then, findings as they are found, the summary last. */
export type VerifyMessage =
  | { readonly progress: VerifyCounts }
  | { readonly finding: VerifyFinding }
  | { readonly summary: VerifyCounts };

export interface Maintenance {
  /** Rejects with Failure: overloaded (others are under way), timeout (nobody took it), unavailable. */
  backup(signal: AbortSignal): AsyncIterable<BackupMessage>;
  verify(signal: AbortSignal): AsyncIterable<VerifyMessage>;
}

export interface DrainProgress {
  /** draining: programs still run. drained: none does. cut: time was over, and what still ran is ended now. */
  readonly state: "draining" | "drained" | "cut";
  readonly running: number;
  /** Stays in the store, and runs after the next start. */
  readonly queued: number;
  /** Until what still runs is ended. */
  readonly leftMs: number;
}

/** The end of this server, asked for by a caller. */
export interface Draining {
  /** `by`: who asks, for the log. */
  begin(by: string): AsyncIterable<DrainProgress>;
}
