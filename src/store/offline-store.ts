/**
 * Stores that no server has open: one to look through, and a new one to fill. Both take the folder as a server would, so neither gets in the
 * way of one.
 *
 * 1. Looking changes no entry: the epoch stays. (LevelDB itself, when it is opened, moves its latest writes from its log into a table.)
 * 2. A new store is unusable until it is finished: its first entry makes it one with data and without a format mark, which no server opens.
 */
import { readdir } from "node:fs/promises";
import { Level } from "level";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { RawEntry, SnapshotSource } from "../ports/snapshot.ts";
import { holdFolder } from "./folder-hold.ts";
import { levelEngine } from "./level-engine.ts";
import { epochKey, formatKey } from "./meta.ts";
import { exitCodes, StoreOpenError } from "./store-open-error.ts";
import { openStoreSnapshot } from "./store-snapshot.ts";

export interface OfflineStore extends SnapshotSource {
  close(): Promise<void>;
}

/** Throws StoreOpenError: none there, in use, damaged. */
export async function openOfflineStore(folder: string, clock: Clock, log: Log): Promise<OfflineStore> {
  // LevelDB would make one.
  if (!(await holdsDatabase(folder))) throw new StoreOpenError(exitCodes.data, `There is no store in "${folder}"`);
  const hold = await holdFolder(folder);
  const engine = levelEngine(hold, clock, log);
  try {
    const database = await engine.open();
    return {
      async snapshot() {
        if (database.snapshot === undefined) throw new Error("LevelDB takes snapshots");
        return openStoreSnapshot(database.snapshot(), (work) => work());
      },
      async close() {
        await database.close();
        await engine.release();
      },
    };
  } catch (error) {
    await engine.release();
    throw error;
  }
}

/** Whole or not. */
export async function holdsDatabase(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  return names.some((name) => /^(CURRENT|MANIFEST-.*|.*\.(ldb|sst|log))$/.test(name));
}

export interface NewStore {
  /** Durable only once it is finished. */
  add(entries: readonly RawEntry[]): Promise<void>;
  /** From here on a server opens it. */
  finish(marks: { readonly format: number; readonly epoch: number }): Promise<void>;
  /** Finished or not. */
  close(): Promise<void>;
}

const unfinishedKey = "m/unfinished";

/** The folder must not exist, or be empty. Throws StoreOpenError. */
export async function createStore(folder: string): Promise<NewStore> {
  const hold = await holdFolder(folder);
  const level = new Level<string, string>(folder, { errorIfExists: true });
  const close = async () => {
    await level.close();
    await hold.release();
  };
  try {
    await level.open();
    await hold.sign();
    await level.put(unfinishedKey, "", { sync: true });
  } catch (error) {
    await close();
    throw new StoreOpenError(exitCodes.io, `Cannot make a store in "${folder}": ${String(error)}`, error);
  }
  return {
    add: (entries) =>
      level.batch(
        entries.map(([key, value]) => ({ type: "put" as const, key, value })),
        { keyEncoding: "buffer", valueEncoding: "buffer" },
      ),
    finish: ({ format, epoch }) =>
      level.batch(
        [
          { type: "put", key: formatKey, value: String(format) },
          { type: "put", key: epochKey, value: String(epoch) },
          { type: "del", key: unfinishedKey },
        ],
        { sync: true },
      ),
    close,
  };
}
