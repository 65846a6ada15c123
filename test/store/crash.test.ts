/** kill -9 at random moments: 0 acknowledged commits lost, 0 torn. And R-088: closing under load never ends in a signal. */
import { afterEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { change } from "./commits.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";
import { startWriter } from "./writer.ts";

const cycles = 12;

describe("a store whose process is killed", () => {
  let remove: (() => Promise<void>) | undefined;
  afterEach(async () => {
    await remove?.();
  });

  it(`loses nothing acknowledged and tears nothing over ${cycles} kills`, { timeout: 60_000 }, async () => {
    const folder = await temporaryFolder();
    remove = folder.remove;
    const acknowledged: string[] = [];
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const writer = startWriter(folder.path, 16);
      await writer.opened;
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 250));
      await writer.kill();
      acknowledged.push(...writer.acknowledged);
    }
    expect(acknowledged.length).toBeGreaterThan(cycles * 16);

    const store = await openLevelStore({ folder: folder.path, clock: wallClock, log: keptLog() });
    expect(store.epoch).toBe(cycles + 1);
    const ids = async (prefix: string) =>
      new Set((await allKeys(store, prefix)).map((key) => key.slice(prefix.length)));
    const [records, left, right] = await Promise.all([ids("a/"), ids("x/"), ids("y/")]);
    expect(acknowledged.filter((id) => !records.has(id))).toEqual([]);
    expect(left).toEqual(records);
    expect(right).toEqual(records);
    await store.close();
  });

  it("200 times open, write, range and close under load end in order", { timeout: 60_000 }, async () => {
    const folder = await temporaryFolder();
    remove = folder.remove;
    let present = 0;
    for (let round = 0; round < 200; round += 1) {
      const store = await openLevelStore({ folder: folder.path, clock: wallClock, log: keptLog() });
      const calls = Array.from({ length: 8 }, (_, n) => store.commit([change(store, `a/${round}/${n}`, 0, "x")]));
      const ranges = Array.from({ length: 4 }, () => store.range({ prefix: "a/", limit: 5_000 }));
      if (round % 3 === 0) await new Promise(setImmediate);
      const [answers] = await Promise.all([Promise.all(calls), Promise.allSettled(ranges), store.close()]);
      present += answers.filter(([outcome]) => outcome === "ok").length;
    }
    const store = await openLevelStore({ folder: folder.path, clock: wallClock, log: keptLog() });
    expect(await allKeys(store, "a/")).toHaveLength(present);
    expect(present).toBe(1_600);
    await store.close();
  });
});

async function allKeys(store: Store, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for (;;) {
    const page = await store.range({ prefix, limit: 5_000, after: keys.at(-1) });
    keys.push(...page.map(({ key }) => key));
    if (page.length < 5_000) return keys;
  }
}
