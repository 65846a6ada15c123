/**
 * a damaged folder is refused, naming folder and file, or serves everything that was acknowledged. No file is changed by a
 * refusal, and no damage ever looks like an empty or smaller store.
 */
import { createHash } from "node:crypto";
import { cp, mkdir, open as openFile, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLevelStore } from "../../src/store/level-store.ts";
import { StoreOpenError } from "../../src/store/store-open-error.ts";
import { change } from "./commits.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";

const entries = 1_200;
const perCommit = 12;
/** Not in the database's own sense: LevelDB's text log, its lock, our pid. */
const besides = new Set(["LOCK", "LOG", "LOG.old", "PID"]);

let root: { path: string; remove(): Promise<void> };
let pristine: string;
let copies = 0;

beforeAll(async () => {
  root = await temporaryFolder();
  pristine = join(root.path, "pristine");
  // Several openings leave several tables; the last one's commits are in the log alone.
  for (let part = 0; part < 4; part += 1) {
    const store = await openLevelStore({ folder: pristine, clock: wallClock, log: keptLog() });
    for (let first = part * 300; first < (part + 1) * 300; first += perCommit) {
      const writes = Array.from({ length: perCommit }, (_, n) => ({ key: keyOf(first + n), value: textOf(first + n) }));
      await store.commit([change(store, `r/${first}`, 0, "r", writes)]);
    }
    await store.close();
  }
  const names = await dataFiles(pristine);
  expect(names.filter((name) => name.endsWith(".ldb")).length).toBeGreaterThanOrEqual(2);
  expect(names.filter((name) => name.endsWith(".log"))).toHaveLength(1);
});

afterAll(() => root.remove());

const keyOf = (n: number) => `a/${String(n).padStart(6, "0")}`;
const textOf = (n: number) => `${createHash("sha256").update(String(n)).digest("hex")}${"v".repeat(200)}`;

async function dataFiles(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => !besides.has(name)).sort();
}

async function named(pattern: RegExp): Promise<string[]> {
  const names = (await dataFiles(pristine)).filter((name) => pattern.test(name));
  expect(names.length).toBeGreaterThan(0);
  return names;
}

async function fingerprint(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of await dataFiles(folder)) hash.update(name).update(await readFile(join(folder, name)));
  return hash.digest("hex");
}

