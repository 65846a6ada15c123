/**
 * What every store promises, whatever it is built on. An implementation's test is a call of `storeContract` with how to open it.
 */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { batchWritesMax } from "../../src/limits.ts";
import type { Commit, Store } from "../../src/ports/store.ts";

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

type Open = () => Promise<Store>;

export function change(
  store: Store,
  key: string,
  expect: number,
  value: string | null,
  writes: Commit["writes"] = [],
): Commit {
  return { epoch: store.epoch, record: { key, expect, value }, writes };
}

async function one(store: Store, commit: Commit): Promise<string> {
  const [outcome] = await store.commit([commit]);
  return outcome!;
}

function recordCases(open: Open): void {
  it("a record that was never written is undefined", async () => {
    const store = await open();
    expect(await store.load("a/1")).toBeUndefined();
  });

  it("a record comes back as written, its revision growing by one with each commit", async () => {
    const store = await open();
    for (let revision = 0; revision < 12; revision += 1) {
      expect(await one(store, change(store, "a/1", revision, `value ${revision}`))).toBe("ok");
      expect(await store.load("a/1")).toEqual({ value: `value ${revision}`, revision: revision + 1 });
    }
  });

  it.each([
    ["empty", ""],
    ["only a blank", " "],
    ["beginning like a revision", "7 seven"],
    ["with line breaks and NUL", "a\nb\u0000c"],
    ["astral", "𝒯𝓇𝑜𝓊𝓅𝑒 🎭"],
    ["one MiB", "x".repeat(1024 * 1024)],
  ])("a value that is %s comes back unchanged, as record and as entry", async (_what, value) => {
    const store = await open();
    await one(store, change(store, "a/1", 0, value, [{ key: "b/1", value }]));
    expect((await store.load("a/1"))?.value).toBe(value);
    expect(await store.read(["b/1"])).toEqual([value]);
  });

  it.each([
    ["lower", 1],
    ["higher", 3],
    ["that of a new record", 0],
  ])("a commit expecting a revision that is %s is a conflict and writes nothing", async (_what, expected) => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one"));
    await one(store, change(store, "a/1", 1, "two"));
    const outcome = await one(store, change(store, "a/1", expected, "three", [{ key: "x/1", value: "x" }]));
    expect(outcome).toBe("conflict");
    expect(await store.load("a/1")).toEqual({ value: "two", revision: 2 });
    expect(await store.read(["x/1"])).toEqual([undefined]);
  });

  it("expecting a revision of a record that is not there is a conflict", async () => {
    const store = await open();
    expect(await one(store, change(store, "a/1", 1, "one"))).toBe("conflict");
    expect(await store.load("a/1")).toBeUndefined();
  });

  it.each([-1, 1])("a commit with an epoch off by %i is fenced and writes nothing", async (offset) => {
    const store = await open();
    const fenced = { ...change(store, "a/1", 0, "one", [{ key: "x/1", value: "x" }]), epoch: store.epoch + offset };
    expect(await one(store, fenced)).toBe("fenced");
    expect(await store.load("a/1")).toBeUndefined();
    expect(await store.read(["x/1"])).toEqual([undefined]);
  });

  it("a deleted record is gone, and created again starts at revision 1", async () => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one"));
    await one(store, change(store, "a/1", 1, "two"));
    expect(await one(store, change(store, "a/1", 2, null))).toBe("ok");
    expect(await store.load("a/1")).toBeUndefined();
    expect(await one(store, change(store, "a/1", 2, "late"))).toBe("conflict");
    expect(await one(store, change(store, "a/1", 0, "new"))).toBe("ok");
    expect(await store.load("a/1")).toEqual({ value: "new", revision: 1 });
  });

  it("deleting a record needs its revision", async () => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one"));
    expect(await one(store, change(store, "a/1", 2, null))).toBe("conflict");
    expect(await store.load("a/1")).toEqual({ value: "one", revision: 1 });
  });

  it("loadMany and read answer in the order asked, undefined where absent, repeats included", async () => {
    const store = await open();
    await store.commit(
      ["1", "2", "3"].map((id) => change(store, `a/${id}`, 0, id, [{ key: `x/${id}`, value: `x${id}` }])),
    );
    const records = await store.loadMany(["a/3", "a/none", "a/1", "a/3"]);
    expect(records.map((record) => record?.value)).toEqual(["3", undefined, "1", "3"]);
    expect(await store.read(["x/2", "x/none", "x/1", "x/2"])).toEqual(["x2", undefined, "x1", "x2"]);
    expect(await store.read([])).toEqual([]);
    expect(await store.loadMany([])).toEqual([]);
  });

  it.each([
    ["an empty key", (store: Store) => change(store, "", 0, "x")],
    ["a key with a lone surrogate", (store: Store) => change(store, "a/\ud800", 0, "x")],
    ["a written key that is empty", (store: Store) => change(store, "a/1", 0, "x", [{ key: "", value: "x" }])],
    ["a write to its own record", (store: Store) => change(store, "a/1", 0, "x", [{ key: "a/1", value: "y" }])],
    ["a negative revision", (store: Store) => change(store, "a/1", -1, "x")],
  ])("a commit with %s throws, harming nobody else's", async (_what, make) => {
    const store = await open();
    const good = store.commit([change(store, "a/good", 0, "good")]);
    await expect(store.commit([change(store, "a/half", 0, "half"), make(store)])).rejects.toThrow(TypeError);
    expect(await good).toEqual(["ok"]);
    expect(await store.load("a/half")).toBeUndefined();
    expect(store.health()).toEqual({ ok: true });
  });
}

