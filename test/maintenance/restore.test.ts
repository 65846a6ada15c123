/** Restoring: an empty folder becomes what was backed up, or stays empty. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type RestoreOptions, restore } from "../../src/maintenance/restore.ts";
import {
  entryFrames,
  fileFrameStart,
  headerFrame,
  magic,
  packageFrame,
  sealedChunks,
} from "../../src/maintenance/snapshot-format.ts";
import { verifyFolder } from "../../src/maintenance/verify-folder.ts";
import { proveKeys } from "../../src/node/key-proof.ts";
import { openPackages } from "../../src/packages/packages.ts";
import { troupeVersion } from "../../src/sdk/troupe-package.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { createStore } from "../../src/store/offline-store.ts";
import { keptLog, wallClock } from "../store/parts.ts";
import { bytesOf, collect, type DataFolder, filledFolder, secretsKey } from "./parts.ts";

let folder: DataFolder;
let work: string;
let file: string;
let dataDir: string;
let whole: Buffer;
let round = 0;

beforeAll(async () => {
  folder = await filledFolder();
  work = await mkdtemp(join(tmpdir(), "troupe-restore-"));
  whole = await bytesOf(folder.backup());
});
afterAll(async () => {
  await folder.remove();
  await rm(work, { recursive: true, force: true });
});
beforeEach(async () => {
  round += 1;
  file = join(work, `b${round}.troupe`);
  dataDir = join(work, `data${round}`);
  await writeFile(file, whole);
});

const reopened = () => openLevelStore({ folder: join(dataDir, "store"), clock: wallClock, log: keptLog() });
const go = (more: Partial<RestoreOptions> = {}) => restore({ file, dataDir, ...more });

const header = {
  serverVersion: "0.1.0",
  storeFormat: 1,
  epoch: 3,
  takenAt: "2026-11-28T09:30:00.000Z",
  secretsKeyIds: [],
  packages: 0,
  packagesLeftOut: [],
};

/** A whole backup, as somebody else could have made it. */
async function forged(...frames: Buffer[]): Promise<void> {
  async function* pieces() {
    yield magic;
    yield* frames;
  }
  const counts = { entries: 0, packages: 0, files: 0, bytes: 0 };
  for (const frame of frames) {
    if (frame[0] === 0x45) counts.entries += 1;
    if (frame[0] === 0x50) counts.packages += 1;
    if (frame[0] === 0x46) counts.files += 1;
  }
  await writeFile(file, Buffer.concat(await collect(sealedChunks(pieces(), counts))));
}

