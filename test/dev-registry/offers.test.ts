/** What the registry ships is real: definitions the openapi adapter can use, packages that unpack and run, icons that decode. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { crc32, gunzipSync, inflateSync } from "node:zlib";
import { satisfies } from "semver";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { definitionOffers } from "../../src/dev-registry/offers/definitions.ts";
import { moduleOffers } from "../../src/dev-registry/offers/modules.ts";
import { pngIcon } from "../../src/dev-registry/offers/png-icon.ts";
import { packTgz } from "../../src/dev-registry/offers/tar-writer.ts";
import type { AdapterModule, ModuleAdapter, ToolInvocation } from "../../src/sdk/sdk.ts";
import { openTestAdapter } from "../adapters/adapter-bench.ts";

const run = promisify(execFile);
const hasTar = spawnSync("tar", ["--version"]).status === 0;

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "dev-registry-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe("definitions", () => {
  const releases = definitionOffers.flatMap((offer) => offer.releases.map((release) => ({ offer, release })));

  test("are in both dialects of OpenAPI 3 and both syntaxes", () => {
    expect(new Set(definitionOffers.map(({ kind }) => kind))).toEqual(new Set(["openapi@3.1.0", "openapi@3.0.3"]));
    expect(new Set(releases.map(({ release }) => release.fileName))).toEqual(new Set(["openapi.json", "openapi.yaml"]));
  });

  test.each(releases)("$offer.id $release.version is what its entry says", ({ offer, release }) => {
    const document = parse(release.bytes.toString()) as { openapi: string; info: { version: string } };
    expect(`openapi@${document.openapi}`).toBe(offer.kind);
    expect(document.info.version).toBe(release.version);
    expect(release.bytes.length).toBeLessThan(30_000);
  });

  test("give the openapi adapter all their operations as tools, with schemas", async () => {
    const adapter = await openTestAdapter();
    onTestFinished(() => adapter.close());
    const toolsOf: Record<string, readonly string[]> = {};
    for (const { offer, release } of releases) {
      const text = release.bytes.toString();
      const { tools, plan } = await adapter.define({ text });
      const operationIds = [...text.matchAll(/operationId"?: "?(\w+)/g)].map((match) => match[1] ?? "");
      expect(tools.map(({ id }) => id).sort()).toEqual(operationIds.sort());
      for (const { id } of tools) {
        const { inputSchema } = await adapter.describe({ hash: String(release.hash), load: async () => plan }, id);
        expect(inputSchema).toMatchObject({ type: "object" });
      }
      toolsOf[`${offer.id} ${release.version}`] = tools.map(({ id }) => id).sort();
    }
    const [old, latest] = [toolsOf["petstore 1.0.0"] ?? [], toolsOf["petstore 1.1.0"] ?? []];
    expect(old.length).toBeGreaterThan(7);
    expect(latest).toEqual([...old, "getStats"].sort());
  });
});

describe("the module", () => {
  const releases = moduleOffers.flatMap((offer) => offer.releases.map((release) => ({ offer, release })));

  async function unpacked(archive: Buffer): Promise<string> {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "module.tgz"), archive);
    await run("tar", ["-xzf", "module.tgz"], { cwd: folder });
    return join(folder, "package");
  }

  test.runIf(hasTar).each(releases)(
    "$offer.id $release.version unpacks with tar to a module of Troupe",
    async (row) => {
      const { offer, release } = row;
      const folder = await unpacked(release.bytes);
      const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
      expect(manifest).toMatchObject({ name: "troupe-module-csv-table", version: release.version, type: "module" });
      expect(manifest.troupe).toEqual({
        id: offer.id,
        name: offer.name,
        type: offer.type,
        description: offer.description,
        engines: release.engines,
        main: "index.js",
        icon: "icon.png",
      });
      expect(satisfies("0.1.0", String(release.engines))).toBe(true);
      expect(await readFile(join(folder, "icon.png"))).toEqual(offer.icon.bytes);
    },
  );

  /** As the contract of modules says: what the default export's `setup` gives. */
  async function loaded(version: string): Promise<ModuleAdapter> {
    const release = releases.find(({ release }) => release.version === version)?.release;
    const folder = await unpacked(release?.bytes ?? Buffer.alloc(0));
    const { default: module } = (await import(pathToFileURL(join(folder, "index.js")).href)) as {
      default: AdapterModule;
    };
    expect(module.type).toBe("adapter");
    const unused = () => expect.unreachable("It needs no network");
    const log = { debug: unused, info: unused, warn: unused, error: unused };
    return module.setup({ config: {}, secrets: {}, log, fetch: unused });
  }

  function call(toolId: string, parameters: Readonly<Record<string, unknown>> = {}): ToolInvocation {
    return { toolId, parameters, signal: new AbortController().signal };
  }

  const service = { serviceId: "table", config: {}, secrets: {} };

  test.runIf(hasTar)("turns a CSV table into tools that answer", async () => {
    const adapter = await loaded("1.1.0");
    const document = 'name,status,note\r\n"Tapir, Tom",available,"says ""hm"""\nCat Clara,sold,\n\n';
    const { tools, plan } = await adapter.generateDefinition({ document });
    expect(tools.map(({ id }) => id)).toEqual(["findRows", "countRows"]);
    const table = await adapter.hydrate({ ...service, plan });
    expect(adapter.invoke(table, call("findRows", { where: { status: "available" } }))).toEqual([
      { name: "Tapir, Tom", status: "available", note: 'says "hm"' },
    ]);
    expect(adapter.invoke(table, call("findRows"))).toHaveLength(2);
    expect(adapter.invoke(table, call("countRows"))).toEqual({ count: 2 });
    const refused = (message: string) => expect.objectContaining({ code: "invalid_request", message });
    expect(() => adapter.invoke(table, call("drop"))).toThrow(refused('There is no tool "drop"'));
    expect(() => adapter.generateDefinition({ document: "" })).toThrow(
      refused("The document has no line with the names of the columns"),
    );
  });

  test.runIf(hasTar)("has one tool less in its first release", async () => {
    const adapter = await loaded("1.0.0");
    const { tools, plan } = await adapter.generateDefinition({ document: "a\n1" });
    expect(tools.map(({ id }) => id)).toEqual(["findRows"]);
    const table = await adapter.hydrate({ ...service, plan });
    expect(() => adapter.invoke(table, call("countRows"))).toThrow('There is no tool "countRows"');
  });
});