/** Damages a copy, opens it, and says what became of it. Fails on anything but refusal or completeness. */
async function openDamaged(
  damage: (folder: string) => Promise<void>,
): Promise<{ refusal?: StoreOpenError; torn: boolean; found: number }> {
  copies += 1;
  const folder = join(root.path, `copy-${copies}`);
  await cp(pristine, folder, { recursive: true });
  await damage(folder);
  const before = await fingerprint(folder);
  const log = keptLog();
  try {
    const store = await openLevelStore({ folder, clock: wallClock, log });
    const kept = await store.read(Array.from({ length: entries }, (_, n) => keyOf(n)));
    await store.close();
    kept.forEach((text, n) => {
      if (text !== undefined) expect(text).toBe(textOf(n));
    });
    const torn = log.lines.some(({ event }) => event === "store-log-torn");
    return { torn, found: kept.filter((text) => text !== undefined).length };
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error;
    expect(error.message).toContain(`"${folder}"`);
    const isByFiles = error.message.includes('its file "');
    // Refused by what the database says about itself: LevelDB has been at its files, but every entry is still there.
    if (isByFiles) expect(await fingerprint(folder)).toBe(before);
    return { refusal: error, torn: false, found: isByFiles ? 0 : await countIn(folder) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function countIn(folder: string): Promise<number> {
  const level = new Level<string, string>(folder);
  const keys = await level.keys({ gt: "a/", lt: "a0" }).all();
  await level.close();
  return keys.length;
}

async function flip(path: string, at: number, mask: number): Promise<void> {
  const file = await openFile(path, "r+");
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  byte[0] = byte[0]! ^ mask;
  await file.write(byte, 0, 1, at);
  await file.close();
}

/** Every place of a short file; of a long one the edges and an even spread between them. */
function places(size: number): number[] {
  if (size <= 64) return Array.from({ length: size }, (_, at) => at);
  const spread = Array.from({ length: 25 }, (_, n) => Math.floor((n * (size - 1)) / 24));
  return [...new Set([0, 4, 5, 6, 7, ...spread, ...Array.from({ length: 12 }, (_, n) => size - 48 + n * 4)])].filter(
    (at) => at < size,
  );
}

describe("a damaged store", () => {
  it.each([
    ["CURRENT", /^CURRENT$/],
    ["the manifest", /^MANIFEST-/],
    ["a table", /\.ldb$/],
    ["the log", /\.log$/],
  ])(
    "with one flipped byte in %s is refused naming the file, or complete",
    { timeout: 60_000 },
    async (_what, pattern) => {
      let refused = 0;
      let tried = 0;
      for (const name of await named(pattern)) {
        const { length } = await readFile(join(pristine, name));
        for (const at of places(length)) {
          const mask = at % 2 === 0 ? 0x01 : 0x80;
          const { refusal, found } = await openDamaged((folder) => flip(join(folder, name), at, mask));
          tried += 1;
          if (refusal === undefined) {
            expect([name, at, found]).toEqual([name, at, entries]);
          } else {
            refused += 1;
            expect(refusal.exitCode).toBe(65);
            expect(refusal.message).toMatch(/its file "(CURRENT|MANIFEST-\d+|\d+\.(ldb|log))"/);
          }
        }
      }
      // A few bytes mean nothing: padding in a table's footer.
      expect(refused).toBeGreaterThan(tried * 0.8);
    },
  );

  it("without any one of its files is refused naming the file", async () => {
    for (const name of await named(/./)) {
      const { refusal } = await openDamaged((folder) => rm(join(folder, name)));
      expect(refusal?.exitCode).toBe(65);
      expect(refusal?.message).toContain(`"${name}"`);
    }
  });

  it("without all files of one sort is refused", async () => {
    for (const pattern of [/\.ldb$/, /\.log$/, /^MANIFEST|^CURRENT/, /\.ldb$|\.log$/, /^CURRENT$|\.ldb$/]) {
      const { refusal } = await openDamaged(async (folder) => {
        for (const name of await named(pattern)) await rm(join(folder, name));
      });
      expect(refusal?.exitCode).toBe(65);
    }
  });

  it.each([
    ["CURRENT", /^CURRENT$/],
    ["the manifest", /^MANIFEST-/],
    ["a table", /\.ldb$/],
  ])("with %s cut short, or emptied, is refused or complete", async (_what, pattern) => {
    for (const name of await named(pattern)) {
      const { length } = await readFile(join(pristine, name));
      for (const size of [0, 1, Math.floor(length / 2), length - 1]) {
        const { refusal, found } = await openDamaged((folder) => truncate(join(folder, name), size));
        if (refusal === undefined) expect([name, size, found]).toEqual([name, size, entries]);
        else expect(refusal.exitCode).toBe(65);
      }
    }
  });

  it("with a last write that was cut off opens, says so, and has everything before it", async () => {
    const [name] = await named(/\.log$/);
    const { length } = await readFile(join(pristine, name!));
    for (const cut of [1, 50, 200]) {
      const { refusal, torn, found } = await openDamaged((folder) => truncate(join(folder, name!), length - cut));
      expect(refusal).toBeUndefined();
      expect(torn).toBe(true);
      expect(found).toBe(entries - perCommit);
    }
  });

  it("with a last write whose pages never reached the disk opens, says so, and has everything before it", async () => {
    const [name] = await named(/\.log$/);
    const { torn, found } = await openDamaged(async (folder) => {
      const path = join(folder, name!);
      const bytes = await readFile(path);
      await writeFile(path, Buffer.concat([bytes, Buffer.alloc(8_192)]));
    });
    expect(torn).toBe(true);
    expect(found).toBe(entries);
  });

  it("that is somebody else's folder is refused", async () => {
    const { refusal, found } = await openDamaged(async (folder) => {
      await rm(folder, { recursive: true });
      await mkdir(folder);
      const level = new Level<string, string>(folder);
      await level.put("a/theirs", "1");
      await level.close();
    });
    expect(refusal).toMatchObject({ exitCode: 65, message: expect.stringContaining("it has data but no format mark") });
    expect(found).toBe(1);
  });

  it.each([
    ["without its format", (level: Level) => level.del("m/format"), "its format mark is missing"],
    ["without its epoch", (level: Level) => level.del("m/epoch"), "its epoch is missing"],
    ["with a format that is no number", (level: Level) => level.put("m/format", "one"), "its format mark is no number"],
    ["with an epoch that is no number", (level: Level) => level.put("m/epoch", "-3"), "its epoch is no number"],
    [
      "of a newer version",
      (level: Level) => level.put("m/format", "99"),
      "its format 99 is newer than the 1 this version reads",
    ],
    ["of an unknown older version", (level: Level) => level.put("m/format", "0"), "its format mark is no number"],
  ])("%s is refused", async (_what, edit, reason) => {
    const { refusal, found } = await openDamaged(async (folder) => {
      const level = new Level<string, string>(folder);
      await edit(level as never);
      await level.close();
    });
    expect(refusal?.message).toContain(reason);
    expect(found).toBe(entries);
    expect(refusal?.exitCode).toBe(65);
  });
});