function batchCases(open: Open): void {
  it("record and writes of a commit land together, deletions included", async () => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one", [{ key: "x/old", value: "o" }]));
    const writes = [
      { key: "x/old", value: null },
      { key: "x/new", value: "n" },
    ];
    expect(await one(store, change(store, "a/1", 1, "two", writes))).toBe("ok");
    expect(await store.read(["x/old", "x/new"])).toEqual([undefined, "n"]);
  });

  it("outcomes stand in the order of the commits, each judged on its own", async () => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one"));
    const outcomes = await store.commit([
      change(store, "a/1", 5, "wrong"),
      { ...change(store, "a/2", 0, "fenced"), epoch: store.epoch + 1 },
      change(store, "a/3", 0, "right"),
    ]);
    expect(outcomes).toEqual(["conflict", "fenced", "ok"]);
    expect(await store.commit([])).toEqual([]);
  });

  it("commits to one record in one batch see each other's revision", async () => {
    const store = await open();
    const outcomes = await store.commit([
      change(store, "a/1", 0, "one"),
      change(store, "a/1", 1, "two"),
      change(store, "a/1", 1, "lost race"),
      change(store, "a/1", 2, null),
      change(store, "a/1", 0, "again"),
    ]);
    expect(outcomes).toEqual(["ok", "ok", "conflict", "ok", "ok"]);
    expect(await store.load("a/1")).toEqual({ value: "again", revision: 1 });
  });

  it("of a hundred calls racing with one expected revision exactly one wins", async () => {
    const store = await open();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, racer) => one(store, change(store, "a/1", 0, `${racer}`))),
    );
    expect(outcomes.filter((outcome) => outcome === "ok")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "conflict")).toHaveLength(99);
  });

  it("commits land in the order made, over more batches than one", async () => {
    const store = await open();
    const count = batchWritesMax + 200;
    const calls = Array.from({ length: count }, (_, n) => one(store, change(store, "a/1", n, `${n}`)));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["ok"]));
    expect(await store.load("a/1")).toEqual({ value: `${count - 1}`, revision: count });
  });

  it("what was answered ok is read at once", async () => {
    const store = await open();
    for (let n = 0; n < 50; n += 1) {
      await one(store, change(store, `a/${n}`, 0, "x", [{ key: `x/${n}`, value: "x" }]));
      expect(await store.range({ prefix: "x/", limit: 100 })).toHaveLength(n + 1);
    }
  });
}

