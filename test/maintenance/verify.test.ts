/** The proof: nothing on an honest store, and each kind of damage by its address. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { restore } from "../../src/maintenance/restore.ts";
import { keyIdOf } from "../../src/maintenance/sealed-values.ts";
import { verifyStore } from "../../src/maintenance/verify.ts";
import { verifyFolder } from "../../src/maintenance/verify-folder.ts";
import type { VerifyFinding, VerifyMessage } from "../../src/ports/maintenance.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { wallClock } from "../store/parts.ts";
import { bytesOf, collect, type DataFolder, filledFolder, secretsKey } from "./parts.ts";

let honest: DataFolder;
let work: string;
let file: string;
let dataDir: string;
let round = 0;

beforeAll(async () => {
  honest = await filledFolder();
  work = await mkdtemp(join(tmpdir(), "troupe-verify-"));
  file = join(work, "b.troupe");
  await writeFile(file, await bytesOf(honest.backup()));
});
afterAll(async () => {
  await honest.remove();
  await rm(work, { recursive: true, force: true });
});
beforeEach(() => {
  round += 1;
  dataDir = join(work, `data${round}`);
});

const findingsOf = (messages: readonly VerifyMessage[]): VerifyFinding[] =>
  messages.flatMap((message) => ("finding" in message ? [message.finding] : []));

const offline = async () => findingsOf(await collect(verifyFolder(dataDir)));

type Write = (level: Level<string, string>) => Promise<unknown>;

/** A restored copy, changed behind the server's back. */
async function changed(write: Write): Promise<VerifyFinding[]> {
  await restore({ file, dataDir });
  const level = new Level<string, string>(join(dataDir, "store"));
  await level.open();
  await write(level);
  await level.close();
  return offline();
}

const put =
  (key: string, value: string): Write =>
  (level) =>
    level.put(key, value);
const keyOf = async (level: Level<string, string>, prefix: string): Promise<string> => {
  const [key] = await level.keys({ gte: prefix, limit: 1 }).all();
  if (!key?.startsWith(prefix)) throw new Error(`nothing begins with ${prefix}`);
  return key;
};
const edit =
  (key: string, replace: (text: string) => string): Write =>
  async (level) =>
    level.put(key, replace((await level.get(key)) ?? ""));

const other = openVault({ key: Buffer.alloc(32, 9).toString("base64") });
const foreign = other.seal("{}", { kind: "module", id: "one", field: "secrets" });

