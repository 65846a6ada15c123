/**
 * Stores that no server has open: one to look through, and a new one to fill. Both take the folder as a server would, so neither gets in the
 * way of one.
 *
 * 1. Looking changes no entry: the epoch stays. (LevelDB itself, when it is opened, moves its latest writes from its log into a table.)
 * 2. A new store is unusable until it is finished (unfinished.ts), and one that was not finished can be made anew.
 */
import { mkdir, readdir, rm } from "node:fs/promises";
import { Level } from "level";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { RawEntry, SnapshotSource } from "../ports/snapshot.ts";
import { faultCode } from "./fault-reason.ts";
import { holdFolder } from "./folder-hold.ts";
import { levelEngine, refuseIfLocked } from "./level-engine.ts";
import { epochKey, formatKey } from "./meta.ts";
import { exitCodes, StoreOpenError } from "./store-open-error.ts";
import { openStoreSnapshot } from "./store-snapshot.ts";
import { emptyUnfinished, isUnfinished, markFinished, markUnfinished, syncLogs, unfinishedMark } from "./unfinished.ts";

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
  return names.some((name) => name === unfinishedMark || /^(CURRENT|MANIFEST-.*|.*\.(ldb|sst|log))$/.test(name));
}

export interface NewStore {
  /** Durable only once it is finished. */
  add(entries: readonly RawEntry[]): Promise<void>;
  /** From here on a server opens it. */
  finish(marks: { readonly format: number; readonly epoch: number }): Promise<void>;
  /** Finished or not. */
  close(): Promise<void>;
}

/** The folder must not exist, and the one it is in must. Throws StoreOpenError. */
export async function createStore(folder: string): Promise<NewStore> {
  const notMade = (error: unknown): StoreOpenError =>
    new StoreOpenError(exitCodes.io, `Cannot make a store in "${folder}": ${String(error)}`, error);
  // Of two that begin at once, one makes the folder: whatever the other's next step is, it is not in here.
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    throw notMade(error);
  });
  const hold = await holdFolder(folder);
  const level = new Level<string, string>(folder, { errorIfExists: true });
  const close = async () => {
    await level.close();
    await hold.release();
  };
  try {
    await markUnfinished(folder);
    await level.open();
    await hold.sign();
  } catch (error) {
    await close();
    // A server came in between and has a store there now.
    if (faultCode(error) === "LEVEL_LOCKED") await markFinished(folder);
    else await rm(folder, { recursive: true, force: true });
    throw notMade(error);
  }
  return {
    add: (entries) =>
      level.batch(
        entries.map(([key, value]) => ({ type: "put" as const, key, value })),
        { keyEncoding: "buffer", valueEncoding: "buffer" },
      ),
    async finish({ format, epoch }) {
      await syncLogs(folder);
      await level.batch(
        [
          { type: "put", key: formatKey, value: String(format) },
          { type: "put", key: epochKey, value: String(epoch) },
        ],
        { sync: true },
      );
      await markFinished(folder);
    },
    close,
  };
}

/**
 * Removes what a store that was begun and not finished has left. False: the folder holds something else, and was left as it is.
 * Throws StoreOpenError: somebody is filling it now.
 */
export async function removeUnfinished(folder: string, clock: Clock): Promise<boolean> {
  if (!(await isUnfinished(folder))) return false;
  const hold = await holdFolder(folder);
  try {
    await refuseIfLocked(hold.folder, clock);
    await emptyUnfinished(hold.folder);
    await rm(hold.folder, { recursive: true });
    return true;
  } finally {
    await hold.release();
  }
}
