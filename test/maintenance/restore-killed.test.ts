/**
 * `troupe restore`, killed right before each of its changes to the data folder, in a process of its own: the folder is then as it was,
 * or whole, or refused by whoever would use it, in a sentence; and restoring again makes it whole.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { restore } from "../../src/maintenance/restore.ts";
import {
  fileFrameStart,
  headerFrame,
  magic,
  packageFrame,
  sealedChunks,
} from "../../src/maintenance/snapshot-format.ts";
import { verifyFolder } from "../../src/maintenance/verify-folder.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { runInProcess } from "../cli/run-in-process.ts";
import { startRefused } from "../e2e/server.ts";
import { keptLog, wallClock } from "../store/parts.ts";
import { bytesOf, collect, DataFolder, secretsKey } from "./parts.ts";

const root = resolve(import.meta.dirname, "../..");
let work: string;
let backup: string;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "troupe-restore-killed-"));
  backup = join(work, "b.troupe");
  const folder = await DataFolder.make();
  for (let id = 1; id <= 3; id += 1) await folder.createProcess(id);
  await folder.installModule("one");
  await writeFile(backup, await bytesOf(folder.backup()));
  await folder.remove();
});
afterAll(() => rm(work, { recursive: true, force: true }));

interface Killed {
  readonly signal: string | null;
  readonly changes: number;
}

/** Into a folder with a key, as an operator may have put it there before. `at` 0: it is left to end. */
async function restoreKilledAt(at: number, dataDir: string, file: string): Promise<Killed> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const killer = join(import.meta.dirname, "killed-at.ts");
  const words = ["--import", killer, join(root, "src/main.ts"), "restore", file, "--data-dir", dataDir];
  const settings = { KILL_BELOW: dataDir, KILL_AT: String(at), KILL_COUNT: `${dataDir}.count` };
  await mkdir(dataDir);
  await writeFile(join(dataDir, "secrets.key"), secretsKey, { mode: 0o600 });
  const signal = await new Promise<string | null>((done) => {
    execFile(process.execPath, words, { env: { PATH, NODE_COMPILE_CACHE, ...settings } }, (error) =>
      done(error?.signal ?? null),
    );
  });
  return { signal, changes: Number(await readFile(settings.KILL_COUNT, "utf8").catch(() => "0")) };
}

/** Whole, but for a package that has fewer files than it says. */
async function brokenBackup(): Promise<Buffer> {
  const hash = "a".repeat(64);
  const seal = Buffer.from(JSON.stringify({ format: 1, hash, files: [] }));
  const header = { serverVersion: "0.1.0", storeFormat: 1, epoch: 3, takenAt: "2026-11-28T09:30:00.000Z" };
  async function* pieces() {
    yield magic;
    yield headerFrame({ ...header, secretsKeyIds: [], packages: 1, packagesLeftOut: [] });
    yield packageFrame({ id: "x", hash, files: 2 });
    yield fileFrameStart("seal.json", seal.length);
    yield seal;
  }
  return Buffer.concat(await collect(sealedChunks(pieces(), { entries: 0, packages: 1, files: 1, bytes: 0 })));
}

const cutOff = (dataDir: string): string =>
  `Cannot open the store in "${dataDir}/store": a restore into it was cut off before everything was there. Restore it again`;

/** What a server makes of it. */
async function opened(dataDir: string): Promise<string> {
  try {
    const store = await openLevelStore({ folder: join(dataDir, "store"), clock: wallClock, log: keptLog() });
    const processes = await store.range({ prefix: "a/process/", limit: 10 });
    await store.close();
    return processes.length === 3 ? "whole" : `served with ${processes.length} of 3 processes`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Of what is whole. */
async function lookAt(dataDir: string): Promise<object> {
  const messages = await collect(verifyFolder(dataDir));
  const last = messages.at(-1);
  const { findings, records } = last !== undefined && "summary" in last ? last.summary : { findings: -1, records: -1 };
  return { findings, records, key: await readFile(join(dataDir, "secrets.key"), "utf8") };
}

async function inPairs<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const lane = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all([lane(), lane()]);
}

/** The first, in which a folder becomes one that is being filled; the last, in which it ceases to be; some of those between. */
function places(changes: number): readonly number[] {
  const all = Array.from({ length: changes }, (_, place) => place + 1);
  return all.filter((place) => place <= 4 || place > changes - 5 || place % 7 === 0);
}

async function holdsNothing(dataDir: string): Promise<boolean> {
  const [left, ofStore] = await Promise.all([
    readdir(dataDir).catch(() => []),
    readdir(join(dataDir, "store")).catch(() => []),
  ]);
  return ofStore.length === 0 && left.every((name) => name === "store" || name === "secrets.key");
}

describe("a restore that is killed", () => {
  it("before any of its changes leaves nothing that is served half full, and goes well the next time", async () => {
    const { changes, signal } = await restoreKilledAt(0, join(work, "counted"), backup);
    expect({ signal, counted: changes > 20 }).toEqual({ signal: null, counted: true });
    const seen = new Set<string>();
    await inPairs(places(changes), async (at) => {
      const dataDir = join(work, `killed-${at}`);
      expect(await restoreKilledAt(at, dataDir, backup), `before change ${at}`).toMatchObject({ signal: "SIGKILL" });
      const isAsBefore = await holdsNothing(dataDir);
      const found = isAsBefore ? "as before" : await opened(dataDir);
      seen.add(found.replace(dataDir, "FOLDER"));
      if (found !== "whole") await restore({ file: backup, dataDir });
      expect({ at, ...(await lookAt(dataDir)) }).toEqual({ at, findings: 0, records: 4, key: secretsKey });
    });
    expect([...seen].sort()).toEqual(["as before", cutOff("FOLDER"), "whole"].sort());
  });

  it("while it removes what it could not finish is refused and restored over all the same", async () => {
    const broken = join(work, "broken.troupe");
    await writeFile(broken, await brokenBackup());
    const { changes } = await restoreKilledAt(0, join(work, "counted-broken"), broken);
    await inPairs(places(changes).slice(-4), async (at) => {
      const dataDir = join(work, `removing-${at}`);
      expect(await restoreKilledAt(at, dataDir, broken), `before change ${at}`).toMatchObject({ signal: "SIGKILL" });
      if (!(await holdsNothing(dataDir))) expect(await opened(dataDir)).toBe(cutOff(dataDir));
      await restore({ file: backup, dataDir });
      expect({ at, ...(await lookAt(dataDir)) }).toEqual({ at, findings: 0, records: 4, key: secretsKey });
    });
  });

  it("is told of by the server and by verify, which leave the folder free for another restore", async () => {
    const dataDir = join(work, "asked");
    await restoreKilledAt(20, dataDir, backup);
    const { code, said } = await startRefused({ folder: dataDir });
    expect({ code, said }).toEqual({ code: 65, said: expect.stringContaining(cutOff(dataDir)) });
    expect(await runInProcess(["verify", "--data-dir", dataDir])).toEqual({
      exitCode: 1,
      stdout: expect.stringContaining(cutOff(dataDir)),
      stderr: "",
    });
    expect(await runInProcess(["restore", backup, "--data-dir", dataDir])).toMatchObject({ exitCode: 0 });
    expect(await runInProcess(["verify", "--data-dir", dataDir])).toMatchObject({ exitCode: 0, stderr: "" });
  });
});
