/**
 * The store of one node over an ordered database: commits of one turn of the event loop share one synced batch.
 *
 * 1. One batch is on its way at a time; commits made meanwhile wait in order for the next (`commit-queue.ts`).
 * 2. "ok" is answered only after the batch was synced. A batch that failed may still be on disk: its commits are "unknown".
 * 3. After a failed batch nothing is acknowledged before the database was closed, opened again and proved by a synced probe.
 *    LevelDB may otherwise append behind a torn record and lose what follows it at the next start.
 * 4. A failing database stays open for reading until the disk takes writes again.
 */
import { LRUCache } from "lru-cache";
import { Failure } from "../errors/failure.ts";
import {
  batchCharactersMax,
  batchWritesMax,
  commitCharactersQueuedMax,
  commitsQueuedMax,
  revisionsKnownMax,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { StoreMetrics } from "../ports/metrics.ts";
import type { SnapshotSource, StoreSnapshot } from "../ports/snapshot.ts";
import type { Commit, Entry, Outcome, Range, Store, StoredRecord, StoreHealth } from "../ports/store.ts";
import { type BatchPlan, planBatch } from "./batch-plan.ts";
import { CommitQueue, type QueuedCommit } from "./commit-queue.ts";
import type { Database, Engine } from "./database.ts";
import { HealthSign } from "./health-sign.ts";
import { checkCommit, keyRange } from "./keys.ts";
import { type Format, isStillOwned, takeOwnership } from "./meta.ts";
import { decodeRecord } from "./record-text.ts";
import { Reopening } from "./reopening.ts";
import { openStoreSnapshot } from "./store-snapshot.ts";

export interface DurableStoreOptions {
  readonly engine: Engine;
  /** For messages to the operator. */
  readonly folder: string;
  readonly format: Format;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: StoreMetrics | undefined;
}

/** Counters for tests, benchmarks and the operator. */
export interface StoreCounters {
  readonly syncs: number;
  readonly commits: number;
  readonly queued: number;
  readonly revisionReads: number;
  readonly reopens: number;
}

const batchBounds = { writesMax: batchWritesMax, charactersMax: batchCharactersMax };

export class DurableStore implements Store, SnapshotSource {
  readonly epoch: number;
  readonly #options: DurableStoreOptions;
  readonly #queue = new CommitQueue({ commitsMax: commitsQueuedMax, charactersMax: commitCharactersQueuedMax });
  /** Invariant: what is known here is on disk. 0: known to be absent. */
  readonly #revisions = new LRUCache<string, number>({ max: revisionsKnownMax });
  readonly #health: HealthSign;
  readonly #reopening: Reopening;
  #state: "open" | "failing" | "lost" | "closed" = "open";
  #writing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #counters = { syncs: 0, commits: 0, revisionReads: 0, reopens: 0 };

  /** Takes ownership of the database: raises the epoch. Rejects with StoreOpenError and leaves nothing open. */
  static async open(options: DurableStoreOptions): Promise<DurableStore> {
    const database = await options.engine.open();
    try {
      const epoch = await takeOwnership(database, options.folder, options.format);
      return new DurableStore(options, database, epoch);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  private constructor(options: DurableStoreOptions, database: Database, epoch: number) {
    this.#options = options;
    this.epoch = epoch;
    this.#health = new HealthSign(options.log);
    this.#reopening = new Reopening(options, database);
  }

  async load(key: string): Promise<StoredRecord | undefined> {
    const [record] = await this.loadMany([key]);
    return record;
  }

  async loadMany(keys: readonly string[]): Promise<readonly (StoredRecord | undefined)[]> {
    const texts = await this.read(keys);
    return texts.map((text, place) => {
      const record = text === undefined ? undefined : decodeRecord(text);
      if (text !== undefined && record === undefined) throw new Error(`Stored text of "${keys[place]}" is no record`);
      this.#remember(keys[place]!, record?.revision ?? 0);
      return record;
    });
  }

  /** Whoever loads a record is likely to write it next. What a commit has made known since the read is newer. */
  #remember(key: string, revision: number): void {
    if (!this.#revisions.has(key)) this.#revisions.set(key, revision);
  }

  read(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.#reopening.read((database) => database.getMany(keys));
  }

  async range(range: Range): Promise<readonly Entry[]> {
    const bounds = keyRange(range);
    if (bounds === undefined) return [];
    const entries = await this.#reopening.read((database) => database.entries(bounds));
    return entries.map(([key, value]) => ({ key, value }));
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#reopening.read(async (database) => {
      if (database.snapshot === undefined) throw new Error("its engine takes no snapshots");
      return openStoreSnapshot(database.snapshot(), (work) =>
        this.#reopening.read((current) => {
          if (current !== database) throw new Error("it was opened again since");
          return work();
        }),
      );
    });
  }

  async commit(commits: readonly Commit[]): Promise<readonly Outcome[]> {
    for (const commit of commits) checkCommit(commit);
    if (commits.length === 0) return [];
    if (this.#state === "lost") return commits.map(() => "fenced");
    if (this.#state !== "open" || this.#closing !== undefined) throw this.#refusal();
    const outcomes = this.#queue.add(commits, this.#options.clock.now());
    this.#writing ??= this.#write();
    return outcomes;
  }

  health(): StoreHealth {
    return this.#health.current;
  }

  onHealth(listener: (health: StoreHealth) => void): () => void {
    return this.#health.listen(listener);
  }

  inspect(): StoreCounters {
    return { ...this.#counters, queued: this.#queue.length };
  }

  /** Takes nothing new, finishes what was taken, then closes. Again: the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#writing;
    this.#state = "closed";
    await this.#reopening.close();
    await this.#options.engine.release();
  }

  /** Writes batch after batch until the queue is empty or a batch failed. */
  async #write(): Promise<void> {
    do {
      // Until the end of the turn: its commits, and those of callers woken by the batch before, go together.
      await new Promise(setImmediate);
      await this.#writeBatch(this.#queue.take(batchBounds));
    } while (this.#state === "open" && this.#queue.length > 0);
    this.#writing = undefined;
  }

  async #writeBatch(queued: readonly QueuedCommit[]): Promise<void> {
    let plan: BatchPlan;
    try {
      const commits = queued.map(({ commit }) => commit);
      plan = planBatch(commits, this.epoch, await this.#currentRevisions(commits));
      if (plan.operations.length > 0) {
        const { clock, metrics } = this.#options;
        const begun = clock.monotonic();
        await this.#reopening.database.batchSynced(plan.operations);
        metrics?.synced(queued.length, clock.monotonic() - begun);
        this.#counters.syncs += 1;
      }
    } catch (error) {
      this.#fail(error, queued);
      return;
    }
    for (const { key } of plan.operations) this.#revisions.delete(key);
    for (const [key, revision] of plan.revisions) this.#revisions.set(key, revision);
    this.#counters.commits += queued.length;
    queued.forEach(({ commit, answer }, place) => {
      const outcome = plan.outcomes[place]!;
      // Whoever is wrong about the revision, the disk is asked next time.
      if (outcome === "conflict") this.#revisions.delete(commit.record.key);
      answer(outcome);
    });
  }

  async #currentRevisions(commits: readonly Commit[]): Promise<ReadonlyMap<string, number>> {
    const revisions = new Map<string, number>();
    const missing = new Set<string>();
    for (const { record } of commits) {
      const known = this.#revisions.get(record.key);
      if (known === undefined) missing.add(record.key);
      else revisions.set(record.key, known);
    }
    if (missing.size === 0) return revisions;
    const keys = [...missing];
    const texts = await this.#reopening.database.getMany(keys);
    this.#counters.revisionReads += keys.length;
    keys.forEach((key, place) => {
      const text = texts[place];
      revisions.set(key, text === undefined ? 0 : (decodeRecord(text)?.revision ?? Number.NaN));
    });
    return revisions;
  }

  #fail(error: unknown, tried: readonly QueuedCommit[]): void {
    this.#state = "failing";
    this.#health.fail(error, this.#options.clock.now());
    this.#options.log.error("store-failing", "A batch could not be written; the store is reopened", { error });
    for (const { answer } of tried) answer("unknown");
    for (const { refuse } of this.#queue.takeAll()) refuse(this.#refusal());
    this.#reopening.start(
      (database) => isStillOwned(database, this.epoch, this.#options.clock.now()),
      (owned) => this.#reopened(owned),
    );
  }

  #reopened(owned: boolean): void {
    this.#revisions.clear();
    this.#counters.reopens += 1;
    if (!owned) {
      this.#state = "lost";
      this.#health.fail(new Error("Another process has owned the store in between"), this.#options.clock.now());
      return;
    }
    this.#state = "open";
    this.#options.log.info("store-reopened", "The store was reopened and takes writes again");
    this.#health.recover();
  }

  #refusal(): Failure {
    const health = this.#health.current;
    if (this.#closing !== undefined || health.ok) return new Failure("unavailable", "The store is closed");
    return new Failure("unavailable", `The store takes no writes: ${health.reason}`, { retryAfterSeconds: 2 });
  }
}
