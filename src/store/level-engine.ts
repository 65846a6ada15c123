/**
 * LevelDB in one folder, opened so that damage is found before LevelDB acts on it: it verifies nothing by itself, and at its
 * start it removes whatever its manifest does not name.
 */
import { open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { folderLockAttemptsMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type BackgroundProof, proveInBackground } from "./background-proof.ts";
import type { Database, Engine, Operation } from "./database.ts";
import { faultCode, faultReason } from "./fault-reason.ts";
import { checkFiles } from "./folder-check.ts";
import { type FolderHold, heldElsewhere } from "./folder-hold.ts";
import { levelSnapshot } from "./level-snapshot.ts";
import { SharedReads } from "./shared-reads.ts";
import { damaged, exitCodes, StoreOpenError } from "./store-open-error.ts";
import { refuseUnfinished } from "./unfinished.ts";

export function levelEngine(hold: FolderHold, clock: Clock, log: Log): Engine {
  const { folder } = hold;
  let proof: BackgroundProof | undefined;
  return {
    async open() {
      await refuseIfLocked(folder, clock);
      await refuseUnfinished(folder);
      const unproved = await checkFiles(folder, log).catch(async (error: unknown) => {
        // Files of a process that started in this moment look damaged while they are being written.
        await refuseIfLocked(folder, clock);
        throw error;
      });
      const level = new Level<string, string>(folder);
      try {
        await level.open();
        await hold.sign();
      } catch (error) {
        await level.close();
        throw await openError(folder, error);
      }
      await proof?.stop();
      proof = proveInBackground({ folder, names: unproved, clock, log });
      return toDatabase(level);
    },
    writable: () => proveRoom(folder),
    async release() {
      await proof?.stop();
      await hold.release();
    },
  };
}

function toDatabase(level: Level<string, string>): Database {
  const reads = new SharedReads((keys) => level.getMany(keys));
  return {
    get: async (key) => (await reads.read([key]))[0],
    getMany: (keys) => reads.read(keys),
    entries: (range) => level.iterator(range).all(),
    batchSynced: (operations) => level.batch([...operations] as Mutable<Operation>[], { sync: true }),
    snapshot: () => levelSnapshot(level),
    close: () => level.close(),
  };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * LevelDB takes its lock first and only then looks whether it may open what it finds. Forbidding it to open an existing
 * database makes it a question: is the lock free? Nothing is read or written but its text log.
 */
export async function refuseIfLocked(folder: string, clock: Clock): Promise<void> {
  for (let attempt = 1; await isLocked(folder); attempt += 1) {
    if (attempt === folderLockAttemptsMax) throw await heldElsewhere(folder);
    // Differs between processes, so that two that asked each other in the same moment do not do so again.
    await new Promise<void>((resolve) => clock.after(50 + (process.pid % 10) * 20, resolve));
  }
}

async function isLocked(folder: string): Promise<boolean> {
  const question = new Level<string, string>(folder, { createIfMissing: false, errorIfExists: true });
  try {
    await question.open();
    return false;
  } catch (error) {
    // Any other refusal is met again when the database is opened in earnest.
    return faultCode(error) === "LEVEL_LOCKED";
  } finally {
    await question.close();
  }
}

async function openError(folder: string, error: unknown): Promise<StoreOpenError> {
  const code = faultCode(error);
  if (code === "LEVEL_LOCKED") return heldElsewhere(folder);
  if (code === "LEVEL_CORRUPTION") return damaged(folder, `LevelDB reports "${faultReason(error)}"`, error);
  const advice = "Check the disk, its free space and the folder's permissions";
  return new StoreOpenError(
    exitCodes.io,
    `Cannot open the store in "${folder}": ${faultReason(error)}. ${advice}`,
    error,
  );
}

/**
 * Opening rewrites the logs as tables and starts a new manifest. A disk without room for that would cost the handle that can
 * still be read, so the same amount is written and removed first.
 */
export async function proveRoom(folder: string): Promise<void> {
  const names = await readdir(folder);
  const logs = names.filter((name) => /^(MANIFEST-\d+|\d+\.log)$/.test(name));
  const sizes = await Promise.all(logs.map(async (name) => (await stat(join(folder, name))).size));
  const needed = sizes.reduce((sum, size) => sum + size, headRoomBytes);
  const probe = join(folder, "PROBE");
  const file = await open(probe, "w", 0o600);
  try {
    const piece = Buffer.alloc(64 * 1024, "troupe");
    for (let written = 0; written < needed; written += piece.length) await file.write(piece);
    await file.sync();
  } finally {
    await file.close();
    await rm(probe, { force: true });
  }
}

const headRoomBytes = 1024 * 1024;
