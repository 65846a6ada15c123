/**
 * R-086 and its relatives: after any failed batch nothing is acknowledged before the database was closed, opened again and
 * proved, and nothing acknowledged is lost. Faults are injected around the real engines.
 */
import { rm } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { commitsQueuedMax } from "../../src/limits.ts";
import type { StoreHealth } from "../../src/ports/store.ts";
import type { Engine } from "../../src/store/database.ts";
import { DurableStore } from "../../src/store/durable-store.ts";
import { holdFolder } from "../../src/store/folder-hold.ts";
import { levelEngine } from "../../src/store/level-engine.ts";
import { formatCurrent, migrations } from "../../src/store/meta.ts";
import { until } from "../until.ts";
import { change } from "./commits.ts";
import { FaultyLevel } from "./faulty-level.ts";
import { MemoryDisk } from "./memory-store.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";

const folders: string[] = [];
const engines: readonly [string, () => Promise<Engine>][] = [
  ["memory-level", async () => new MemoryDisk()],
  [
    "LevelDB",
    async () => {
      const { path } = await temporaryFolder();
      folders.push(path);
      return levelEngine(await holdFolder(path), wallClock, keptLog());
    },
  ],
];

describe.each(engines)("a failing store over %s", (_name, makeEngine) => {
  const opened: DurableStore[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
  });

  async function open(engine?: FaultyLevel) {
    const level = engine ?? new FaultyLevel(await makeEngine());
    const log = keptLog();
    const format = { current: formatCurrent, migrations };
    const store = await DurableStore.open({ engine: level, folder: "test", format, clock: wallClock, log });
    opened.push(store);
    const changes: StoreHealth[] = [];
    store.onHealth((health) => changes.push(health));
    const healthy = () => until(() => store.health().ok);
    return { store, level, log, changes, healthy };
  }

  it.each(["before", "after"] as const)(
    "a batch that fails %s landing answers unknown, then the store recovers",
    async (when) => {
      const { store, level, changes, healthy } = await open();
      await store.commit([change(store, "a/kept", 0, "kept")]);
      level.faults.nextBatch = when;
      expect(await store.commit([change(store, "a/1", 0, "x"), change(store, "a/2", 0, "y")])).toEqual([
        "unknown",
        "unknown",
      ]);
      expect(store.health()).toMatchObject({ ok: false, reason: "no space left on device" });
      await healthy();
      expect(changes.map(({ ok }) => ok)).toEqual([false, true]);
      const landed = when === "after";
      expect((await store.load("a/1")) !== undefined).toBe(landed);
      expect(
        await store.commit([change(store, "a/1", landed ? 1 : 0, "z"), change(store, "a/kept", 1, "more")]),
      ).toEqual(["ok", "ok"]);
      expect(level.opens).toBe(2);
    },
  );

  it("a conflict with a commit of the same failed batch is unknown too, a fenced one is never written", async () => {
    const { store, level, healthy } = await open();
    level.faults.nextBatch = "before";
    const outcomes = await store.commit([
      change(store, "a/1", 0, "lost"),
      change(store, "a/1", 0, "would have won"),
      { ...change(store, "a/2", 0, "x"), epoch: store.epoch - 1 },
    ]);
    expect(outcomes).toEqual(["unknown", "unknown", "unknown"]);
    await healthy();
    expect(await store.loadMany(["a/1", "a/2"])).toEqual([undefined, undefined]);
    expect(await store.commit([change(store, "a/1", 0, "won")])).toEqual(["ok"]);
  });

  it("no commit is acknowledged between a failed batch and the reopening", async () => {
    const { store, level, healthy } = await open();
    level.faults.nextBatch = "before";
    level.faults.opens = true;
    await store.commit([change(store, "a/1", 0, "x")]);
    const closesBefore = level.closes;
    for (let n = 0; n < 5; n += 1) {
      await expect(store.commit([change(store, "a/2", 0, "x")])).rejects.toMatchObject({
        kind: "unavailable",
        message: "The store takes no writes: no space left on device",
      });
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    level.faults.opens = false;
    await healthy();
    expect(level.closes).toBeGreaterThan(closesBefore);
    expect(await store.commit([change(store, "a/2", 0, "x")])).toEqual(["ok"]);
  });

  it("commits queued behind a failing batch are refused, or unknown where another of their call was tried", async () => {
    const { store, level, healthy } = await open();
    level.faults.batchDelayMs = 50;
    level.faults.nextBatch = "before";
    const tried = store.commit([change(store, "a/1", 0, "x")]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const queued = store.commit([change(store, "a/2", 0, "x")]);
    expect(await tried).toEqual(["unknown"]);
    await expect(queued).rejects.toMatchObject({ kind: "unavailable" });
    await healthy();
    level.faults.nextBatch = "before";
    // Larger than two batches: the first is tried, the last is not, and no order of answers may be invented.
    const many = Array.from({ length: 2_500 }, (_, n) => change(store, `b/${n}`, 0, "x"));
    expect(new Set(await store.commit(many))).toEqual(new Set(["unknown"]));
    await healthy();
    expect(await store.load("b/2499")).toBeUndefined();
  });

  it("reads go on while the disk takes no writes, and see nothing that is not durable", async () => {
    const { store, level, healthy } = await open();
    await store.commit([change(store, "a/1", 0, "one", [{ key: "x/1", value: "x" }])]);
    level.faults.nextBatch = "before";
    level.faults.writable = true;
    await store.commit([change(store, "a/1", 1, "two")]);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(store.health().ok).toBe(false);
    expect(await store.load("a/1")).toEqual({ value: "one", revision: 1 });
    expect(await store.range({ prefix: "x/", limit: 5 })).toHaveLength(1);
    expect(level.opens).toBe(1);
    level.faults.writable = false;
    await healthy();
    expect(level.opens).toBe(2);
  });

  it("reads are unavailable while the database cannot be opened, and work again afterwards", async () => {
    const { store, level, healthy } = await open();
    level.faults.nextBatch = "before";
    level.faults.opens = true;
    await store.commit([change(store, "a/1", 0, "x")]);
    await until(() => level.closes === 1);
    await expect(store.load("a/1")).rejects.toMatchObject({ kind: "unavailable", message: "The store cannot be read" });
    level.faults.opens = false;
    await healthy();
    expect(await store.load("a/1")).toBeUndefined();
  });

  it("a read error is unavailable without paths, and leaves writing alone", async () => {
    const { store, level } = await open();
    level.faults.reads = true;
    await expect(store.load("a/1")).rejects.toMatchObject({
      kind: "unavailable",
      message: "The store cannot be read: i/o error",
    });
    level.faults.reads = false;
    expect(await store.commit([change(store, "a/1", 0, "x")])).toEqual(["ok"]);
    expect(store.health()).toEqual({ ok: true });
  });

  it("a probe that fails after reopening is tried again until it works", async () => {
    const { store, level, log, healthy } = await open();
    level.faults.nextBatch = "before";
    await store.commit([change(store, "a/1", 0, "x")]);
    level.faults.nextBatch = "before";
    await healthy();
    expect(log.lines.filter(({ event }) => event === "store-reopen-failed")).toHaveLength(1);
    expect(await store.commit([change(store, "a/1", 0, "x")])).toEqual(["ok"]);
  });

  it("after reopening, revisions are those of the disk, not the remembered ones", async () => {
    const { store, level, healthy } = await open();
    await store.commit([change(store, "a/1", 0, "one")]);
    level.faults.nextBatch = "after";
    expect(await store.commit([change(store, "a/1", 1, "two")])).toEqual(["unknown"]);
    await healthy();
    expect(await store.commit([change(store, "a/1", 1, "three")])).toEqual(["conflict"]);
    expect(await store.load("a/1")).toEqual({ value: "two", revision: 2 });
    expect(await store.commit([change(store, "a/1", 2, "three")])).toEqual(["ok"]);
  });

  it("fifty faults in a row of writing lose nothing acknowledged", async () => {
    const { store, level } = await open();
    const acknowledged = new Set<string>();
    const tally = { unknown: 0, refused: 0 };
    for (let round = 0; round < 50; round += 1) {
      if (round % 10 === 5) level.faults.nextBatch = round % 20 === 5 ? "before" : "after";
      const keys = Array.from({ length: 20 }, (_, n) => `a/${round}/${n}`);
      await Promise.all(
        keys.map(async (key) => {
          const outcome = await store.commit([change(store, key, 0, key)]).catch(() => ["refused"] as const);
          if (outcome[0] === "ok") acknowledged.add(key);
          else tally[outcome[0] === "unknown" ? "unknown" : "refused"] += 1;
        }),
      );
      await until(() => store.health().ok);
    }
    expect(tally.unknown).toBe(100);
    const found = await store.loadMany([...acknowledged]);
    expect(found.filter((record) => record === undefined)).toEqual([]);
    expect(acknowledged.size).toBe(900);
  });

  it("closing while the store fails ends the retries and refuses what comes", async () => {
    const { store, level } = await open();
    level.faults.nextBatch = "before";
    level.faults.opens = true;
    await store.commit([change(store, "a/1", 0, "x")]);
    await until(() => level.closes === 1);
    await store.close();
    await expect(store.commit([change(store, "a/1", 0, "x")])).rejects.toMatchObject({
      message: "The store is closed",
    });
    level.faults.opens = false;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(level.opens).toBe(1);
  });

  it("a store that another process has owned in between is fenced for good", async () => {
    const { store, level } = await open();
    await store.commit([change(store, "a/1", 0, "x")]);
    level.beforeNextOpen = async (database) => {
      await database.batchSynced([{ type: "put", key: "m/epoch", value: String(store.epoch + 1) }]);
    };
    level.faults.nextBatch = "before";
    await store.commit([change(store, "a/1", 1, "y")]);
    await until(() => store.inspect().reopens === 1);
    expect(await store.commit([change(store, "a/1", 1, "y")])).toEqual(["fenced"]);
    expect(store.health()).toMatchObject({ ok: false, reason: "another process has owned the store in between" });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(store.inspect().reopens).toBe(1);
    expect(await store.load("a/1")).toEqual({ value: "x", revision: 1 });
  });

  it("a full queue refuses whole calls as overloaded, and takes more once it has drained", async () => {
    const { store, level } = await open();
    level.faults.batchDelayMs = 30;
    const leading = store.commit([change(store, "a/lead", 0, "x")]);
    const half = Array.from({ length: commitsQueuedMax - 1 }, (_, n) => change(store, `a/${n}`, 0, "x"));
    const filling = store.commit(half);
    const extra = [change(store, "b/1", 0, "x"), change(store, "b/2", 0, "x")];
    await expect(store.commit(extra)).rejects.toMatchObject({
      kind: "overloaded",
      details: { exhaustion: { limit: commitsQueuedMax, remaining: 0 } },
    });
    expect(await leading).toEqual(["ok"]);
    expect(new Set(await filling)).toEqual(new Set(["ok"]));
    expect(await store.load("b/1")).toBeUndefined();
    expect(await store.commit(extra)).toEqual(["ok", "ok"]);
  });

  it("a listener of health that throws or has left does not disturb the others", async () => {
    const { store, level, log, changes, healthy } = await open();
    store.onHealth(() => {
      throw new Error("listener");
    });
    const left: StoreHealth[] = [];
    store.onHealth((health) => left.push(health))();
    level.faults.nextBatch = "before";
    await store.commit([change(store, "a/1", 0, "x")]);
    await healthy();
    expect(changes).toHaveLength(2);
    expect(left).toEqual([]);
    expect(log.lines.filter(({ event }) => event === "store-health-listener-failed")).toHaveLength(2);
  });
});
