/** The part of the store's contract about records and what is committed with them. Run by `contract.ts`. */
import { expect, it } from "vitest";
import { batchWritesMax } from "../../src/limits.ts";
import type { Store } from "../../src/ports/store.ts";
import { change, type Open, one } from "./commits.ts";

export function recordCases(open: Open): void {
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

  it("a record deleted by the writes of another starts over as well", async () => {
    const store = await open();
    await one(store, change(store, "a/1", 0, "one"));
    await one(store, change(store, "a/2", 0, "two", [{ key: "a/1", value: null }]));
    expect(await store.load("a/1")).toBeUndefined();
    expect(await one(store, change(store, "a/1", 1, "late"))).toBe("conflict");
    const outcomes = await store.commit([
      change(store, "a/1", 0, "new"),
      change(store, "a/2", 1, "two", [{ key: "a/1", value: null }]),
      change(store, "a/1", 0, "newer"),
    ]);
    expect(outcomes).toEqual(["ok", "ok", "ok"]);
    expect(await store.load("a/1")).toEqual({ value: "newer", revision: 1 });
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

export function batchCases(open: Open): void {
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
