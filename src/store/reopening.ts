/**
 * The database in use, and its replacement after a failure: wait, ask whether the disk takes writes, let reads finish, close,
 * open, prove. Tries until it works or the store closes; how long is too long is the supervisor's decision.
 */
import { Failure } from "../errors/failure.ts";
import { storeReopenMaxMs, storeReopenMinMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Database, Engine } from "./database.ts";
import { faultReason } from "./fault-reason.ts";

export interface ReopeningParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
}

/** False: it works, but another process has owned it in between. */
type Prove = (database: Database) => Promise<boolean>;

export class Reopening {
  readonly #parts: ReopeningParts;
  /** Undefined once closed for good, and while a new one cannot be opened. */
  #database: Database | undefined;
  /** Closed for reading but, its close having failed, still holding the folder. */
  #leaving: Database | undefined;
  #reads = 0;
  #readsDone: (() => void) | undefined;
  /** A replacement under way: reads wait for it. */
  #replacing: Promise<void> | undefined;
  /** A try under way, the question to the disk included: close waits for it. */
  #trying: Promise<void> | undefined;
  #cancelWait: (() => void) | undefined;
  #isClosed = false;

  constructor(parts: ReopeningParts, database: Database) {
    this.#parts = parts;
    this.#database = database;
  }

  /** For writing. The store asks only while it is open. */
  get database(): Database {
    if (this.#database === undefined) throw new Error("The database is not open");
    return this.#database;
  }

  /** Waits for a reopening under way. Any error of the engine is Failure `unavailable`: the caller may try again. */
  async read<T>(work: (database: Database) => Promise<T>): Promise<T> {
    await this.#replacing;
    const database = this.#database;
    if (database === undefined) {
      throw new Failure("unavailable", this.#isClosed ? "The store is closed" : "The store cannot be read", retry);
    }
    this.#reads += 1;
    try {
      return await work(database);
    } catch (error) {
      this.#parts.log.error("store-read-failed", "The store could not be read", { error });
      throw new Failure("unavailable", `The store cannot be read: ${faultReason(error)}`, { ...retry, cause: error });
    } finally {
      this.#reads -= 1;
      if (this.#reads === 0) this.#readsDone?.();
    }
  }

  /** `prove` judges the new database before anything is served from it; `done` gets its answer. */
  start(prove: Prove, done: (answer: boolean) => void): void {
    const tryAfter = (delayMs: number) => {
      if (this.#isClosed) return;
      this.#cancelWait = this.#parts.clock.after(delayMs, () => {
        this.#trying = this.#try(prove, done).catch((error: unknown) => {
          const next = Math.min(delayMs * 2, storeReopenMaxMs);
          this.#parts.log.warn("store-reopen-failed", `The store cannot be reopened yet; next try in ${next} ms`, {
            error,
          });
          tryAfter(next);
        });
      });
    };
    tryAfter(storeReopenMinMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelWait?.();
    await this.#trying;
    await this.#giveUp();
  }

  async #try(prove: Prove, done: (answer: boolean) => void): Promise<void> {
    await this.#parts.engine.writable();
    if (this.#isClosed) return;
    const replaced = this.#replace(prove);
    this.#replacing = replaced.then(ignore, ignore);
    try {
      done(await replaced);
    } finally {
      this.#replacing = undefined;
    }
  }

  async #replace(prove: Prove): Promise<boolean> {
    await this.#giveUp();
    const database = await this.#parts.engine.open();
    try {
      const answer = await prove(database);
      this.#database = database;
      return answer;
    } catch (error) {
      this.#leaving = database;
      await this.#giveUp();
      throw error;
    }
  }

  /** Lets reads finish, then closes. If closing fails the folder is still held: it is tried again before the next open. */
  async #giveUp(): Promise<void> {
    this.#leaving ??= this.#database;
    this.#database = undefined;
    if (this.#reads > 0) {
      await new Promise<void>((resolve) => {
        this.#readsDone = resolve;
      });
    }
    await this.#leaving?.close();
    this.#leaving = undefined;
  }
}

const retry = { retryAfterSeconds: 2 };

function ignore(): void {}
