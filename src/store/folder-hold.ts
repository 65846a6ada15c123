/**
 * One store per folder, in this process and beyond it.
 *
 * 1. LevelDB's own lock on the file LOCK is the truth between processes; it goes with the process, however that ends.
 * 2. That lock belongs to the process, not to the handle: closing any descriptor on LOCK drops it. So a second open in one
 *    process must be refused before LevelDB sees it, and nothing here ever opens LOCK.
 * 3. The pid file only makes a message better. A stale one is overwritten, never believed.
 */
import { mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exitCodes, StoreOpenError } from "./store-open-error.ts";

const heldHere = new Set<string>();

export interface FolderHold {
  /** Absolute, without links: two names of one folder are one folder. */
  readonly folder: string;
  /** Names this process for others; call once LevelDB's lock is held. */
  sign(): Promise<void>;
  release(): Promise<void>;
}

/** Creates the folder (mode 0700) where it is missing. Throws StoreOpenError. */
export async function holdFolder(name: string): Promise<FolderHold> {
  const folder = await makeFolder(name);
  if (heldHere.has(folder)) throw folderInUse(folder, "this process");
  heldHere.add(folder);
  let isSigned = false;
  return {
    folder,
    async sign() {
      await writeFile(pidFile(folder), `${process.pid}\n`, { mode: 0o600 });
      isSigned = true;
    },
    async release() {
      // LevelDB's lock is free by now: another process may have signed already.
      if (isSigned && (await signature(folder)) === process.pid) await rm(pidFile(folder), { force: true });
      heldHere.delete(folder);
    },
  };
}

/** The refusal when LevelDB says that somebody else has the lock. */
export async function heldElsewhere(folder: string): Promise<StoreOpenError> {
  const pid = await signature(folder);
  return folderInUse(folder, pid > 0 && isAlive(pid) ? `process ${pid}` : "another process");
}

function folderInUse(folder: string, holder: string): StoreOpenError {
  const advice = "Stop it first, or set SERVICE_DATA_DIR to another folder";
  return new StoreOpenError(exitCodes.inUse, `Cannot open the store in "${folder}": ${holder} is using it. ${advice}`);
}

async function makeFolder(name: string): Promise<string> {
  try {
    await mkdir(name, { recursive: true, mode: 0o700 });
    return await realpath(name);
  } catch (error) {
    throw new StoreOpenError(exitCodes.io, `Cannot create the store's folder "${name}": ${String(error)}`, error);
  }
}

async function signature(folder: string): Promise<number> {
  return Number.parseInt(await readFile(pidFile(folder), "utf8").catch(() => ""), 10);
}

function pidFile(folder: string): string {
  return join(folder, "PID");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: alive, and another user's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
