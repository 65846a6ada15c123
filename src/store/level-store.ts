/** The store of one node: LevelDB in a folder of its own. */
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { StoreMetrics } from "../ports/metrics.ts";
import { DurableStore } from "./durable-store.ts";
import { holdFolder } from "./folder-hold.ts";
import { levelEngine } from "./level-engine.ts";
import { type Format, formatCurrent, migrations } from "./meta.ts";

export interface LevelStoreOptions {
  /** Created with mode 0700 where missing. Holds nothing but the database. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: StoreMetrics | undefined;
  /** The format this version reads and the ways to it from older ones. */
  readonly format?: Format;
}

/** Throws StoreOpenError: in use by another process, newer, damaged, or not readable. Removes nothing when it refuses. */
export async function openLevelStore(options: LevelStoreOptions): Promise<DurableStore> {
  const { clock, log, metrics, format = { current: formatCurrent, migrations } } = options;
  const hold = await holdFolder(options.folder);
  try {
    const engine = levelEngine(hold, clock, log);
    const started = clock.monotonic();
    const store = await DurableStore.open({ engine, folder: hold.folder, format, clock, log, metrics });
    const durationMs = clock.monotonic() - started;
    log.info("store-opened", `The store in "${hold.folder}" is open`, { epoch: store.epoch, durationMs });
    return store;
  } catch (error) {
    await hold.release();
    throw error;
  }
}
