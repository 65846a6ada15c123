/** Snapshots of the store: one moment, in bounded stretches, over as soon as the database they are of is. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { snapshotStretchBytes } from "../../src/limits.ts";
import type { RawEntry, SnapshotRange, StoreSnapshot } from "../../src/ports/snapshot.ts";
import type { Engine } from "../../src/store/database.ts";
import { DurableStore } from "../../src/store/durable-store.ts";
import { holdFolder } from "../../src/store/folder-hold.ts";
import { levelEngine } from "../../src/store/level-engine.ts";
import { formatCurrent, migrations } from "../../src/store/meta.ts";
import { collect } from "../maintenance/parts.ts";
import { until } from "../until.ts";
import { openMemoryStore } from "./memory-store.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: DurableStore;
let failNext = false;

/** LevelDB whose next batch fails on request. */
function failing(engine: Engine): Engine {
  return {
    ...engine,
    async open() {
      const database = await engine.open();
      return {
        ...database,
        async batchSynced(operations) {
          const fails = failNext;
          failNext = false;
          if (fails) throw new Error("ENOSPC: no space left on device, write");
          await database.batchSynced(operations);
        },
      };
    },
  };
}

beforeEach(async () => {
  folder = await temporaryFolder();
  const log = keptLog();
  const engine = failing(levelEngine(await holdFolder(folder.path), wallClock, log));
  const format = { current: formatCurrent, migrations };
  store = await DurableStore.open({ engine, folder: folder.path, format, clock: wallClock, log });
});
afterEach(async () => {
  await store.close();
  await folder.remove();
});

const write = (key: string, value: string, expected = 0) =>
  store.commit([
    { record: { key, expect: expected, value }, writes: [{ key: `z/${key}`, value }], epoch: store.epoch },
  ]);

async function entriesOf(snapshot: StoreSnapshot, range?: SnapshotRange): Promise<RawEntry[]> {
  return (await collect(snapshot.stretches(range))).flat();
}

const texts = (entries: readonly RawEntry[]) => entries.map(([key, value]) => [key.toString(), value.toString()]);

describe("a snapshot of the store", () => {
  it("holds what was acknowledged before it, and nothing later", async () => {
    await write("a/1", "one");
    await write("ä/€/😀", "ünï");
    const snapshot = await store.snapshot();
    await write("a/1", "two", 1);
    await write("a/2", "new");
    expect(snapshot).toMatchObject({ format: formatCurrent, epoch: store.epoch });
    expect(texts(await entriesOf(snapshot))).toEqual([
      ["a/1", "1 one"],
      ["z/a/1", "one"],
      ["z/ä/€/😀", "ünï"],
      ["ä/€/😀", "1 ünï"],
    ]);
    expect(await snapshot.read(["a/1", "a/2", "z/a/1"])).toEqual(["1 one", undefined, "one"]);
    expect(await snapshot.read([])).toEqual([]);
    await snapshot.close();
    await snapshot.close();
  });

  it("can be read in part, and without values", async () => {
    for (const key of ["a/1", "a/2", "b/1"]) await write(key, "x");
    const snapshot = await store.snapshot();
    expect(texts(await entriesOf(snapshot, { prefix: "a/" })).map(([key]) => key)).toEqual(["a/1", "a/2"]);
    expect(texts(await entriesOf(snapshot, { prefix: "z/a/", keysOnly: true }))).toEqual([
      ["z/a/1", ""],
      ["z/a/2", ""],
    ]);
    expect(await entriesOf(snapshot, { prefix: "none/" })).toEqual([]);
    await snapshot.close();
  });

  it("comes in stretches of bounded size", async () => {
    for (let at = 100; at < 140; at += 1) await write(`a/${at}`, "x".repeat(30_000));
    const snapshot = await store.snapshot();
    const stretches = await collect(snapshot.stretches());
    const sizes = stretches.map((entries) => entries.reduce((sum, [key, value]) => sum + key.length + value.length, 0));
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThan(snapshotStretchBytes + 31_000);
    await snapshot.close();
  });

  it("is over once the store was opened again after a failure, and did not keep it from that", async () => {
    for (let at = 100; at < 140; at += 1) await write(`a/${at}`, "x".repeat(30_000));
    const snapshot = await store.snapshot();
    const reading = snapshot.stretches()[Symbol.asyncIterator]();
    await reading.next();
    failNext = true;
    await write("a/200", "x");
    await until(() => store.health().ok);
    await expect(reading.next()).rejects.toMatchObject({
      kind: "unavailable",
      message: "The store cannot be read: it was opened again since",
    });
    await snapshot.close();
    const next = await store.snapshot();
    expect((await entriesOf(next)).length).toBeGreaterThanOrEqual(80);
    await next.close();
  });

  it("is over once the store is closed, and does not keep it from that", async () => {
    await write("a/1", "one");
    const snapshot = await store.snapshot();
    const reading = snapshot.stretches()[Symbol.asyncIterator]();
    await reading.next();
    await store.close();
    await expect(reading.next()).rejects.toMatchObject({ kind: "unavailable", message: "The store is closed" });
    await expect(store.snapshot()).rejects.toMatchObject({ kind: "unavailable" });
    await snapshot.close();
  });

  it("is refused where the engine has none", async () => {
    const memory = await openMemoryStore({ clock: wallClock, log: keptLog() });
    await expect(memory.snapshot()).rejects.toThrow("its engine takes no snapshots");
    await memory.close();
  });
});
