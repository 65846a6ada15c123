/** What was written survives a power cut from here on: content by syncing files, names by syncing the folders that hold them. */
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { packageFilesTogetherMax } from "../limits.ts";
import { inLanes } from "./lanes.ts";

/** These files, and every folder from theirs up to `root`. All paths absolute. */
export async function syncTree(root: string, files: Iterable<string>): Promise<void> {
  const paths = new Set([root]);
  for (const file of files) {
    for (let path = file; !paths.has(path); path = dirname(path)) paths.add(path);
  }
  await inLanes(paths, packageFilesTogetherMax, sync);
}

/** A file or a folder. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
