/** A backup: one moment of a store that takes writes, in bounded chunks, and as a file that is whole or not there. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { backupChunkBytesMax } from "../../src/limits.ts";
import { backupOf, writeBackup } from "../../src/maintenance/backup.ts";
import { type BackupPart, proveBackup, readParts } from "../../src/maintenance/backup-file.ts";
import { trailerBytes } from "../../src/maintenance/snapshot-format.ts";
import { wallClock } from "../store/parts.ts";
import { bytesOf, chunksOf, collect, DataFolder, filledFolder } from "./parts.ts";

let folder: DataFolder;
let target: string;
let whole: Buffer;

beforeAll(async () => {
  folder = await filledFolder();
  target = await mkdtemp(join(tmpdir(), "troupe-backup-"));
  whole = await bytesOf(folder.backup());
});
afterAll(async () => {
  await folder.remove();
  await rm(target, { recursive: true, force: true });
});
afterEach(async () => {
  for (const name of await readdir(target)) await rm(join(target, name));
});

async function* only(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

async function write(bytes: Buffer, name = "b.troupe"): Promise<string> {
  await writeFile(join(target, name), bytes);
  return join(target, name);
}

const keysOf = (parts: readonly BackupPart[]): string[] =>
  parts.flatMap((part) => (part.kind === "entry" ? [part.entry[0].toString()] : []));

describe("a backup", () => {
  it("says the header first, the trailer last, and has chunks of at most 256 KiB between", async () => {
    const messages = await collect(folder.backup());
    expect(messages[0]).toMatchObject({ header: { epoch: 1, storeFormat: 1, packages: 2, packagesLeftOut: [] } });
    expect(messages.at(-1)).toEqual({
      trailer: { entries: expect.any(Number), packages: 2, files: expect.any(Number), bytes: whole.length },
    });
    const sizes = messages.slice(1, -1).map((message) => ("chunk" in message ? message.chunk.length : 0));
    expect(Math.max(...sizes)).toBe(backupChunkBytesMax);
    expect(sizes.slice(0, -1).every((size) => size === backupChunkBytesMax)).toBe(true);
  });

  it("has every entry of the store but its own marks, and no secret in plain", async () => {
    const parts = await collect(readParts(await write(whole)));
    const stored = (await folder.store.range({ prefix: "", limit: 10_000 })).map(({ key }) => key);
    expect(keysOf(parts)).toEqual(stored.filter((key) => key !== "m/format" && key !== "m/epoch"));
    expect(whole.includes("hush")).toBe(false);
    expect(whole.includes(Buffer.alloc(32, 7))).toBe(false);
    expect(parts.flatMap((part) => (part.kind === "package" ? [part.packed.id] : []))).toEqual(["one", "two"]);
  });

  it("is the store of one moment, whatever is written while it is read", async () => {
    const busy = await DataFolder.make();
    try {
      for (let id = 1; id <= 300; id += 1) await busy.createProcess(id, "x".repeat(10_000));
      const messages = busy.backup();
      await messages.next();
      let id = 300;
      const chunks: Uint8Array[] = [];
      for await (const chunk of chunksOf(messages)) {
        chunks.push(chunk);
        await busy.createProcess(++id);
      }
      expect(id).toBeGreaterThan(310);
      const keys = keysOf(await collect(readParts(await write(Buffer.concat(chunks)))));
      expect(keys.filter((key) => key.startsWith("a/process/"))).toHaveLength(300);
    } finally {
      await busy.remove();
    }
  });

  it("has what was acknowledged before it was asked for", async () => {
    const busy = await DataFolder.make();
    try {
      for (let id = 1; id <= 20; id += 1) {
        await busy.createProcess(id);
        const bytes = await bytesOf(busy.backup());
        expect(bytes.includes(`a/process/${id}`), String(id)).toBe(true);
      }
    } finally {
      await busy.remove();
    }
  });

  it("keeps a package that is removed while it is read, and removes it after", async () => {
    const busy = await DataFolder.make();
    try {
      const hash = await busy.installModule("going");
      const messages = busy.backup();
      await messages.next();
      await busy.packages.remove("going", hash);
      const bytes = await bytesOf(messages);
      expect((await proveBackup(await write(bytes))).counts.packages).toBe(1);
      await expect.poll(() => busy.packages.open("going", hash).catch(() => "gone")).toBe("gone");
    } finally {
      await busy.remove();
    }
  });

  it("leaves out a package that is damaged, and says so", async () => {
    const busy = await DataFolder.make();
    try {
      const hash = await busy.installModule("broken");
      await writeFile(join(busy.modules, "broken", hash, "package", "package.json"), "{}");
      const bytes = await bytesOf(busy.backup());
      const { header } = await proveBackup(await write(bytes));
      expect(header).toMatchObject({
        packages: 0,
        packagesLeftOut: [{ id: "broken", hash, reason: 'Its file "package.json" was changed' }],
      });
    } finally {
      await busy.remove();
    }
  });

  it("ends when its store closes, and the store does not wait for it", async () => {
    const busy = await filledFolder();
    const messages = busy.backup();
    await messages.next();
    await busy.store.close();
    await expect(bytesOf(messages)).rejects.toThrow("The store");
    await busy.remove();
  });

  it("ends when its caller leaves", async () => {
    const leaving = new AbortController();
    const { store, packages, modules } = folder;
    const messages = backupOf({
      snapshots: store,
      packages,
      folder: modules,
      serverVersion: "0.1.0",
      clock: wallClock,
      signal: leaving.signal,
    });
    await messages.next();
    leaving.abort(new Error("gone"));
    await expect(bytesOf(messages)).rejects.toThrow("gone");
  });
});

describe("a file of a backup", () => {
  it("is made with mode 0600, replaces another, and says what is in it", async () => {
    const file = await write(Buffer.from("an older one"));
    const told: number[] = [];
    const summary = await writeBackup(chunksOf(folder.backup()), file, { onProgress: (bytes) => told.push(bytes) });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(summary).toMatchObject({ header: { packages: 2 }, counts: { bytes: (await stat(file)).size } });
    expect(told.at(-1)).toBe(summary.counts.bytes);
    expect(await readdir(target)).toEqual(["b.troupe"]);
  });

  it("is not made, and an older one stays, when the stream ends early or breaks", async () => {
    const file = await write(Buffer.from("an older one"));
    await expect(writeBackup(only(whole.subarray(0, -1)), file)).rejects.toThrow(
      `Cannot use the backup "${file}": it is incomplete`,
    );
    async function* breaks() {
      yield whole.subarray(0, 1_000);
      throw new Error("the line is down");
    }
    await expect(writeBackup(breaks(), file)).rejects.toThrow("the line is down");
    expect(await readdir(target)).toEqual(["b.troupe"]);
    expect(await readFile(file, "utf8")).toBe("an older one");
  });

  it("is refused where it cannot be made", async () => {
    await expect(writeBackup(only(whole), join(target, "none", "b"))).rejects.toMatchObject({
      exitCode: 73,
      message: `Cannot make the file "${join(target, "none", "b")}": ENOENT`,
    });
  });

  const cuts: Record<string, (bytes: Buffer) => number> = {
    "before its first byte": () => 0,
    "within its first word": () => 7,
    "behind its first word": () => 16,
    "within the head of its header": () => 19,
    "within its header": () => 100,
    "within the files of a package": (bytes) => bytes.indexOf("seal.json") + 200,
    "within the key of an entry": (bytes) => bytes.indexOf("a/process/3") + 4,
    "behind the key of an entry": (bytes) => bytes.indexOf("a/process/3") + 11,
    "within a large value": (bytes) => bytes.indexOf("x".repeat(1_000)) + 300_000,
    "at the end of a chunk": () => backupChunkBytesMax,
    "in the middle": (bytes) => bytes.length >> 1,
    "before its trailer": (bytes) => bytes.length - trailerBytes,
    "within its trailer": (bytes) => bytes.length - 40,
    "before its last byte": (bytes) => bytes.length - 1,
  };

  it.each(Object.entries(cuts))("is refused when it was cut off %s", async (_, at) => {
    const file = await write(whole.subarray(0, at(whole)));
    const sentence = at(whole) === 0 ? "it is empty" : "it is incomplete: it was cut off, or something follows its end";
    await expect(proveBackup(file)).rejects.toMatchObject({
      exitCode: 65,
      message: `Cannot use the backup "${file}": ${sentence}`,
    });
  });

  it("is refused with anything after its end", async () => {
    for (const more of [Buffer.from("\n"), whole]) {
      await expect(proveBackup(await write(Buffer.concat([whole, more])))).rejects.toThrow("it is incomplete");
    }
  });

  it("is refused with any bit of any part of it turned", async () => {
    const places = [
      ...Object.values(cuts).map((at) => Math.max(0, at(whole) - 1)),
      ...Array.from({ length: 40 }, (_, step) => Math.floor((whole.length * step) / 40)),
      ...Array.from({ length: trailerBytes }, (_, step) => whole.length - 1 - step),
    ];
    for (const place of places) {
      const changed = Buffer.from(whole);
      changed[place] = (changed[place] ?? 0) ^ (1 << (place % 8));
      await expect(proveBackup(await write(changed)), `byte ${place}`).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(
          /^Cannot use the backup ".*": (it is incomplete|it was changed|it is no backup|it is of format)/,
        ),
      });
    }
  });

  it.each([
    ["TROUPE BACKUP 2\nand what comes then", "it is of format 2, and this version reads format 1"],
    ["TROUPE BACKUP 10\nand what comes then", "it is of format 10, and this version reads format 1"],
    ["PK and what comes then is long enough", "it is no backup of a Troupe server"],
  ])("is refused when it is %j", async (text, why) => {
    const file = await write(Buffer.from(text));
    await expect(proveBackup(file)).rejects.toThrow(`Cannot use the backup "${file}": ${why}`);
  });

  it("is refused when it is not there, or a folder", async () => {
    const none = join(target, "none");
    await expect(proveBackup(none)).rejects.toMatchObject({
      exitCode: 66,
      message: `Cannot read the backup "${none}": ENOENT`,
    });
    await expect(proveBackup(target)).rejects.toThrow("it is no file");
  });
});
