/**
 * What the store writes about itself: the format of its data, the epoch of the process that owns it, and a probe.
 *
 * 1. Format and epoch are in every store that has data; a store with data and without them is damaged, never new.
 * 2. The epoch is raised durably before anything else is served, so no two opens ever share one.
 */
import type { Database } from "./database.ts";
import { damaged, exitCodes, StoreOpenError } from "./store-open-error.ts";

/** Raised when stored text changes shape; then `migrations` gets an entry from the format before. */
export const formatCurrent = 1;

/** Rewrites a database from the format that is its key to the next one. Safe to run again after a crash half way. */
export type Migrations = Readonly<Record<number, (database: Database) => Promise<void>>>;
export const migrations: Migrations = {};

export interface Format {
  readonly current: number;
  readonly migrations: Migrations;
}

export const formatKey = "m/format";
export const epochKey = "m/epoch";
const probeKey = "m/probe";
/** Keys nobody else may write. */
export const metaKeys: ReadonlySet<string> = new Set([formatKey, epochKey, probeKey]);

/** Checks and, where needed, migrates the format; raises the epoch and answers it. Throws StoreOpenError. */
export async function takeOwnership(database: Database, folder: string, format: Format): Promise<number> {
  const [formatText, epochText] = await database.getMany([formatKey, epochKey]);
  if (formatText === undefined && epochText === undefined) {
    const some = await database.entries({ gt: "", limit: 1 });
    if (some.length > 0) throw damaged(folder, "it has data but no format mark");
    await database.batchSynced([put(formatKey, format.current), put(epochKey, 1)]);
    return 1;
  }
  await migrate(database, folder, format, positiveInteger(formatText, folder, "format mark"));
  const epoch = positiveInteger(epochText, folder, "epoch") + 1;
  await database.batchSynced([put(epochKey, epoch)]);
  return epoch;
}

/**
 * Proves a reopened database: writes durably and reads back what it wrote. Answers false when another process has owned
 * it in between.
 */
export async function isStillOwned(database: Database, epoch: number, nowMs: number): Promise<boolean> {
  const stored = await database.get(epochKey);
  if (stored !== String(epoch)) return false;
  await database.batchSynced([put(probeKey, nowMs)]);
  const probe = await database.get(probeKey);
  if (probe !== String(nowMs)) throw new Error("A synced write was not read back");
  return true;
}

async function migrate(database: Database, folder: string, format: Format, stored: number): Promise<void> {
  if (stored > format.current) {
    const what = `its format ${stored} is newer than the ${format.current} this version reads`;
    throw new StoreOpenError(exitCodes.data, `Cannot open the store in "${folder}": ${what}. Start the newer version`);
  }
  for (let from = stored; from < format.current; from += 1) {
    const step = format.migrations[from];
    if (step === undefined) throw damaged(folder, `there is no way from its format ${from} to ${from + 1}`);
    await step(database);
    await database.batchSynced([put(formatKey, from + 1)]);
  }
}

function put(key: string, value: number) {
  return { type: "put", key, value: String(value) } as const;
}

function positiveInteger(text: string | undefined, folder: string, what: string): number {
  if (text === undefined) throw damaged(folder, `its ${what} is missing`);
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw damaged(folder, `its ${what} is no number`);
  return Number(text);
}
