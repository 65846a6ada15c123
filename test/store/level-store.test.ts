import { rm } from "node:fs/promises";
import type { Store } from "../../src/ports/store.ts";
import type { DurableStore } from "../../src/store/durable-store.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { storeContract } from "./contract.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";

const folders = new Map<Store, string>();

async function openIn(folder: string): Promise<DurableStore> {
  const store = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
  folders.set(store, folder);
  return store;
}

storeContract("LevelDB store", {
  open: async () => openIn((await temporaryFolder()).path),
  reopen: (closed) => openIn(folders.get(closed)!),
  syncs: (store) => (store as DurableStore).inspect().syncs,
  async dispose() {
    for (const folder of new Set(folders.values())) await rm(folder, { recursive: true, force: true });
    folders.clear();
  },
});
