/** Wraps an engine and fails on request, as a disk would. */
import type { Database, Engine } from "../../src/store/database.ts";

export interface Faults {
  /** Of the next batch only. before: it does not land. after: it lands, and the answer is an error all the same. */
  nextBatch?: "before" | "after" | undefined;
  /** Before each batch. */
  batchDelayMs?: number;
  /** While true. */
  reads?: boolean;
  opens?: boolean;
  writable?: boolean;
}

export class FaultyLevel implements Engine {
  readonly faults: Faults = {};
  /** Sizes of the batches asked for, in operations. */
  readonly batches: number[] = [];
  opens = 0;
  /** Runs on the real database before the next opening is answered: what another process did meanwhile. */
  beforeNextOpen: ((database: Database) => Promise<void>) | undefined;
  closes = 0;
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async open(): Promise<Database> {
    if (this.faults.opens) throw diskError("EIO", "i/o error, open");
    const database = await this.#engine.open();
    await this.beforeNextOpen?.(database);
    this.beforeNextOpen = undefined;
    this.opens += 1;
    const { faults, batches } = this;
    const read = async <T>(work: () => Promise<T>): Promise<T> => {
      if (faults.reads) throw diskError("EIO", "i/o error, read '/data/000005.ldb'");
      return work();
    };
    return {
      get: (key) => read(() => database.get(key)),
      getMany: (keys) => read(() => database.getMany(keys)),
      entries: (range) => read(() => database.entries(range)),
      async batchSynced(operations) {
        batches.push(operations.length);
        if (faults.batchDelayMs) await new Promise((resolve) => setTimeout(resolve, faults.batchDelayMs));
        const fault = faults.nextBatch;
        faults.nextBatch = undefined;
        if (fault !== "before") await database.batchSynced(operations);
        if (fault !== undefined) throw diskError("ENOSPC", "no space left on device, write '/data/000004.log'");
      },
      close: async () => {
        this.closes += 1;
        await database.close();
      },
    };
  }

  async writable(): Promise<void> {
    if (this.faults.writable) throw diskError("ENOSPC", "no space left on device, write");
    await this.#engine.writable();
  }

  release(): Promise<void> {
    return this.#engine.release();
  }
}

/** Shaped as the engine gives it: the reason is in the cause. */
function diskError(code: string, text: string): Error {
  const cause = Object.assign(new Error(`${code}: ${text}`), { code });
  return Object.assign(new Error("Database is not writable", { cause }), { code: "LEVEL_IO_ERROR" });
}
