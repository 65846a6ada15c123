/**
 * A store that is being filled, and the mark that says so: a file beside those of LevelDB, which knows nothing of it.
 *
 * 1. The mark is on disk before the first entry is, and goes when everything else is on disk. While it is there no server opens the folder.
 * 2. A marked folder holds nothing that is not somewhere else: it may be emptied to begin again. The mark goes last then, so that being cut
 *    off once more changes nothing.
 */
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { exitCodes, StoreOpenError } from "./store-open-error.ts";

export const unfinishedMark = "UNFINISHED";

export async function markUnfinished(folder: string): Promise<void> {
  const mark = await open(join(folder, unfinishedMark), "w", 0o600);
  await mark.close();
  await syncPath(folder);
}

/** Before it, the entry that ends the filling must be written. */
export async function markFinished(folder: string): Promise<void> {
  await rm(join(folder, unfinishedMark));
  await syncPath(folder);
}

export async function isUnfinished(folder: string): Promise<boolean> {
  return (await readdir(folder).catch((): string[] => [])).includes(unfinishedMark);
}

/** Where somebody is filling it at this moment, that is to be said instead (`refuseIfLocked`). */
export async function refuseUnfinished(folder: string): Promise<void> {
  if (!(await isUnfinished(folder))) return;
  const advice = "Restore it again";
  const why = "a restore into it was cut off before everything was there";
  throw new StoreOpenError(exitCodes.data, `Cannot open the store in "${folder}": ${why}. ${advice}`);
}

export async function emptyUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name !== unfinishedMark) await rm(join(folder, name), { recursive: true });
  }
}

/**
 * What was written without a sync. LevelDB itself syncs a table before it forgets the log that it was made of, and no log when it begins the
 * next one: a synced entry says nothing of those before it. LOCK is never opened: closing it would drop the lock (folder-hold.ts).
 */
export async function syncLogs(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/^\d+\.log$/.test(name)) await syncPath(join(folder, name)).catch(unlessGone);
  }
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Made into a table meanwhile. */
function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