function rangeCases(open: Open): void {
  const fill = async (store: Store, keys: readonly string[]) => {
    const writes = keys.map((key) => ({ key, value: `v:${key}` }));
    expect(await one(store, change(store, "record", 0, "r", writes))).toBe("ok");
  };
  const keysOf = async (store: Store, prefix: string, limit = 100, after?: string) =>
    (await store.range({ prefix, limit, after })).map(({ key }) => key);

  it("a range gives keys and values of its prefix, ascending", async () => {
    const store = await open();
    await fill(store, ["x/2", "x/1", "y/1", "w/9", "x", "x0"]);
    expect(await store.range({ prefix: "x/", limit: 10 })).toEqual([
      { key: "x/1", value: "v:x/1" },
      { key: "x/2", value: "v:x/2" },
    ]);
    expect(await keysOf(store, "none/")).toEqual([]);
  });

  it("keys sort by their UTF-8 bytes, not by their UTF-16 units", async () => {
    const store = await open();
    const sorted = [
      "x/",
      "x/\u0000",
      "x/\u0000\u0000",
      "x/A",
      "x/a",
      "x/é",
      "x/\ue000",
      "x/\uffff",
      "x/😀",
      "x/\u{10ffff}",
    ];
    await fill(store, [...sorted].reverse());
    expect(await keysOf(store, "x/")).toEqual(sorted);
    for (const [place, key] of sorted.entries()) {
      expect(await keysOf(store, "x/", 100, key)).toEqual(sorted.slice(place + 1));
    }
  });

  it.each([
    ["a NUL", "x\u0000"],
    ["the last code point before the surrogates", "x\ud7ff"],
    ["the last of the basic plane", "x\uffff"],
    ["the last code point there is", "x\u{10ffff}"],
    ["twice the last code point", "\u{10ffff}\u{10ffff}"],
    ["an astral one", "x😀"],
  ])("a prefix ending in %s selects just what begins with it", async (_what, prefix) => {
    const store = await open();
    const inside = [prefix, `${prefix}\u0000`, `${prefix}a`, `${prefix}\u{10ffff}`];
    await fill(
      store,
      [...inside, "w", "x", "y", "x\u0001", "x\ue000", "\u{10ffff}"].filter((key, at, all) => all.indexOf(key) === at),
    );
    const found = await keysOf(store, prefix);
    expect(found).toEqual(inside);
  });

  it("pages by limit and after give every entry once", async () => {
    const store = await open();
    const all = Array.from({ length: 57 }, (_, n) => `x/${String(n).padStart(3, "0")}`);
    await fill(store, all);
    const seen: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await keysOf(store, "x/", 10, after);
      seen.push(...page);
      if (page.length < 10) break;
      after = page.at(-1);
    }
    expect(seen).toEqual(all);
    expect(await keysOf(store, "x/", 0)).toEqual([]);
  });

  it("after outside the prefix: below it changes nothing, above it leaves nothing", async () => {
    const store = await open();
    await fill(store, ["x/1", "x/2", "y/1"]);
    expect(await keysOf(store, "x/", 10, "a")).toEqual(["x/1", "x/2"]);
    expect(await keysOf(store, "x/", 10, "x/1\u0000")).toEqual(["x/2"]);
    expect(await keysOf(store, "x/", 10, "x0")).toEqual([]);
    expect(await keysOf(store, "x/", 10, "y/1")).toEqual([]);
  });

  it.each([-1, 1.5, Number.NaN])("a limit of %d throws", async (limit) => {
    const store = await open();
    await expect(store.range({ prefix: "x/", limit })).rejects.toThrow(TypeError);
  });

  it("any keys, prefix, after and limit give what a sorted list would", async () => {
    const store = await open();
    const character = fc.constantFrom(
      "\u0000",
      "\u0001",
      "/",
      "a",
      "b",
      "\u00ff",
      "\ud7ff",
      "\ue000",
      "\uffff",
      "😀",
      "\u{10ffff}",
    );
    const text = fc.array(character, { maxLength: 3 }).map((characters) => characters.join(""));
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(text, { maxLength: 12 }),
        text,
        fc.option(text),
        fc.nat(6),
        async (tails, p, a, limit) => {
          round += 1;
          const root = `q${round}/`;
          const keys = tails.map((tail) => root + tail);
          await one(
            store,
            change(
              store,
              `r${round}`,
              0,
              "r",
              keys.map((key) => ({ key, value: key })),
            ),
          );
          const prefix = root + p;
          const after = a === null ? undefined : root + a;
          const expected = keys
            .filter((key) => key.startsWith(prefix) && (after === undefined || compare(key, after) > 0))
            .sort(compare)
            .slice(0, limit);
          expect(await keysOf(store, prefix, limit, after)).toEqual(expected);
        },
      ),
      { numRuns: 150 },
    );
  });
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
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
