/** Log records on a real disk: what is kept, what is removed, and what damage, a full disk and another process cost. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogDisk, SequencedText } from "../../src/ports/log-records.ts";
import { openLogDisk } from "../../src/store/log-disk.ts";
import { keptLog, temporaryFolder } from "./parts.ts";

let parent: Awaited<ReturnType<typeof temporaryFolder>>;
let folder: string;
const opened: LogDisk[] = [];
const log = keptLog();

beforeEach(async () => {
  parent = await temporaryFolder();
  folder = join(parent.path, "logs");
});

afterEach(async () => {
  for (const disk of opened.splice(0)) await disk.close();
  await parent.remove();
});

async function open(keep = 1_000, where = folder): Promise<LogDisk> {
  const disk = await openLogDisk({ folder: where, keep, now: () => Date.parse("2026-11-28T09:30:00.000Z"), log });
  opened.push(disk);
  return disk;
}

const texts = (first: number, count: number, step = 1): SequencedText[] =>
  Array.from({ length: count }, (_, at) => [first + at * step, `text ${first + at * step}`]);
const all = { above: 0, below: Number.MAX_SAFE_INTEGER, from: "oldest", limit: 1_000_000 } as const;
const seqs = (found: readonly SequencedText[]): number[] => found.map(([seq]) => seq);

describe("log records on disk", () => {
  it("are read in both directions, strictly between two seqs", async () => {
    const disk = await open();
    await disk.append(texts(1_795_860_141_500, 5, 2));
    const base = 1_795_860_141_500;
    const read = async (above: number, below: number, from: "oldest" | "newest", limit: number) =>
      seqs(await disk.read({ above: base + above, below: base + below, from, limit })).map((seq) => seq - base);
    expect(await read(0, 8, "oldest", 10)).toEqual([2, 4, 6]);
    expect(await read(0, 8, "newest", 10)).toEqual([6, 4, 2]);
    expect(await read(-1, 9, "oldest", 2)).toEqual([0, 2]);
    expect(await read(-1, 9, "newest", 2)).toEqual([8, 6]);
    expect(await read(4, 4, "newest", 2)).toEqual([]);
    expect(await read(9, 3, "newest", 2)).toEqual([]);
    expect((await disk.read(all))[0]).toEqual([base, `text ${base}`]);
  });

  it("are sorted by number, also where one has more digits", async () => {
    const disk = await open();
    await disk.append([
      [9, "a"],
      [10, "b"],
      [99, "c"],
      [100, "d"],
      [Number.MAX_SAFE_INTEGER - 1, "e"],
    ]);
    expect(seqs(await disk.read(all))).toEqual([9, 10, 99, 100, Number.MAX_SAFE_INTEGER - 1]);
  });

  it("are there again after a restart, with the number of the last", async () => {
    const first = await open();
    expect(first.last).toBe(0);
    await first.append(texts(5, 3));
    await first.close();
    const second = await open();
    expect(second.last).toBe(7);
    expect(await second.read(all)).toEqual(texts(5, 3));
  });

  it("are the newest ones only, at most one in a hundred more than are kept, also over restarts", async () => {
    let next = 1;
    for (let turn = 0; turn < 4; turn++) {
      const disk = await open(1_000);
      for (let batch = 0; batch < 10; batch++) {
        await disk.append(texts(next, 77));
        next += 77;
        const found = seqs(await disk.read(all));
        expect(found.length).toBeLessThanOrEqual(1_010);
        expect(found.length).toBe(Math.min(next - 1, found.length < 1_000 ? next - 1 : found.length));
        expect(found.at(-1)).toBe(next - 1);
        expect(found[0]).toBe(disk.removedUpTo + 1);
      }
      await disk.close();
    }
  });

  it("go at once when fewer are to be kept than before", async () => {
    const many = await open(10_000);
    for (let batch = 0; batch < 5; batch++) await many.append(texts(1 + batch * 1_000, 1_000));
    await many.close();
    const few = await open(10);
    await few.append(texts(5_001, 1));
    expect(seqs(await few.read(all))).toEqual(texts(4_992, 10).map(([seq]) => seq));
    expect(few.removedUpTo).toBe(4_991);
  });

  it("are counted anew when the count is lost", async () => {
    const { Level } = await import("level");
    const disk = await open(100);
    await disk.append(texts(1, 100));
    await disk.close();
    const level = new Level<string, string>(folder);
    await level.put("census", "{");
    await level.close();
    const again = await open(100);
    await again.append(texts(101, 50));
    expect(seqs(await again.read(all))[0]).toBe(51);
  });
});

describe("a damaged folder", () => {
  const aside = (): string[] => readdirSync(parent.path).filter((name) => name.startsWith("logs.damaged-"));

  async function fill(): Promise<void> {
    const disk = await open(100_000);
    for (let batch = 0; batch < 20; batch++) {
      await disk.append(texts(1 + batch * 1_000, 1_000).map(([seq, text]) => [seq, text.repeat(30)]));
    }
    await disk.close();
    // Opening again turns the last log into a table.
    await (await open(100_000)).close();
  }
  const file = (pattern: RegExp): string =>
    join(folder, readdirSync(folder).find((name) => pattern.test(name)) ?? "none");

  it.each<[string, () => void]>([
    ["CURRENT is garbage", () => writeFileSync(join(folder, "CURRENT"), "garbage")],
    ["CURRENT names nothing", () => writeFileSync(join(folder, "CURRENT"), "MANIFEST-999999\n")],
    ["the manifest is garbage", () => writeFileSync(file(/^MANIFEST/), Buffer.alloc(500, "x"))],
    ["the manifest is empty", () => writeFileSync(file(/^MANIFEST/), "")],
    ["a table is missing", () => rmSync(file(/\.ldb$/))],
  ])("where %s is moved aside, once, and records are kept again", async (_, damage) => {
    await fill();
    damage();
    let disk = await open();
    // Some damage shows only when it is met.
    const found = await disk.read(all).catch(() => []);
    await disk.append(texts(50_000, 1)).catch(() => undefined);
    await disk.append(texts(50_001, 1));
    expect(found.length).toBeLessThan(20_000);
    expect(seqs(await disk.read({ ...all, from: "newest", limit: 1 }))).toEqual([50_001]);
    expect(aside()).toEqual(["logs.damaged-2026-11-28T09-30-00.000Z"]);
    expect(log.lines.at(-1)).toMatchObject({ level: "warn", event: "log-records-damaged" });
    await disk.close();
    writeFileSync(join(folder, "CURRENT"), "garbage");
    disk = await open();
    expect(aside().length).toBe(1);
    expect(disk.last).toBe(0);
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    [
      "with flipped bits",
      (bytes) => bytes.map((byte, at) => (at >= 1_000 && at < 1_020 ? byte ^ 0xff : byte)) as Buffer,
    ],
    ["that is cut off", (bytes) => bytes.subarray(0, 5_000)],
    ["that is empty", () => Buffer.alloc(0)],
  ])("that has a table %s is written to all the same", async (_, damage) => {
    await fill();
    const table = file(/\.ldb$/);
    writeFileSync(table, damage(readFileSync(table)));
    const disk = await open();
    await disk.read(all).catch(() => undefined);
    await disk.append(texts(50_000, 1)).catch(() => undefined);
    await disk.append(texts(50_001, 1));
    expect(seqs(await disk.read({ ...all, from: "newest", limit: 1 }))).toEqual([50_001]);
  });
});

it("a folder that another has open is refused, and not moved", async () => {
  await open();
  await expect(open()).rejects.toThrow();
  expect(readdirSync(parent.path)).toEqual(["logs"]);
});

const small = mkdtempSync(join(tmpdir(), "troupe-log-disk-"));
const canMount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", small]).status === 0;

afterAll(() => {
  if (canMount) spawnSync("umount", ["-l", small]);
  rmSync(small, { recursive: true, force: true });
});

describe.runIf(canMount)("on a full disk (needs the right to mount a tmpfs)", () => {
  it("what is there can be read, and writing goes on by itself once there is room", { timeout: 30_000 }, async () => {
    const disk = await open(1_000_000, join(small, "logs"));
    writeFileSync(join(small, "filler"), Buffer.alloc(10 * 1024 * 1024));
    let next = 1;
    const write = async (): Promise<boolean> => {
      const batch = Array.from({ length: 100 }, (_, at): SequencedText => [next + at, "x".repeat(2_000)]);
      const isWritten = await disk.append(batch).then(
        () => true,
        () => false,
      );
      if (isWritten) next += batch.length;
      return isWritten;
    };
    while (await write());
    expect(next).toBeGreaterThan(1_000);
    for (let turn = 0; turn < 3; turn++) {
      expect(await write()).toBe(false);
      expect(seqs(await disk.read({ ...all, from: "newest", limit: 1 }))[0]).toBeGreaterThanOrEqual(next - 1);
      expect(seqs(await disk.read({ ...all, limit: 1 }))).toEqual([1]);
    }
    rmSync(join(small, "filler"));
    expect(await write()).toBe(true);
    const found = seqs(await disk.read(all));
    expect(found.length).toBe(next - 1);
  });
});
