import type { Store } from "../../src/ports/store.ts";
import type { DurableStore } from "../../src/store/durable-store.ts";
import { storeContract } from "./contract.ts";
import { MemoryDisk, openMemoryStore } from "./memory-store.ts";
import { keptLog, wallClock } from "./parts.ts";

const disks = new Map<Store, MemoryDisk>();

async function openOn(engine: MemoryDisk): Promise<DurableStore> {
  const store = await openMemoryStore({ engine, clock: wallClock, log: keptLog() });
  disks.set(store, engine);
  return store;
}

storeContract("memory store", {
  open: () => openOn(new MemoryDisk()),
  reopen: (closed) => openOn(disks.get(closed)!),
  syncs: (store) => (store as DurableStore).inspect().syncs,
});
