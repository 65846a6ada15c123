/**
 * Log records in a LevelDB of their own, beside the store and never in its way: nothing here waits for the disk to sync, and whatever is
 * wrong with the folder costs records, never a start.
 *
 * 1. Keys are seqs in fixed width. One more entry says how many there are and up to where the oldest were removed; it is written in the
 *    batches that change it.
 * 2. The oldest go in the batch that would exceed what is kept, at once so many that this is seldom.
 */
import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Level } from "level";
import { logRecordsRemovedMax } from "../limits.ts";
import type { Log } from "../ports/log.ts";
import type { LogDisk, LogRange, SequencedText } from "../ports/log-records.ts";
import { faultCode, faultReason } from "./fault-reason.ts";
import { proveRoom } from "./level-engine.ts";

export interface LogDiskOptions {
  /** Created where missing. Holds nothing but the database; a damaged one is renamed to `<folder>.damaged-<time>`. */
  readonly folder: string;
  /** Records to keep, above 0; at times one in a hundred more. */
  readonly keep: number;
  readonly now: () => number;
  readonly log: Log;
}

interface Census {
  count: number;
  removedUpTo: number;
}

const recordPrefix = "r";
const allRecords = { gt: recordPrefix, lt: "s" } as const;
const censusKey = "census";
const seqDigits = 16;

interface Opened {
  readonly level: Level<string, string>;
  readonly census: Census;
  /** seq of the newest record; 0 when there is none. */
  readonly last: number;
}

/** Rejects while the folder cannot be opened, for lack of room or because another process has it. */
export async function openLogDisk(options: LogDiskOptions): Promise<LogDisk> {
  return new LevelLogDisk(options, await openLevel(options));
}

async function openLevel(options: LogDiskOptions): Promise<Opened> {
  try {
    return await readLevel(options.folder);
  } catch (error) {
    if (!isDamage(error)) throw error;
    await moveAside(options, faultReason(error));
    return readLevel(options.folder);
  }
}

async function readLevel(folder: string): Promise<Opened> {
  const level = new Level<string, string>(folder);
  try {
    await level.open();
    const [newest] = await level.keys({ ...allRecords, reverse: true, limit: 1 }).all();
    const census = (await readCensus(level)) ?? { count: await countRecords(level), removedUpTo: 0 };
    return { level, census, last: newest === undefined ? 0 : seqOf(newest) };
  } catch (error) {
    await level.close();
    throw error;
  }
}

/**
 * After a failed write LevelDB takes no other until it is opened again; what can still be read is given up only when the disk has
 * room for that.
 */
class LevelLogDisk implements LogDisk {
  readonly #options: LogDiskOptions;
  #opened: Opened;
  #census: Census;
  #last: number;
  #fault: { readonly isDamaged: boolean } | undefined;

  constructor(options: LogDiskOptions, opened: Opened) {
    this.#options = options;
    this.#opened = opened;
    this.#census = opened.census;
    this.#last = opened.last;
  }

  get last(): number {
    return this.#last;
  }

  get removedUpTo(): number {
    return this.#census.removedUpTo;
  }

  async append(texts: readonly SequencedText[]): Promise<void> {
    if (this.#fault !== undefined) await this.#openAgain(this.#fault.isDamaged);
    const { keep } = this.#options;
    await this.#noticed(async () => {
      // Those of a try that failed after they were there are not written, and counted, again.
      const fresh = texts.filter(([seq]) => seq > this.#last);
      await this.#write(fresh, 0);
      this.#last = fresh.at(-1)?.[0] ?? this.#last;
      const slack = Math.ceil(keep / 100);
      if (this.#census.count <= keep + slack) return;
      while (this.#census.count > keep) await this.#write([], this.#census.count - keep);
    });
  }

  async read({ above, below, from, limit }: LogRange): Promise<readonly SequencedText[]> {
    const floor = Math.max(above, this.#census.removedUpTo);
    if (below <= floor) return [];
    const range = { gt: keyOf(floor), lt: keyOf(below), reverse: from === "newest", limit };
    try {
      const entries = await this.#opened.level.iterator(range).all();
      return entries.map(([key, text]) => [seqOf(key), text] as const);
    } catch (error) {
      if (isDamage(error)) this.#fault = { isDamaged: true };
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#opened.level.close();
  }

  async #write(texts: readonly SequencedText[], excess: number): Promise<void> {
    const { level } = this.#opened;
    const { count, removedUpTo } = this.#census;
    const limit = Math.min(excess, logRecordsRemovedMax);
    // From where the last ones were removed: LevelDB would walk over the traces of all that went before.
    const oldest = limit === 0 ? [] : await level.keys({ ...allRecords, gt: keyOf(removedUpTo), limit }).all();
    const lastRemoved = oldest.at(-1);
    const census = {
      // Fewer than were counted: damage took some.
      count: oldest.length < limit ? 0 : count + texts.length - oldest.length,
      removedUpTo: lastRemoved === undefined ? removedUpTo : seqOf(lastRemoved),
    };
    await level.batch([
      ...texts.map(([seq, value]) => ({ type: "put" as const, key: keyOf(seq), value })),
      ...oldest.map((key) => ({ type: "del" as const, key })),
      { type: "put" as const, key: censusKey, value: JSON.stringify(census) },
    ]);
    this.#census = census;
  }

  async #noticed(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fault = { isDamaged: isDamage(error) };
      throw error;
    }
  }

  async #openAgain(isDamaged: boolean): Promise<void> {
    const { level } = this.#opened;
    const { folder } = this.#options;
    if (level.status === "open" && !isDamaged) await proveRoom(folder);
    await level.close();
    if (isDamaged) await moveAside(this.#options, "damage was met while it was used");
    this.#fault = { isDamaged: false };
    this.#opened = await openLevel(this.#options);
    this.#census = this.#opened.census;
    this.#fault = undefined;
  }
}

/** Of a file that is named by another and missing, LevelDB only says that there is none. */
function isDamage(error: unknown): boolean {
  return faultCode(error) === "LEVEL_CORRUPTION" || faultReason(error) === "no such file or directory";
}

async function readCensus(level: Level<string, string>): Promise<Census | undefined> {
  const text = await level.get(censusKey);
  if (text === undefined) return undefined;
  try {
    const { count, removedUpTo } = JSON.parse(text) as Census;
    return Number.isSafeInteger(count) && Number.isSafeInteger(removedUpTo) ? { count, removedUpTo } : undefined;
  } catch {
    return undefined;
  }
}

async function countRecords(level: Level<string, string>): Promise<number> {
  let count = 0;
  for await (const _ of level.keys(allRecords)) count += 1;
  return count;
}

/** The folder as it is, for whoever wants to look; only the latest such folder is kept. */
async function moveAside({ folder, now, log }: LogDiskOptions, reason: string): Promise<void> {
  const parent = dirname(folder);
  const prefix = `${basename(folder)}.damaged-`;
  for (const name of await readdir(parent)) {
    if (name.startsWith(prefix)) await rm(join(parent, name), { recursive: true, force: true });
  }
  const aside = join(parent, `${prefix}${new Date(now()).toISOString().replaceAll(":", "-")}`);
  await rename(folder, aside);
  log.warn("log-records-damaged", `The log records are damaged and were moved to "${aside}"`, { reason });
}

function keyOf(seq: number): string {
  return `${recordPrefix}${String(seq).padStart(seqDigits, "0")}`;
}

function seqOf(key: string): number {
  return Number(key.slice(recordPrefix.length));
}
