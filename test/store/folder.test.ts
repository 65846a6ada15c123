/** one process per folder, told clearly; and nothing a killed process leaves behind blocks the next start. */
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openLevelStore } from "../../src/store/level-store.ts";
import { change } from "./commits.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";
import { startWriter, type Writer } from "./writer.ts";

const open = (folder: string) => openLevelStore({ folder, clock: wallClock, log: keptLog() });

describe("the folder of a store", () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function folder(): Promise<string> {
    const { path, remove } = await temporaryFolder();
    cleanups.push(remove);
    return path;
  }

  function writer(path: string, writers: number): Writer {
    const started = startWriter(path, writers);
    cleanups.push(started.kill);
    return started;
  }

  it("is created for its owner alone", async () => {
    const path = join(await folder(), "deep", "data");
    const store = await open(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    await store.close();
  });

  it("a second process is refused with exit code 75 naming folder and holder, and the first goes on", async () => {
    const path = await folder();
    const first = writer(path, 4);
    await first.opened;
    const before = performance.now();
    const second = await startWriter(path, 1).ended;
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(second.code).toBe(75);
    expect(second.stderr).toContain(`Cannot open the store in "${path}": process ${first.child.pid} is using it`);
    // The refused one must not have taken the lock away with it: a third is refused as well.
    expect((await startWriter(path, 1).ended).code).toBe(75);
    const acknowledged = first.acknowledged.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(first.acknowledged.length).toBeGreaterThan(acknowledged);
    await first.kill();
    const store = await open(path);
    const kept = await store.loadMany(first.acknowledged.map((id) => `a/${id}`));
    expect(kept.filter((record) => record === undefined)).toEqual([]);
    await store.close();
  });

  it("of processes started in the same moment exactly one gets it", async () => {
    const path = await folder();
    for (let round = 0; round < 2; round += 1) {
      const started = Array.from({ length: 4 }, () => writer(path, 1));
      const results = await Promise.allSettled(started.map(({ opened }) => opened));
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const [place, { status }] of results.entries()) {
        if (status === "rejected") expect((await started[place]!.ended).code).toBe(75);
        else await started[place]!.kill();
      }
    }
  });

  it.each([
    ["by the same name", (path: string) => path],
    ["by a longer name", (path: string) => join(path, "..", path.split("/").at(-1)!, ".")],
    ["through a link", (path: string) => `${path}-link`],
  ])(
    "a second open in one process, %s, is refused and the lock still keeps other processes out",
    async (_what, rename) => {
      const path = await folder();
      await symlink(path, `${path}-link`);
      cleanups.push(() => rm(`${path}-link`));
      const store = await open(path);
      await expect(open(rename(path))).rejects.toMatchObject({
        exitCode: 75,
        message: expect.stringContaining("this process"),
      });
      expect((await startWriter(path, 1).ended).code).toBe(75);
      expect(await store.commit([change(store, "a/1", 0, "x")])).toEqual(["ok"]);
      await store.close();
    },
  );

  it("kill -9 leaves LOCK and pid file behind, and the next start is undisturbed by them", async () => {
    const path = await folder();
    const first = writer(path, 2);
    const epoch = await first.opened;
    await first.kill();
    expect(await readdir(path)).toEqual(expect.arrayContaining(["LOCK", "PID"]));
    const store = await open(path);
    expect(store.epoch).toBe(epoch + 1);
    await store.close();
    expect(await readdir(path)).not.toContain("PID");
  });

  it.each([
    ["of a process that is alive but another", () => `${process.ppid}\n`],
    ["of this very process", () => `${process.pid}\n`],
    ["empty", () => ""],
    ["no number", () => "x\u0000y"],
    ["of every process", () => "-1\n"],
  ])("a pid file that is stale, %s, does not block the start", async (_what, content) => {
    const path = await folder();
    await (await open(path)).close();
    await writeFile(join(path, "PID"), content());
    const store = await open(path);
    expect(await readFile(join(path, "PID"), "utf8")).toBe(`${process.pid}\n`);
    await store.close();
  });

  it("a missing pid file makes the refusal vaguer, not weaker", async () => {
    const path = await folder();
    const first = writer(path, 0);
    await first.opened;
    await writeFile(join(path, "PID"), "");
    const refusal = open(path);
    await expect(refusal).rejects.toMatchObject({
      exitCode: 75,
      message: expect.stringContaining("another process is using it"),
    });
  });

  it("closing frees the folder at once, in this process and for others", async () => {
    const path = await folder();
    for (let round = 0; round < 20; round += 1) await (await open(path)).close();
    const other = writer(path, 0);
    expect(await other.opened).toBe(21);
  });

  it("a place that can be no folder is exit code 74, and leaves nothing held", async () => {
    const path = await folder();
    await writeFile(join(path, "file"), "x");
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(open(join(path, "file"))).rejects.toMatchObject({ name: "StoreOpenError", exitCode: 74 });
      await expect(open(join(path, "file", "below"))).rejects.toMatchObject({ name: "StoreOpenError", exitCode: 74 });
    }
  });

  it("a folder that may not be written is exit code 74 (as root: in the way of CURRENT is a folder)", async () => {
    const path = await folder();
    if (process.getuid?.() === 0) await mkdir(join(path, "LOCK"));
    else await chmod(path, 0o500);
    await expect(open(path)).rejects.toMatchObject({ name: "StoreOpenError", exitCode: 74 });
    await chmod(path, 0o700);
  });

  it("a killed first start that got no further than its first manifest is a new store", async () => {
    const path = await folder();
    await writeFile(join(path, "MANIFEST-000001"), "");
    await writeFile(join(path, "LOCK"), "");
    await writeFile(join(path, "PID"), "4\n");
    const store = await open(path);
    expect(store.epoch).toBe(1);
    await store.close();
  });
});