describe("archives", () => {
  const files = [
    { path: "empty", content: "" },
    { path: "a/one.txt", content: "x" },
    { path: "a/block", content: Buffer.alloc(512, 1) },
    { path: "a/more", content: Buffer.alloc(513, 2) },
    { path: "ümläut.txt", content: "ä€\n" },
    { path: `${"d/".repeat(48)}long`, content: "100 bytes of path" },
  ];

  test.runIf(hasTar)("unpack to the same bytes as plain files, whatever their size", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "files.tgz"), packTgz(files));
    const { stdout, stderr } = await run("tar", ["-tzf", "files.tgz"], { cwd: folder });
    expect([stdout.trim().split("\n").length, stderr]).toEqual([files.length, ""]);
    await run("tar", ["-xzf", "files.tgz"], { cwd: folder });
    for (const { path, content } of files) {
      expect(await readFile(join(folder, path))).toEqual(Buffer.from(content));
      expect((await stat(join(folder, path))).mode & 0o777).toBe(0o644);
    }
  });

  test("of the same files are the same, and end in whole records", () => {
    expect(packTgz(files)).toEqual(packTgz(files));
    const tar = gunzipSync(packTgz(files));
    expect(tar.length % 10_240).toBe(0);
    expect(tar.subarray(-1_024).every((byte) => byte === 0)).toBe(true);
    expect(gunzipSync(packTgz([])).length).toBe(10_240);
  });

  test("refuse a path that would have to be cut", () => {
    const path = "ä".repeat(51);
    expect(() => packTgz([{ path, content: "" }])).toThrow(`Path "${path}" is too long for an archive`);
  });
});

test("an icon is a PNG whose parts have right checksums and whose pixels fill its size", () => {
  const png = pngIcon("petstore");
  expect(png.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  const chunks: Record<string, Buffer> = {};
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const named = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(named));
    chunks[named.toString("latin1", 0, 4)] = named.subarray(4);
    at += 12 + length;
  }
  expect(Object.keys(chunks)).toEqual(["IHDR", "IDAT", "IEND"]);
  const [width, height] = [chunks.IHDR?.readUInt32BE(0) ?? 0, chunks.IHDR?.readUInt32BE(4) ?? 0];
  expect(inflateSync(chunks.IDAT ?? Buffer.alloc(0)).length).toBe(height * (1 + 3 * width));
});