const damages: Record<string, readonly [Write, Partial<VerifyFinding>]> = {
  "a record that is not JSON": [
    put("a/process/3", "1 {"),
    { subject: "record", address: "process/3", problem: "The stored record is not JSON" },
  ],
  "a record without a revision": [
    put("a/process/3", "{}"),
    { subject: "record", address: "process/3", problem: "It is no record: it has no revision" },
  ],
  "a record without a version": [
    put("a/process/3", '1 {"s":{}}'),
    { subject: "record", address: "process/3", problem: "The stored record has no version" },
  ],
  "a record of a newer version": [
    edit("a/process/3", (text) => text.replace('"v":1', '"v":7')),
    {
      subject: "record",
      address: "process/3",
      problem: "The stored record is of version 7, newer than this server's 1",
    },
  ],
  "a state that does not fit": [
    edit("a/process/3", (text) => text.replace('"state":"idle"', '"state":"topsecret"')),
    { subject: "record", address: "process/3", problem: "The stored state does not fit" },
  ],
  "a record of no kind": [put("a/robot/1", "1 {}"), { subject: "entry", address: "a/robot/1" }],
  "a missing index entry": [
    async (level) => level.del(await keyOf(level, "x/process/all/")),
    {
      subject: "record",
      address: "process/10",
      problem: expect.stringMatching(/^Its entry "x\/process\/all\/.*" is missing$/),
    },
  ],
  "an index entry that names another": [
    async (level) => level.put(await keyOf(level, "x/process/all/"), "3"),
    { subject: "record", address: "process/10", problem: expect.stringMatching(/names another$/) },
  ],
  "an index entry that names nobody": [
    put("x/process/all/zzz", "77"),
    { subject: "index", address: "x/process/all/zzz", problem: 'There is no record "process/77" that it names' },
  ],
  "an index entry that its record does not ask for": [
    put("x/process/ref%2Fnew/zzz", "3"),
    { subject: "index", address: "x/process/ref%2Fnew/zzz", problem: 'The record "process/3" does not ask for it' },
  ],
  "work that nobody owes": [put("x/process/owed/3", "3"), { subject: "index", address: "x/process/owed/3" }],
  "an index of no kind": [put("x/robot/all/1", "1"), { subject: "entry", address: "x/robot/all/1" }],
  "a wake of a record that does not ask for it": [
    put("w/000001700000000/process/3/late", "3"),
    { subject: "wake", address: "w/000001700000000/process/3/late" },
  ],
  "a wake of nobody": [
    put("w/000001700000000/process/77/late", "77"),
    { subject: "wake", problem: 'There is no record "process/77" that it names' },
  ],
  "a blob of nobody": [
    put("b/process/77/code", "return 1"),
    { subject: "blob", address: "b/process/77/code", problem: 'There is no record "process/77" that it belongs to' },
  ],
  "a record that is gone": [
    (level) => level.del("a/process/3"),
    { subject: "blob", problem: 'There is no record "process/3" that it belongs to' },
  ],
  "a secret sealed with a key nobody has": [
    edit("a/module/one", (text) => text.replace(/t1\.[^"]+/, foreign)),
    {
      subject: "secret",
      address: "module/one",
      problem: `Its field "secrets" is sealed with the key "${keyIdOf(foreign)}", unknown to the store`,
    },
  ],
  "a secret that is not sealed": [
    edit("a/module/one", (text) => text.replace(/t1\.[^"]+/, "hush")),
    { subject: "secret", address: "module/one", problem: 'Its field "secrets" is no sealed value' },
  ],
  "a sequence that was set back": [
    put("m/sequence/process", "4"),
    { subject: "entry", address: "m/sequence/process", problem: expect.stringContaining("does not reach 10") },
  ],
  "a sequence that is gone": [
    (level) => level.del("m/sequence/process"),
    { subject: "entry", address: "m/sequence/process" },
  ],
  "an entry of nobody": [
    put("q/stray", "x"),
    { subject: "entry", address: "q/stray", problem: "No part of the server writes it" },
  ],
  "a key with a part that is not encoded": [
    put("a/process/%zz", "1 {}"),
    { subject: "entry", address: "a/process/%zz" },
  ],
  "a store without its format mark": [(level) => level.del("m/format"), { subject: "entry", address: "m/format" }],
};

describe("the proof of an honest store", () => {
  it("finds nothing, counts everything, and leaves the store as it is", async () => {
    await restore({ file, dataDir });
    const messages = await collect(verifyFolder(dataDir));
    expect(findingsOf(messages)).toEqual([]);
    const summary = { records: 12, blobs: 20, secrets: 2, packages: 2, findings: 0 };
    expect(messages.at(-1)).toMatchObject({ summary });
    expect(await collect(verifyFolder(dataDir))).toHaveLength(1);
  });

  it("finds nothing while the store takes writes", async () => {
    const { store, packages, path, modules } = honest;
    const folders = { store: join(path, "store"), modules };
    const signal = new AbortController().signal;
    let writing = true;
    const writer = (async () => {
      for (let id = 11; writing; id += 1) await honest.createProcess(id);
    })();
    for (let proofs = 0; proofs < 5; proofs += 1) {
      const messages = await collect(verifyStore({ snapshots: store, packages, folders, clock: wallClock, signal }));
      expect(findingsOf(messages)).toEqual([]);
    }
    writing = false;
    await writer;
  });
});

describe("the proof finds", () => {
  it.each(Object.entries(damages))("%s", async (_, [write, finding]) => {
    const findings = await changed(write);
    expect(findings).toContainEqual(expect.objectContaining(finding));
    expect(JSON.stringify(findings)).not.toMatch(/topsecret|hush|return 1/);
  });

  it("a package whose file was changed, is missing, or has one too many, and one that is gone", async () => {
    const hash = async (id: string) => (await readdir(join(dataDir, "modules", id)))[0] ?? "";
    const of = async (id: string) => join(dataDir, "modules", id, await hash(id));
    const harms: Record<string, (root: string) => Promise<void>> = {
      'Its file "index.js" was changed': (root) => writeFile(join(root, "package", "index.js"), "changed"),
      'Its file "index.js" is missing': (root) => rm(join(root, "package", "index.js")),
      '"more.js" does not belong to it': (root) => writeFile(join(root, "package", "more.js"), ""),
      "It is gone, or its seal is": (root) => rm(root, { recursive: true }),
    };
    for (const [problem, harm] of Object.entries(harms)) {
      await rm(dataDir, { recursive: true, force: true });
      await restore({ file, dataDir });
      const root = await of("one");
      await harm(root);
      expect(await offline()).toEqual([
        { subject: "package", address: "module/one", problem: `Package "${root.split("/").at(-1)}": ${problem}` },
      ]);
    }
  });

  it("a table with a bit turned, whether the store can be opened with it or not", async () => {
    await restore({ file, dataDir });
    const folder = join(dataDir, "store");
    // Opening once puts what was written into a table.
    await collect(verifyFolder(dataDir));
    const table = (await readdir(folder)).find((name) => name.endsWith(".ldb")) ?? "";
    const bytes = await readFile(join(folder, table));
    bytes[200] = (bytes[200] ?? 0) ^ 1;
    await writeFile(join(folder, table), bytes);
    expect(await offline()).toEqual([
      { subject: "table", address: folder, problem: expect.stringContaining(`its file "${table}" is damaged`) },
    ]);
  });

  it("damage to the tables of a store that is in use", async () => {
    const { store, packages, path, modules } = honest;
    const folders = { store: join(path, "store"), modules };
    await writeFile(join(folders.store, "999999.ldb"), Buffer.alloc(5_000, 1));
    const signal = new AbortController().signal;
    const messages = await collect(verifyStore({ snapshots: store, packages, folders, clock: wallClock, signal }));
    expect(findingsOf(messages)).toEqual([
      { subject: "table", address: "999999.ldb", problem: "It differs from its checksums: restore a backup" },
    ]);
    await rm(join(folders.store, "999999.ldb"));
  });

  it("too much to tell, tells a thousand and counts the rest", async () => {
    await restore({ file, dataDir });
    const level = new Level<string, string>(join(dataDir, "store"));
    await level.open();
    await level.batch(Array.from({ length: 1_500 }, (_, at) => ({ type: "put" as const, key: `q/${at}`, value: "" })));
    await level.close();
    const messages = await collect(verifyFolder(dataDir));
    expect(findingsOf(messages)).toHaveLength(1_000);
    expect(messages.at(-1)).toMatchObject({ summary: { findings: 1_500 } });
  });
});

describe("a data folder is not proved", () => {
  it("when there is none, and none is made", async () => {
    await expect(offline()).rejects.toMatchObject({
      exitCode: 65,
      message: `There is no store in "${join(dataDir, "store")}"`,
    });
    await expect(readdir(dataDir)).rejects.toThrow("ENOENT");
  });

  it("while a server has it open", async () => {
    await expect(collect(verifyFolder(honest.path))).rejects.toMatchObject({ exitCode: 75 });
  });
});

describe("the key id of a sealed value", () => {
  it("is that of the vault's envelopes, and only of those", () => {
    const vault = openVault({ key: secretsKey });
    const context = { kind: "module", id: "one", field: "secrets" };
    const ids = ["", "x", "a longer secret"].map((text) => keyIdOf(vault.seal(text, context)));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^[0-9a-f]{16}$/);
    for (const none of ["", "t1", "t1.x.y.z", "t2.0123456789abcdef.a.b.c"]) expect(keyIdOf(none)).toBeUndefined();
  });
});
