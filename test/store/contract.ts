/**
 * What every store promises, whatever it is built on. An implementation's test is a call of `storeContract` with how to open it.
 */
import { afterEach, describe, expect, it } from "vitest";
import { batchWritesMax } from "../../src/limits.ts";
import type { Store } from "../../src/ports/store.ts";
import { change, type Open, one } from "./commits.ts";
import { rangeCases } from "./contract-ranges.ts";
import { batchCases, recordCases } from "./contract-records.ts";

export interface StoreMaker {
  /** An empty store. */
  open(): Promise<Store>;
  /** Another store over what this closed one left. */
  reopen?(closed: Store): Promise<Store>;
  /** Durable batches written so far, where that can be counted. */
  syncs?(store: Store): number;
  /** After each test. */
  dispose?(): Promise<void>;
}

export function storeContract(name: string, maker: StoreMaker): void {
  describe(name, () => {
    const opened: Store[] = [];
    const open = async () => {
      const store = await maker.open();
      opened.push(store);
      return store;
    };
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((store) => store.close()));
      await maker.dispose?.();
    });

    recordCases(open);
    batchCases(open);
    rangeCases(open);
    lifeCases(open);
    const { reopen, syncs } = maker;
    if (syncs !== undefined) groupingCases(open, syncs);
    if (reopen !== undefined) {
      reopenCases(open, async (closed) => {
        const store = await reopen(closed);
        opened.push(store);
        return store;
      });
    }
  });
}

function lifeCases(open: Open): void {
  it("a working store is healthy", async () => {
    const store = await open();
    expect(store.health()).toEqual({ ok: true });
  });

  it("after close everything is refused as unavailable, and closing again is harmless", async () => {
    const store = await open();
    await Promise.all([store.close(), store.close()]);
    await store.close();
    const refusal = { kind: "unavailable", message: "The store is closed" };
    await expect(store.load("a/1")).rejects.toMatchObject(refusal);
    await expect(store.read(["x"])).rejects.toMatchObject(refusal);
    await expect(store.range({ prefix: "x", limit: 1 })).rejects.toMatchObject(refusal);
    await expect(store.commit([change(store, "a/1", 0, "x")])).rejects.toMatchObject(refusal);
  });
}

function groupingCases(open: Open, syncs: (store: Store) => number): void {
  it("commits of one turn of the event loop share one sync, also after awaits", async () => {
    const store = await open();
    await one(store, change(store, "a/first", 0, "x"));
    const before = syncs(store);
    const calls = Array.from({ length: 300 }, async (_, n) => {
      for (let hop = 0; hop < n % 7; hop += 1) await Promise.resolve();
      return one(store, change(store, `a/${n}`, 0, "x"));
    });
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["ok"]));
    expect(syncs(store) - before).toBe(1);
  });

  it("commits made while a batch is on its way share the next one", async () => {
    const store = await open();
    const before = syncs(store);
    const first = one(store, change(store, "a/first", 0, "x"));
    // Past the end of the turn: the first batch has left.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    const rest = Array.from({ length: 100 }, (_, n) => one(store, change(store, `a/${n}`, 0, "x")));
    await Promise.all([first, ...rest]);
    expect(syncs(store) - before).toBeLessThanOrEqual(2);
  });

  it("a commit larger than a batch is not split", async () => {
    const store = await open();
    const before = syncs(store);
    const writes = Array.from({ length: batchWritesMax * 2 }, (_, n) => ({ key: `x/${n}`, value: "x" }));
    expect(await one(store, change(store, "a/1", 0, "x", writes))).toBe("ok");
    expect(syncs(store) - before).toBe(1);
  });

  it("a batch in which nothing may land needs no sync", async () => {
    const store = await open();
    const before = syncs(store);
    expect(await one(store, change(store, "a/1", 9, "x"))).toBe("conflict");
    expect(syncs(store)).toBe(before);
  });
}

function reopenCases(open: Open, reopen: (closed: Store) => Promise<Store>): void {
  it("what was acknowledged is there after reopening, and the epoch has risen", async () => {
    const first = await open();
    await first.commit(
      Array.from({ length: 50 }, (_, n) => change(first, `a/${n}`, 0, `${n}`, [{ key: `x/${n}`, value: "x" }])),
    );
    await one(first, change(first, "a/7", 1, "seven"));
    await first.close();
    const second = await reopen(first);
    expect(second.epoch).toBeGreaterThan(first.epoch);
    expect(await second.load("a/7")).toEqual({ value: "seven", revision: 2 });
    expect(await second.range({ prefix: "x/", limit: 100 })).toHaveLength(50);
    expect(await one(second, change(second, "a/7", 2, "eight"))).toBe("ok");
    expect(await one(second, { ...change(second, "a/8", 1, "old"), epoch: first.epoch })).toBe("fenced");
  });

  it("each pending commit at close is acknowledged and present, or refused and absent", async () => {
    let store = await open();
    for (let round = 0; round < 30; round += 1) {
      const current = store;
      const calls = Array.from({ length: 40 }, async (_, n) => {
        if (n % 4 === 0) await new Promise(setImmediate);
        return one(current, change(current, `a/${round}/${n}`, 0, "x"));
      });
      const reads = Array.from({ length: 10 }, () => current.range({ prefix: "a/", limit: 500 }));
      if (round % 2 === 0) await new Promise(setImmediate);
      const [answers] = await Promise.all([Promise.allSettled(calls), Promise.allSettled(reads), current.close()]);
      store = await reopen(current);
      const kept = await store.loadMany(Array.from({ length: 40 }, (_, n) => `a/${round}/${n}`));
      answers.forEach((answer, n) => {
        if (answer.status === "fulfilled") expect(answer.value).toBe("ok");
        else expect(answer.reason).toMatchObject({ kind: "unavailable" });
        expect(kept[n] !== undefined).toBe(answer.status === "fulfilled");
      });
    }
  });
}
