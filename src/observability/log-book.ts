/**
 * The records of the log: the newest in memory, all that are kept on disk. It is there before the disk is, and works without one.
 *
 * 1. seq only grows, also over restarts: a start counts on from the time of day in milliseconds, which is above what any earlier start can
 *    have reached unless it wrote a thousand lines a second all its life; if it did, or the clock was set back, from the newest on disk.
 * 2. What is written to disk is written behind, from the records in memory: a line never waits, and there is no other queue. Records that
 *    have to leave memory before they could be written are lost, counted, and told of once there is a disk again.
 * 3. Readers have positions and no buffers. Whatever is above what left memory is read there, the rest from disk.
 */
import { Failure } from "../errors/failure.ts";
import {
  logCharactersHeldMax,
  logCloseMs,
  logRecordsHeldMax,
  logRecordsWrittenMax,
  logRetryMaxMs,
  logRetryMinMs,
  logTellMs,
  logWriteMs,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { LogDisk, LogRange, LogRecord, LogRecords } from "../ports/log-records.ts";
import type { RecordKeeper } from "./json-log.ts";
import { RecentRecords } from "./recent-records.ts";

export interface LogBookOptions {
  readonly clock: Clock;
  /** Records in memory; absent: `logRecordsHeldMax`. */
  readonly heldMax?: number | undefined;
}

export class LogBook implements LogRecords, RecordKeeper {
  readonly #clock: Clock;
  readonly #recent: RecentRecords;
  readonly #waiting = new Set<() => void>();
  #seq: number;
  #disk: LogDisk | undefined;
  #openDisk: (() => Promise<LogDisk>) | undefined;
  #log: Log | undefined;
  /** seq of the newest record that is on disk, or never will be. */
  #written = 0;
  /** seq of the newest record that is being written. */
  #underWay = 0;
  #writing: Promise<void> | undefined;
  #retryMs = logRetryMinMs;
  #isFailing = false;
  #dropped = 0;
  #droppedTold = 0;
  readonly #burst: number;
  #sinceWrite = 0;
  #cancelWrite: (() => void) | undefined;
  #cancelTell: (() => void) | undefined;
  #isClosed = false;

  constructor({ clock, heldMax = logRecordsHeldMax }: LogBookOptions) {
    this.#clock = clock;
    this.#seq = Math.max(0, Math.floor(clock.now()));
    this.#burst = Math.ceil(heldMax / 10);
    this.#recent = new RecentRecords(heldMax, logCharactersHeldMax);
  }

  get last(): number {
    return this.#recent.last?.seq ?? this.#disk?.last ?? 0;
  }

  /** Records lost so far because they could not be written in time. */
  get dropped(): number {
    return this.#dropped;
  }

  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  append(record: LogRecord): void {
    const left = this.#recent.add(record);
    if (this.#openDisk !== undefined) this.#dropped += left.filter(({ seq }) => seq > this.#underWay).length;
    this.#sinceWrite += 1;
    this.#writeSoon();
    if (this.#waiting.size > 0) this.#cancelTell ??= this.#clock.after(logTellMs, () => this.#tell());
  }

  /** From here on records are written to disk, those in memory first. Resolves after the first try; more follow. */
  async keepOn(openDisk: () => Promise<LogDisk>, log: Log): Promise<void> {
    this.#openDisk = openDisk;
    this.#log = log;
    await this.#write();
  }

  async before(seq: number, limit: number): Promise<readonly LogRecord[]> {
    const floor = this.#disk?.removedUpTo ?? 0;
    const { lowest } = this.#recent;
    const recent = this.#recent.below(seq, limit).filter((record) => record.seq > floor);
    const below = Math.min(seq, lowest);
    const older = this.#read({ above: 0, below, from: "newest", limit: limit - recent.length });
    return [
      ...recent,
      ...(await older.catch((error: unknown) => {
        // What is in memory can be had all the same; whoever goes on below it is refused.
        if (recent.length > 0) return [];
        throw error;
      })),
    ];
  }

  async after(seq: number, limit: number): Promise<readonly LogRecord[]> {
    const { lowest } = this.#recent;
    const recent = this.#recent.above(seq, limit);
    if (seq >= lowest - 1) return recent;
    const older = await this.#read({ above: seq, below: lowest, from: "oldest", limit });
    return [...older, ...recent.slice(0, limit - older.length)];
  }

  async appended(seq: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.last > seq) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  /** Writes what is left, as far as that can be done soon. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#tell();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(logCloseMs, resolve);
    const written = this.#writing ?? Promise.resolve();
    await Promise.race([written.then(() => this.#write()).then(() => this.#disk?.close()), promise]);
    cancel();
    this.#cancelWrite?.();
  }

  #tell(): void {
    this.#cancelTell?.();
    this.#cancelTell = undefined;
    for (const wake of [...this.#waiting]) wake();
  }

  #writeSoon(): void {
    if (this.#openDisk === undefined || this.#isClosed || this.#isFailing || this.#writing !== undefined) return;
    // A burst must not push its own beginning out of memory.
    if (this.#sinceWrite >= this.#burst) void this.#write();
    else this.#cancelWrite ??= this.#clock.after(logWriteMs, () => this.#write());
  }

  /** Never rejects. */
  #write(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      if (this.last > this.#written) this.#writeSoon();
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      this.#disk ??= await this.#open();
      if (this.#disk === undefined) return;
      for (;;) {
        const batch = this.#recent.above(this.#written, logRecordsWrittenMax);
        const newest = batch.at(-1);
        if (newest === undefined) break;
        this.#underWay = newest.seq;
        this.#sinceWrite = 0;
        await this.#disk.append(batch.map((record) => [record.seq, JSON.stringify(record)])).catch((error: unknown) => {
          this.#underWay = this.#written;
          this.#dropped += batch.filter(({ seq }) => seq < this.#recent.lowest).length;
          throw error;
        });
        this.#written = newest.seq;
        this.#works();
        // What came meanwhile waits for company.
        if (batch.length < logRecordsWrittenMax && !this.#isClosed) break;
      }
    } catch (error) {
      this.#fails(error);
    }
  }

  async #open(): Promise<LogDisk | undefined> {
    const disk = await this.#openDisk?.();
    if (disk === undefined) return undefined;
    // Invariant 1. Nobody has seen these records yet: faces open after the disk, unless it failed, and then gaps are told twice at worst.
    const lowest = this.#recent.lowest;
    if (disk.last >= Math.min(lowest, this.#seq)) {
      const shift = disk.last + 1 - Math.min(lowest, this.#seq);
      this.#recent.shift(shift);
      this.#seq += shift;
    }
    this.#written = Math.max(this.#written, disk.last);
    this.#underWay = this.#written;
    return disk;
  }

  #works(): void {
    this.#retryMs = logRetryMinMs;
    const wasFailing = this.#isFailing;
    this.#isFailing = false;
    const count = this.#dropped - this.#droppedTold;
    this.#droppedTold = this.#dropped;
    if (count > 0) {
      const message = `${count} log records could not be written in time and are lost`;
      this.#log?.warn("log-records-dropped", message, { count });
    } else if (wasFailing) this.#log?.info("log-records-kept", "Log records are written again, and none was lost");
  }

  #fails(error: unknown): void {
    const isFirst = !this.#isFailing;
    this.#isFailing = true;
    if (isFirst)
      this.#log?.warn(
        "log-records-not-written",
        "Log records cannot be written; they are held in memory, and the oldest lost",
        { error },
      );
    if (this.#isClosed) return;
    this.#cancelWrite ??= this.#clock.after(this.#retryMs, () => this.#write());
    this.#retryMs = Math.min(this.#retryMs * 2, logRetryMaxMs);
  }

  async #read(range: LogRange): Promise<LogRecord[]> {
    if (range.limit <= 0 || this.#openDisk === undefined) return [];
    // What left memory while it was being written can be read when that is done.
    if (this.#writing !== undefined && this.#written < this.#recent.lowest - 1) await this.#writing;
    if (this.#disk === undefined) throw unreadable();
    try {
      const texts = await this.#disk.read(range);
      return texts.map(([seq, text]) => parsed(seq, text));
    } catch (error) {
      throw unreadable(error);
    }
  }
}

/** Damage that LevelDB did not notice. */
function parsed(seq: number, text: string): LogRecord {
  try {
    return { ...(JSON.parse(text) as LogRecord), seq };
  } catch {
    const timestamp = new Date(0).toISOString();
    return { timestamp, seq, level: "warn", event: "log-record-damaged", message: "This record cannot be read" };
  }
}

function unreadable(cause?: unknown): Failure {
  return new Failure(
    "unavailable",
    "The older log records cannot be read from disk",
    cause === undefined ? {} : { cause },
  );
}
