/** The readers of LevelDB's files, against files LevelDB wrote. `damage.test.ts` shows what the store makes of them. */
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { proveInBackground } from "../../src/store/background-proof.ts";
import { crc32c } from "../../src/store/crc32c.ts";
import { readLog } from "../../src/store/log-file.ts";
import { unsnap } from "../../src/store/snappy.ts";
import { isTableWhole } from "../../src/store/table-file.ts";
import { until } from "../until.ts";
import { keptLog, temporaryFolder, wallClock } from "./parts.ts";

let folder: { path: string; remove(): Promise<void> };
const sizes = [0, 1, 480, 5_000, 32 * 1024 - 30, 32 * 1024, 100_000, 1_000_000];

beforeAll(async () => {
  folder = await temporaryFolder();
  for (const compression of [true, false]) {
    const level = new Level<string, string>(join(folder.path, String(compression)), { compression });
    // Keys long enough that the index packs as well; values of one kind that packs and one that does not.
    const key = (n: number) => `${"k".repeat(60)}/${n}`;
    for (let n = 0; n < 1_000; n += 1) await level.put(key(n), n % 2 === 0 ? "v".repeat(480) : noise(480, n));
    await level.batch(sizes.map((size, place) => ({ type: "put", key: key(place), value: noise(size, place) })));
    // What is in the log becomes a table when it is opened again.
    await level.close();
    await level.open();
    for (const size of sizes) await level.put(`log/${size}`, noise(size, size), { sync: true });
    await level.close();
  }
});

afterAll(() => folder.remove());

function noise(size: number, seed: number): string {
  return createHash("shake256", { outputLength: size }).update(String(seed)).digest("base64").slice(0, size);
}

async function files(compression: boolean, end: string): Promise<string[]> {
  const path = join(folder.path, String(compression));
  return (await readdir(path)).filter((name) => name.endsWith(end)).map((name) => join(path, name));
}

describe("LevelDB's files", () => {
  it("CRC-32C has its published check value, at any offset", () => {
    for (let offset = 0; offset < 9; offset += 1) {
      const bytes = Buffer.from(`${"x".repeat(offset)}123456789yy`);
      expect(crc32c(bytes, offset, offset + 9)).toBe(0xe3069283);
    }
    expect(crc32c(Buffer.alloc(32), 0, 32)).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(32, 0xff), 0, 32)).toBe(0x62a8ab43);
  });

  it.each([true, false])("every table written with compression %s is whole", async (compression) => {
    const tables = await files(compression, ".ldb");
    expect(tables.length).toBeGreaterThan(0);
    for (const path of tables) expect([path, isTableWhole(await readFile(path))]).toEqual([path, true]);
  });

  it.each([true, false])(
    "every log written with compression %s is whole, records of all sizes included",
    async (compression) => {
      const [path] = await files(compression, ".log");
      const { state, records } = readLog(await readFile(path!));
      expect(state).toBe("whole");
      expect(records.length).toBeGreaterThanOrEqual(sizes.length);
      expect(records.at(-1)!.length).toBeGreaterThan(1_000_000);
    },
  );

  it("a table is not whole with any of its bytes flipped, cut off or added", async () => {
    const [path] = await files(true, ".ldb");
    const bytes = await readFile(path!);
    let missed = 0;
    for (let n = 0; n < 120; n += 1) {
      const at = Math.floor((n * (bytes.length - 1)) / 119);
      const changed = Buffer.from(bytes);
      changed[at] = changed[at]! ^ (1 << (n % 8));
      if (isTableWhole(changed)) missed += 1;
    }
    // The padding of the footer, up to 40 bytes, has no meaning.
    expect(missed).toBeLessThanOrEqual(1);
    for (const size of [0, 1, 47, 48, 100, bytes.length - 1]) expect(isTableWhole(bytes.subarray(0, size))).toBe(false);
    expect(isTableWhole(Buffer.concat([bytes, Buffer.alloc(1)]))).toBe(false);
  });

  it.each([
    ["a literal", "0508 68656c6c6f", undefined],
    ["a literal", "0510 68656c6c6f", "hello"],
    ["an overlapping copy", "0a00 61 1501", "a".repeat(10)],
    ["a copy with two bytes of distance", "0604 6162 0e0200", "ababab"],
    ["a copy from before the block", "0a00 61 1502", undefined],
    ["a copy of no distance", "0a00 61 1500", undefined],
    ["a copy beyond the end", "0500 61 1501", undefined],
    ["fewer bytes than it says", "0600 61", undefined],
    ["a length without end", "ffffffffffffffffffff", undefined],
    ["a length beyond all memory", "ffffffff7f 00 61", undefined],
    ["nothing", "", undefined],
  ])("a Snappy block of %s (%s) unpacks or throws", (_what, hex, text) => {
    const unpack = () => Buffer.from(unsnap(Buffer.from(hex.replaceAll(" ", ""), "hex"))).toString();
    if (text === undefined) expect(unpack).toThrow(RangeError);
    else expect(unpack()).toBe(text);
  });

  it("a table damaged while the store serves is found and named, one that is gone is passed over", async () => {
    const { path, remove } = await temporaryFolder();
    const [table] = await files(true, ".ldb");
    const bytes = await readFile(table!);
    await writeFile(join(path, "000001.ldb"), bytes);
    bytes[100] = bytes[100]! ^ 1;
    await writeFile(join(path, "000003.ldb"), bytes);
    const log = keptLog();
    const names = ["000001.ldb", "000002.ldb", "000003.ldb"];
    const proof = proveInBackground({ folder: path, names, clock: wallClock, log });
    await until(() => log.lines.some(({ event }) => event === "store-tables-proved"));
    const damage = log.lines.filter(({ event }) => event === "store-table-damaged");
    expect(damage).toHaveLength(1);
    expect(damage[0]?.message).toContain('"000003.ldb"');
    await proof.stop();
    await remove();
  });

  it("a proof that is stopped ends at once", async () => {
    const log = keptLog();
    const names = Array.from({ length: 1_000 }, (_, n) => `${n}.ldb`);
    const proof = proveInBackground({ folder: folder.path, names, clock: wallClock, log });
    await proof.stop();
    expect(log.lines).toEqual([]);
  });
});
