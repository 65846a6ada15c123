/** Older formats migrate forward, step by step and safely repeated; newer ones are refused. */
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/store/database.ts";
import type { Migrations } from "../../src/store/meta.ts";
import { change } from "./commits.ts";
import { MemoryDisk, openMemoryStore } from "./memory-store.ts";
import { keptLog, wallClock } from "./parts.ts";

const parts = { clock: wallClock, log: keptLog() };

async function oldDisk(): Promise<MemoryDisk> {
  const engine = new MemoryDisk();
  const store = await openMemoryStore({ ...parts, engine });
  await store.commit([change(store, "a/1", 0, "old")]);
  await store.close();
  return engine;
}

function append(text: string) {
  return async (database: Database) => {
    const value = await database.get("a/1");
    await database.batchSynced([{ type: "put", key: "a/1", value: `${value}${text}` }]);
  };
}

describe("the format of a store", () => {
  it("an older one is migrated step by step, once", async () => {
    const engine = await oldDisk();
    const format = { current: 3, migrations: { 1: append(" > 2"), 2: append(" > 3") } };
    for (let opening = 0; opening < 2; opening += 1) {
      const store = await openMemoryStore({ ...parts, engine, format });
      expect(await store.load("a/1")).toEqual({ value: "old > 2 > 3", revision: 1 });
      await store.close();
    }
  });

  it("a migration that fails half way is repeated from its own step at the next start", async () => {
    const engine = await oldDisk();
    const failing: Migrations = {
      1: append(" > 2"),
      2: async () => {
        throw new Error("Power cut");
      },
    };
    await expect(openMemoryStore({ ...parts, engine, format: { current: 3, migrations: failing } })).rejects.toThrow(
      "Power cut",
    );
    const format = { current: 3, migrations: { 1: append(" > again"), 2: append(" > 3") } };
    const store = await openMemoryStore({ ...parts, engine, format });
    expect(await store.load("a/1")).toEqual({ value: "old > 2 > 3", revision: 1 });
    expect(store.epoch).toBe(2);
    await store.close();
  });

  it("one without a way forward is refused and left alone", async () => {
    const engine = await oldDisk();
    const format = { current: 3, migrations: { 2: append(" > 3") } };
    const refused = openMemoryStore({ ...parts, engine, format });
    await expect(refused).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringContaining("no way from its format 1 to 2"),
    });
    const store = await openMemoryStore({ ...parts, engine });
    expect(await store.load("a/1")).toEqual({ value: "old", revision: 1 });
    await store.close();
  });

  it("a newer one is refused and works again under the newer version", async () => {
    const engine = await oldDisk();
    const newer = { current: 2, migrations: { 1: async () => undefined } };
    await (await openMemoryStore({ ...parts, engine, format: newer })).close();
    await expect(openMemoryStore({ ...parts, engine })).rejects.toMatchObject({
      name: "StoreOpenError",
      exitCode: 65,
      message: expect.stringContaining("its format 2 is newer than the 1 this version reads"),
    });
    const store = await openMemoryStore({ ...parts, engine, format: newer });
    expect(await store.load("a/1")).toEqual({ value: "old", revision: 1 });
    await store.close();
  });

  it.each(["m/format", "m/epoch", "m/probe"])("nobody may write the store's own key %s", async (key) => {
    const store = await openMemoryStore(parts);
    await expect(store.commit([change(store, key, 0, "x")])).rejects.toThrow(TypeError);
    await expect(store.commit([change(store, "a/1", 0, "x", [{ key, value: null }])])).rejects.toThrow(TypeError);
    await store.close();
  });
});