describe("restoring", () => {
  it("makes the same entries, packages and modes, with a higher epoch, and secrets open with the same key", async () => {
    const told: { entries: number; of: number }[] = [];
    const { header: said } = await go({ onProgress: (progress) => told.push(progress) });
    expect(told.at(-1)).toEqual({ entries: told.at(-1)?.of, of: told.at(-1)?.of });
    const store = await reopened();
    expect(store.epoch).toBeGreaterThan(folder.store.epoch + 1);
    const all = { prefix: "", limit: 10_000 };
    const content = async (of: typeof store) =>
      (await of.range(all)).filter(({ key }) => !["m/epoch", "m/format"].includes(key));
    expect(await content(store)).toEqual(await content(folder.store));
    await proveKeys(store, openVault({ key: secretsKey }));
    const other = openVault({ key: Buffer.alloc(32, 9).toString("base64") });
    await expect(proveKeys(store, other)).rejects.toThrow("not the one this data directory was written with");
    expect(said.secretsKeyIds).toHaveLength(1);
    await store.close();

    const modules = join(dataDir, "modules");
    const packages = openPackages({ folder: modules, serverVersion: troupeVersion(), log: keptLog() });
    const [hash = ""] = await readdir(join(modules, "one"));
    const opened = await packages.open("one", hash);
    expect(opened.manifest).toMatchObject({ id: "one", version: "1.0.0" });
    expect(await readFile(join(opened.folder, "index.js"))).toEqual(
      await readFile(join(folder.modules, "one", hash, "package", "index.js")),
    );
    expect((await stat(join(opened.folder, "index.js"))).mode & 0o777).toBe(0o644);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    const messages = await collect(verifyFolder(dataDir));
    expect(messages.filter((message) => "finding" in message)).toEqual([]);
    expect(messages.at(-1)).toMatchObject({ summary: { records: 12, packages: 2, secrets: 2, findings: 0 } });
  });

  it.each(["lost+found", "secrets.key"])("takes a folder with %s in it", async (name) => {
    await mkdir(dataDir);
    await writeFile(join(dataDir, name), "x");
    await go();
    expect((await readdir(dataDir)).sort()).toEqual([name, "modules", "store"].sort());
  });

  it.each(["store", "modules", "logs", ".hidden"])(
    "refuses a folder with %s in it, and changes nothing",
    async (name) => {
      await mkdir(join(dataDir, name, "kept"), { recursive: true });
      await expect(go()).rejects.toMatchObject({
        exitCode: 73,
        message: `Cannot restore into "${dataDir}": "${name}" is there. Restore into an empty folder`,
      });
      expect(await readdir(dataDir, { recursive: true })).toEqual([name, join(name, "kept")]);
    },
  );

  it("refuses a second time", async () => {
    await go();
    await expect(go()).rejects.toThrow("Restore into an empty folder");
  });

  it("refuses a folder that is a file", async () => {
    await writeFile(dataDir, "");
    await expect(go()).rejects.toMatchObject({ exitCode: 74 });
  });

  it("refuses a damaged backup before it makes a folder", async () => {
    const changed = Buffer.from(whole);
    changed[5_000] = (changed[5_000] ?? 0) ^ 1;
    await writeFile(file, changed);
    await expect(go()).rejects.toThrow("it was changed since it was written");
    await expect(readdir(dataDir)).rejects.toThrow("ENOENT");
  });

  it("refuses a store of a newer format", async () => {
    await forged(headerFrame({ ...header, storeFormat: 2 }));
    await expect(go()).rejects.toThrow("its store is of format 2, newer than the 1 this version reads");
  });

  const hash = "a".repeat(64);
  const seal = Buffer.from(JSON.stringify({ format: 1, hash, files: [] }));
  const named = (path: string, content = "x") =>
    Buffer.concat([fileFrameStart(path, content.length), Buffer.from(content)]);
  const hostile: Record<string, readonly [Buffer[], string]> = {
    "without a header": [[entryFrames([[Buffer.from("a"), Buffer.from("b")]])], "its header cannot be read"],
    "with a header that says nothing": [[headerFrame({} as never)], "its header cannot be read"],
    "with a file of no package": [[headerFrame(header), named("seal.json")], "belongs to no package"],
    "with an id that is a path": [[headerFrame(header), packageFrame({ id: "../x", hash, files: 1 })], "an id must"],
    "with a hash that is a path": [
      [headerFrame(header), packageFrame({ id: "x", hash: "../../x", files: 1 })],
      "not a SHA-256",
    ],
    "with a path that leads outside": [
      [headerFrame(header), packageFrame({ id: "x", hash, files: 1 }), named("package/../../../../evil")],
      "has a path that no package has",
    ],
    "with an absolute path": [
      [headerFrame(header), packageFrame({ id: "x", hash, files: 1 }), named("/etc/evil")],
      "has a path that no package has",
    ],
    "with a path beside the package": [
      [headerFrame(header), packageFrame({ id: "x", hash, files: 1 }), named("evil")],
      "has a path that no package has",
    ],
    "with a package that is not as it was sealed": [
      [
        headerFrame(header),
        packageFrame({ id: "x", hash, files: 2 }),
        named("seal.json", String(seal)),
        named("package/a"),
      ],
      `the package "${hash}" of module "x" in it is damaged`,
    ],
    "with fewer files than it says": [
      [headerFrame(header), packageFrame({ id: "x", hash, files: 2 }), named("seal.json", String(seal))],
      `the package "${hash}" of module "x" in it is damaged`,
    ],
    "with a mark of the store": [
      [headerFrame(header), entryFrames([[Buffer.from("m/epoch"), Buffer.from("9")]])],
      "an entry that belongs to the store",
    ],
    "with a frame that is none": [[headerFrame(header), Buffer.from("Zxxxxxxxx")], "one of its parts cannot be read"],
    "with a frame longer than the file": [
      [headerFrame(header), Buffer.from([0x45, 0xff, 0xff, 0xff, 0xff])],
      "one of its parts cannot be read",
    ],
    "with a key longer than its entry": [
      [headerFrame(header), Buffer.from([0x45, 0, 0, 0, 4, 0, 0, 0, 9])],
      "one of its parts cannot be read",
    ],
  };

  it.each(Object.entries(hostile))("refuses a whole backup %s, and leaves nothing behind", async (_, [frames, why]) => {
    await forged(...frames);
    await expect(go()).rejects.toThrow(why);
    await expect(readdir(dataDir)).rejects.toThrow("ENOENT");
    expect((await readdir(work)).filter((name) => name.includes("evil"))).toEqual([]);
  });

  it("is refused by a server until it is finished, and by another restore while it goes on", async () => {
    await mkdir(dataDir);
    const store = await createStore(join(dataDir, "store"));
    await store.add([[Buffer.from("a/process/1"), Buffer.from("1 {}")]]);
    await expect(go()).rejects.toMatchObject({ exitCode: 75, message: expect.stringContaining("is using it") });
    await store.close();
    await expect(reopened()).rejects.toMatchObject({ exitCode: 65, message: expect.stringContaining("was cut off") });
    await go();
    await (await reopened()).close();
  });

  it("that is told to end leaves nothing behind, before it begins and when all is written", async () => {
    for (const when of ["before", "written"]) {
      const leaving = new AbortController();
      const leave = (): void => leaving.abort(new Error("told to end"));
      if (when === "before") leave();
      await expect(go({ signal: leaving.signal, onProgress: leave })).rejects.toThrow("told to end");
      await expect(readdir(dataDir)).rejects.toThrow("ENOENT");
    }
  });
});
