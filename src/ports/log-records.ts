/** Log lines as records that can be listed and followed, and the disk that keeps them. */
import type { LogLevel, LogSubject } from "./log.ts";

export interface LogRecord extends LogSubject {
  /** ISO-8601 with milliseconds. */
  readonly timestamp: string;
  /** Grows with every record, also over restarts; with gaps. */
  readonly seq: number;
  readonly level: LogLevel;
  readonly event: string;
  readonly message: string;
  readonly error?: string | undefined;
  /** What else the line said. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** Reads reject with Failure `unavailable` while what they need cannot be read from disk. */
export interface LogRecords {
  /** seq of the newest record; 0 before the first. */
  readonly last: number;
  /** Records below `seq`, newest first; none only where no more are kept. */
  before(seq: number, limit: number): Promise<readonly LogRecord[]>;
  /** Records above `seq`, oldest first; empty when there are none yet. */
  after(seq: number, limit: number): Promise<readonly LogRecord[]>;
  /** Resolves when there is a record above `seq`, or `signal` is aborted. */
  appended(seq: number, signal: AbortSignal): Promise<void>;
}

export type SequencedText = readonly [seq: number, text: string];

/** Strictly between both, from the end named. */
export interface LogRange {
  readonly above: number;
  readonly below: number;
  readonly from: "oldest" | "newest";
  readonly limit: number;
}

/** Texts by seq, the newest of them. What it rejects with passes by itself, or does not: try again after a while. */
export interface LogDisk {
  /** seq of the newest text; 0 when there is none. */
  readonly last: number;
  /** All up to this seq were removed. */
  readonly removedUpTo: number;
  /** Ascending, above all before. Removes the oldest beyond what is kept. Does not wait for the disk to sync. */
  append(texts: readonly SequencedText[]): Promise<void>;
  read(range: LogRange): Promise<readonly SequencedText[]>;
  close(): Promise<void>;
}
