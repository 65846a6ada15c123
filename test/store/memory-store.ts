/** The store over memory-level: the same class as on LevelDB, for tests. What it holds lives as long as its `MemoryDisk`. */
import { MemoryLevel } from "memory-level";
import type { Clock } from "../../src/ports/clock.ts";
import type { Log } from "../../src/ports/log.ts";
import type { Database, Engine } from "../../src/store/database.ts";
import { DurableStore } from "../../src/store/durable-store.ts";
import { type Format, formatCurrent, migrations } from "../../src/store/meta.ts";

/** Keeps its content over closing and opening, as a disk does. */
export class MemoryDisk implements Engine {
  readonly #level = new MemoryLevel<string, string>();

  async open(): Promise<Database> {
    const level = this.#level;
    await level.open();
    return {
      get: (key) => level.get(key),
      getMany: (keys) => level.getMany([...keys]),
      entries: (range) => level.iterator(range).all(),
      batchSynced: (operations) => level.batch([...operations]),
      close: () => level.close(),
    };
  }

  async writable(): Promise<void> {}

  async release(): Promise<void> {}
}

export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Pass the same one again to open what an earlier store left. */
  readonly engine?: Engine;
  readonly format?: Format;
}

export function openMemoryStore(options: MemoryStoreOptions): Promise<DurableStore> {
  const { clock, log, engine = new MemoryDisk(), format = { current: formatCurrent, migrations } } = options;
  return DurableStore.open({ engine, folder: "memory", format, clock, log });
}
