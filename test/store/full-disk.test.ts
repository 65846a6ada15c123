/** a disk that fills up under the store, on a real file system of 64 MB. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { StoreHealth } from "../../src/ports/store.ts";
import type { DurableStore } from "../../src/store/durable-store.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { until } from "../until.ts";
import { change } from "./commits.ts";
import { keptLog, wallClock } from "./parts.ts";

const disk = mkdtempSync(join(tmpdir(), "troupe-disk-"));
const canMount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", disk]).status === 0;
const filler = join(disk, "filler");
const folder = join(disk, "data");

afterAll(() => {
  if (canMount) spawnSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true, force: true });
});

/** Commits until the store refuses; answers the acknowledged keys with their texts. */
async function writeUntilFull(store: DurableStore, round: string): Promise<Map<string, string>> {
  const acknowledged = new Map<string, string>();
  const write = async (writer: number) => {
    for (let n = 0; store.health().ok; n += 1) {
      const key = `a/${round}/${writer}/${n}`;
      const value = randomBytes(12 * 1024).toString("base64");
      const [outcome] = await store.commit([change(store, key, 0, value)]).catch(() => ["refused"]);
      if (outcome === "ok") acknowledged.set(key, value);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, writer) => write(writer)));
  return acknowledged;
}

async function missing(store: DurableStore, acknowledged: ReadonlyMap<string, string>): Promise<string[]> {
  const keys = [...acknowledged.keys()];
  const records = await store.loadMany(keys);
  return keys.filter((key, place) => records[place]?.value !== acknowledged.get(key));
}

describe.runIf(canMount)("a store on a full disk (needs the right to mount a tmpfs)", () => {
  afterEach(async () => {
    await rm(filler, { force: true });
    await rm(folder, { recursive: true, force: true });
  });

  it("refuses writes, goes on reading, and works again within 10 s of space returning, losing nothing", {
    timeout: 60_000,
  }, async () => {
    await writeFile(filler, Buffer.alloc(32 * 1024 * 1024));
    const store = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
    const changes: StoreHealth[] = [];
    store.onHealth((health) => changes.push(health));
    const acknowledged = await writeUntilFull(store, "first");
    expect(acknowledged.size).toBeGreaterThan(100);

    expect(store.health()).toMatchObject({ ok: false, reason: "no space left on device" });
    // Long enough for several tries to reopen, none of which may cost the database that can be read.
    for (let check = 0; check < 10; check += 1) {
      await expect(store.commit([change(store, "a/x", 0, "x")])).rejects.toMatchObject({
        kind: "unavailable",
        message: "The store takes no writes: no space left on device",
      });
      expect(await missing(store, acknowledged)).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }

    await rm(filler);
    await until(() => store.health().ok, 10_000);
    expect(await store.commit([change(store, "a/x", 0, "x")])).toEqual(["ok"]);
    expect(await missing(store, acknowledged)).toEqual([]);
    expect(changes.map(({ ok }) => ok)).toEqual([false, true]);
    await store.close();
    const again = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
    expect(await missing(again, acknowledged)).toEqual([]);
    await again.close();
  });

  it("closed while full, starts again once there is space, and has everything acknowledged", {
    timeout: 60_000,
  }, async () => {
    await writeFile(filler, Buffer.alloc(40 * 1024 * 1024));
    const store = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
    const acknowledged = await writeUntilFull(store, "second");
    await store.close();

    const whileFull = await openLevelStore({ folder, clock: wallClock, log: keptLog() }).catch(
      (error: unknown) => error,
    );
    if (whileFull instanceof Error) expect(whileFull).toMatchObject({ name: "StoreOpenError", exitCode: 74 });
    else await (whileFull as DurableStore).close();

    await rm(filler);
    const again = await openLevelStore({ folder, clock: wallClock, log: keptLog() });
    expect(await missing(again, acknowledged)).toEqual([]);
    expect(await again.commit([change(again, "a/y", 0, "y")])).toEqual(["ok"]);
    await again.close();
  });
});
