/**
 * Modules over real sockets: installed from a registry, a file or a URL, put in service, called from programs, updated, gone back from,
 * broken in every way a package can be, and deleted. The registry is the development fixture, the modules are whole ones.
 */
import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { brokenModuleSources, sampleModuleSource } from "../../src/dev-registry/offers/sample-modules.ts";
import { openMcpServer, type TestMcpServer } from "../adapters/mcp-server.ts";
import { canary, search } from "./canary-search.ts";
import { openForeignClient } from "./foreign-client.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let registry: DevRegistry;
let count = 0;

beforeAll(async () => {
  server = await startServer();
  registry = await startDevRegistry();
  expect((await server.post("/registries", { baseUrl: registry.url })).status).toBe(201);
});

afterAll(async () => {
  await registry.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const sha256 = (content: Buffer | string): string => createHash("sha256").update(content).digest("hex");
const newId = (): string => `toy${++count}`;

function pack(id: string, version: string, source = sampleModuleSource("adapter", version), type = "adapter"): Buffer {
  return moduleArchive({
    id,
    name: id,
    type: type as "adapter" | "environment",
    description: `The module ${id}`,
    version,
    source,
  });
}

function publish(id: string, version: string, content = pack(id, version), more = {}): void {
  registry.publish("modules", { id, version, content, ...more });
}

const install = (moduleId: string, more = {}) =>
  server.post("/modules", { registryId: "dev-registry", moduleId, ...more });
const enable = (id: string, enabled = true) => server.post(`/modules/${id}/enabled`, { enabled });
const read = async (id: string) => (await server.get(`/modules/${id}`)).body;

/** An enabled adapter with one enabled service of two tools. */
async function inService(version = "1.0.0", more = {}): Promise<{ id: string; service: string }> {
  const id = newId();
  publish(id, version);
  expect((await install(id, more)).status).toBe(201);
  expect((await enable(id)).body).toEqual({ id, enabled: true });
  const service = `s_${id}`;
  const created = await server.post("/services", { id: service, adapter: id, definition: "ping\npong" });
  expect(created.text).toBe(JSON.stringify({ id: service }));
  expect((await server.post(`/services/${service}/enabled`, { enabled: true })).status).toBe(200);
  return { id, service };
}

const versionServing = async (service: string): Promise<unknown> =>
  (await server.post(`/tools/${service}/ping/invoke`, {})).body.result?.version;

describe("a fresh server", () => {
  it("lists what is built in, with every field", async () => {
    const { body } = await server.get("/modules?isBuiltin=true&limit=100");
    expect(body).toMatchObject({ nextCursor: null, hasMore: false });
    expect(body.items.map(({ id, type }: { id: string; type: string }) => `${type} ${id}`).sort()).toEqual([
      "adapter graphql",
      "adapter grpc",
      "adapter mcp",
      "adapter openapi",
      "environment javascript",
      "environment python",
    ]);
    for (const item of body.items) {
      expect(item).toEqual({
        id: expect.any(String),
        name: expect.any(String),
        type: expect.stringMatching(/^(adapter|environment)$/),
        description: expect.stringMatching(/./),
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        isBuiltin: true,
        enabled: item.id !== "python",
        missing: false,
        hasIcon: false,
        createdAt: expect.stringMatching(/^\d{4}-/),
        autoUpdate: false,
        autoUpdateConstraint: null,
        reason: null,
        updatedAt: expect.stringMatching(/^\d{4}-/),
      });
    }
  });
});

describe("a service whose MCP server wants credentials before it says anything", () => {
  const token = "CANARY-of-the-calculator";
  let mcp: TestMcpServer;
  beforeAll(async () => {
    mcp = await openMcpServer({ sessions: true, json: false, bearerToken: token });
  });
  afterAll(() => mcp.close());

  const state = async (id: string) => {
    const { enabled, effectivelyEnabled, stale } = (await server.get(`/services/${id}`)).body;
    return { enabled, effectivelyEnabled, stale };
  };
  const refusedFor = (status: number, code: string, error: string) => ({
    status,
    body: { code, error: expect.stringContaining(error) },
  });
  const setToken = (id: string) =>
    server.patch(`/services/${id}/secrets`, { op: "add", path: "/bearerToken", value: token });
  const add = (id: string) => server.post(`/tools/${id}/add/invoke`, { parameters: { a: 2, b: 3 } });

  it("is not installed by URL, and the answer says which way it is", async () => {
    const { status, body } = await server.post("/services", { id: "calculator", adapter: "mcp", url: mcp.url });
    expect({ status, body }).toEqual(
      refusedFor(502, "upstream_failed", "install the service with the inline definition"),
    );
    expect(body.error).toContain(`{"url": "${mcp.url}"}`);
    expect((await server.get("/services/calculator")).status).toBe(404);
  });

  it("is installed inline, says why it is not ready, and works once it has its secret and was synced", async () => {
    const id = "calculator";
    const made = await server.post("/services", { id, adapter: "mcp", definition: { url: mcp.url } });
    expect([made.status, made.body]).toEqual([201, { id }]);
    expect(mcp.requests.filter(({ message }) => message === "tools/list")).toEqual([]);
    const waiting = { enabled: false, effectivelyEnabled: false, stale: false };
    expect(await state(id)).toEqual(waiting);

    const tooSoon = [
      await server.post(`/services/${id}/enabled`, { enabled: true }),
      await server.post(`/services/${id}/sync`),
    ];
    for (const { status, body } of tooSoon)
      expect({ status, body }).toEqual(refusedFor(502, "upstream_failed", "it wants credentials"));
    expect(await state(id)).toEqual(waiting);
    expect((await server.get(`/tools?serviceId=${id}`)).body.items).toEqual([]);

    expect((await setToken(id)).body).toEqual({ present: ["/bearerToken"], outdated: [] });
    const synced = await server.post(`/services/${id}/sync`);
    expect([synced.status, synced.body]).toEqual([200, { id, updated: true, version: "2.1.0" }]);
    const enabled = await server.post(`/services/${id}/enabled`, { enabled: true });
    expect([enabled.status, enabled.body]).toEqual([200, { id, enabled: true }]);
    expect(await state(id)).toEqual({ enabled: true, effectivelyEnabled: true, stale: false });
    expect((await add(id)).body.result).toMatchObject({ structuredContent: { sum: 5 } });
    const program = await server.run("return (await services.calculator.add({ a: 20, b: 22 })).structuredContent");
    expect(await server.output(program.id)).toEqual({ sum: 42 });
  });

  it("is installed with a list of its tools, and needs no sync then", async () => {
    const id = "calculator2";
    const tools = [{ name: "add", inputSchema: { type: "object", properties: { a: {}, b: {} } } }];
    const made = await server.post("/services", { id, adapter: "mcp", definition: { url: mcp.url, tools } });
    expect([made.status, made.body]).toEqual([201, { id }]);
    const tooSoon = await server.post(`/services/${id}/enabled`, { enabled: true });
    expect(tooSoon).toMatchObject(refusedFor(502, "upstream_failed", "it wants credentials"));
    expect(await add(id)).toMatchObject(refusedFor(409, "conflict", "the service is disabled"));
    expect((await setToken(id)).status).toBe(200);
    expect((await server.post(`/services/${id}/enabled`, { enabled: true })).status).toBe(200);
    expect((await add(id)).body.result).toMatchObject({ structuredContent: { sum: 5 } });
  });

  it("never has its token in the log", () => {
    expect(server.lines.filter((line) => line.includes(token))).toEqual([]);
  });
});

describe("a module of a registry", () => {
  it("is installed disabled, configured, enabled, called from a program, and deleted", async () => {
    const installed = await install("csv-table", { version: "1.0.0", constraint: "^1.0.0", autoUpdate: true });
    expect(installed.status, installed.text).toBe(201);
    expect(installed.body).toMatchObject({
      id: "csv-table",
      type: "adapter",
      version: "1.0.0",
      isBuiltin: false,
      enabled: false,
      missing: false,
      hasIcon: true,
      autoUpdate: true,
      autoUpdateConstraint: "^1.0.0",
      source: expect.stringContaining(registry.origin),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      previousVersion: null,
    });
    expect((await server.get("/modules?isBuiltin=false&query=CSV")).body.items).toHaveLength(1);
    const icon = await server.call("GET", "/modules/csv-table/icon");
    expect([icon.status, icon.headers.get("content-type")]).toEqual([200, "image/png"]);

    const table = { id: "people", adapter: "csv-table", definition: "name,age\nAda,36\nAlan,41" };
    expect((await server.post("/services", table)).body.code).toBe("unavailable");
    expect((await enable("csv-table")).body).toEqual({ id: "csv-table", enabled: true });
    expect((await server.post("/services", table)).status).toBe(201);
    expect((await server.post("/services/people/enabled", { enabled: true })).status).toBe(200);
    const { id, exitState } = await server.run('return services.people.findRows({ where: { name: "Ada" } })');
    expect(exitState).toBe("success");
    expect(await server.output(id)).toEqual({ result: [{ name: "Ada", age: "36" }] });
    const docs = await server.get("/tools/people/findRows/docs");
    expect(docs.text).toContain("services.people.findRows");

    expect((await server.post("/modules/csv-table/update")).body).toEqual({
      id: "csv-table",
      updated: true,
      version: "1.1.0",
    });
    expect(
      (await server.get("/tools?serviceId=people")).body.items.map((tool: { id: string; enabled: boolean }) => [
        tool.id,
        tool.enabled,
      ]),
    ).toEqual([
      ["countRows", false],
      ["findRows", true],
    ]);
    expect((await server.post("/modules/csv-table/update")).body).toEqual({
      id: "csv-table",
      updated: false,
      version: "1.1.0",
    });
    expect(await read("csv-table")).toMatchObject({ version: "1.1.0", previousVersion: "1.0.0", enabled: true });
    expect((await server.post("/modules/csv-table/rollback")).body).toEqual({ id: "csv-table", version: "1.0.0" });
    expect((await server.post("/modules/csv-table/rollback")).status).toBe(409);

    expect((await server.call("DELETE", "/modules/csv-table")).status).toBe(204);
    expect((await server.get("/modules/csv-table")).status).toBe(404);
    expect((await server.post("/tools/people/findRows/invoke", {})).body.code).toBe("unavailable");
    expect((await server.get("/services/people")).body).toMatchObject({ enabled: true, effectivelyEnabled: false });
    expect((await install("csv-table")).status).toBe(201);
    await enable("csv-table");
    expect((await server.get("/services/people")).body).toMatchObject({ effectivelyEnabled: true });
  });

  it("is taken in the version asked for, or the newest within the constraint, never a pre-release by accident", async () => {
    const id = newId();
    for (const version of ["1.0.0", "1.2.0", "2.0.0", "3.0.0-rc.1"]) publish(id, version);
    for (const [more, version] of [
      [{}, "2.0.0"],
      [{ constraint: "^1.0.0" }, "1.2.0"],
      [{ version: "1.0.0" }, "1.0.0"],
      [{ version: "3.0.0-rc.1" }, "3.0.0-rc.1"],
    ] as const) {
      const answer = await install(id, more);
      expect([answer.status, answer.body.version]).toEqual([201, version]);
      await server.call("DELETE", `/modules/${id}`);
    }
    const none = await install(id, { constraint: "^9.0.0" });
    expect([none.status, none.body.code]).toEqual([404, "not_found"]);
  });
});

describe("a module of a file or a URL", () => {
  it("is installed with its hash, given beside the source or as its fragment", async () => {
    const [first, second] = [newId(), newId()];
    const file = join(server.folder, "module.tgz");
    const archive = pack(first, "1.0.0");
    await writeFile(file, archive);
    const fromFile = await server.post("/modules", { source: `file://${file}#sha256=${sha256(archive)}` });
    expect([fromFile.status, fromFile.body.id, fromFile.body.source]).toEqual([201, first, `file://${file}`]);

    const other = pack(second, "1.0.0");
    const web = createServer((_, response) => response.end(other)).listen(0, "127.0.0.1");
    await new Promise((resolve) => web.once("listening", resolve));
    const source = `http://127.0.0.1:${(web.address() as AddressInfo).port}/module.tgz`;
    const fromUrl = await server.post("/modules", { source, hash: sha256(other).toUpperCase() });
    web.close();
    expect([fromUrl.status, fromUrl.body.id]).toEqual([201, second]);
    for (const path of ["update", "auto-update"]) {
      const answer = await server.post(`/modules/${second}/${path}`, { autoUpdate: true });
      expect([answer.status, answer.body.code]).toEqual([409, "conflict"]);
    }
  });

  it("is refused when the file is larger than 10 MiB, before it is read", async () => {
    const file = join(server.folder, "large.tgz");
    await writeFile(file, Buffer.alloc(10 * 1024 * 1024 + 1));
    const answer = await server.post("/modules", { source: `file://${file}`, hash: sha256("x") });
    expect([answer.status, answer.body.code]).toEqual([413, "too_large"]);
  });

  it.each([
    ["a relative path", { source: "module.tgz", hash: sha256("x") }, "invalid_request"],
    ["another protocol", { source: "ftp://127.0.0.1/module.tgz", hash: sha256("x") }, "invalid_request"],
    ["no hash", { source: "http://127.0.0.1:9/module.tgz" }, "invalid_request"],
    ["a hash that is none", { source: "http://127.0.0.1:9/module.tgz", hash: "abc" }, "invalid_request"],
    ["a file that is not there", { source: "file:///nowhere/module.tgz", hash: sha256("x") }, "invalid_request"],
    ["a folder", { source: "file:///tmp", hash: sha256("x") }, "invalid_request"],
    ["a private address", { source: "http://10.0.0.1/module.tgz", hash: sha256("x") }, "upstream_failed"],
    ["nobody there", { source: "http://127.0.0.1:9/module.tgz", hash: sha256("x") }, "upstream_failed"],
    ["both kinds of source", { source: "http://127.0.0.1:9/m", registryId: "r", moduleId: "m" }, "invalid_request"],
    ["half a registry entry", { registryId: "dev-registry" }, "invalid_request"],
    [
      "an automatic update without a registry",
      { source: "http://127.0.0.1:9/m", hash: sha256("x"), autoUpdate: true },
      "invalid_request",
    ],
  ])("is refused from %s", async (_, body, code) => {
    expect((await server.post("/modules", body)).body.code).toBe(code);
  });
});

describe("a package that is not what it should be", () => {
  it.each<[string, (id: string) => void, number, RegExp]>([
    ["has another hash", (id) => publish(id, "1.0.0", undefined, { hash: sha256("other") }), 502, /hash|SHA-256/],
    ["has no hash", (id) => publish(id, "1.0.0", undefined, { hash: null }), 400, /no hash/],
    ["has another id", (id) => publish(id, "1.0.0", pack("other", "1.0.0")), 400, /id/],
    ["has another version", (id) => publish(id, "1.0.0", pack(id, "1.0.1")), 400, /version/],
    ["is no archive", (id) => publish(id, "1.0.0", Buffer.from("not a tgz")), 400, /gzip/i],
    ["needs another server", (id) => publish(id, "1.0.0", undefined, { engines: ">=99.0.0" }), 400, />=99\.0\.0/],
    ["is larger than 10 MiB", (id) => publish(id, "1.0.0", Buffer.alloc(10 * 1024 * 1024 + 1)), 502, /10485760/],
  ])("%s is refused, and nothing is installed", async (_, put, status, says) => {
    const id = newId();
    put(id);
    const answer = await install(id);
    expect([answer.status, answer.body.error]).toEqual([status, expect.stringMatching(says)]);
    expect((await server.get(`/modules/${id}`)).status).toBe(404);
  });

  const atLoad = [
    "syntax-error",
    "throws-at-load",
    "exits-at-load",
    "no-default-export",
    "other-type",
    "no-setup",
    "schema-is-none",
  ] as const;
  it.each(atLoad)("%s is refused when it is loaded", async (fault) => {
    const id = newId();
    publish(id, "1.0.0", pack(id, "1.0.0", brokenModuleSources[fault]));
    const answer = await install(id);
    expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid_request"]);
    expect(answer.body.error).toContain(id);
    expect((await server.get(`/modules/${id}`)).status).toBe(404);
  });

  it.each(["setup-throws", "no-hydrate"] as const)("%s is installed, and not enabled", async (fault) => {
    const id = newId();
    publish(id, "1.0.0", pack(id, "1.0.0", brokenModuleSources[fault]));
    expect((await install(id)).status).toBe(201);
    const answer = await enable(id);
    expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
    expect(answer.status).not.toBe(500);
    expect(await read(id)).toMatchObject({ enabled: false });
  });

  it("is installed once: again is refused before it is downloaded", async () => {
    const id = newId();
    publish(id, "1.0.0");
    expect((await install(id)).status).toBe(201);
    registry.clearRequests();
    expect((await install(id)).body.code).toBe("already_exists");
    expect(registry.requests).toEqual([]);
    expect((await read(id)).version).toBe("1.0.0");
  });
});

describe("another version", () => {
  it("that does not load is not taken over, and the former goes on", async () => {
    const { id, service } = await inService();
    publish(id, "1.1.0", pack(id, "1.1.0", brokenModuleSources["throws-at-load"]));
    const answer = await server.post(`/modules/${id}/update`);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect(await read(id)).toMatchObject({ version: "1.0.0", enabled: true });
    expect(await versionServing(service)).toBe("1.0.0");
  });

  it("that cannot serve a service that worked is gone back from at once", async () => {
    const { id, service } = await inService();
    const refuses = sampleModuleSource("adapter", "1.1.0").replace(
      "generateDefinition: ({ document }) => ({",
      'generateDefinition: ({ document }) => { throw Object.assign(new Error("Not this one"), { code: "invalid_request" }); return ({',
    );
    publish(id, "1.1.0", pack(id, "1.1.0", refuses.replace("}),\n    hydrate", "}); },\n    hydrate")));
    const answer = await server.post(`/modules/${id}/update`);
    expect([answer.status, answer.body.error]).toEqual([
      502,
      expect.stringMatching(new RegExp(`${service}.*Not this one`)),
    ]);
    expect(await read(id)).toMatchObject({ version: "1.0.0", enabled: true, previousVersion: null });
    expect(await versionServing(service)).toBe("1.0.0");
    expect((await server.get(`/services/${service}`)).body).toMatchObject({ stale: false, enabled: true });
  });

  it("that keeps crashing is gone back from by itself", async () => {
    const { id, service } = await inService();
    const source = sampleModuleSource("adapter", "1.1.0").replace(
      "invoke: ({ version }, { toolId, parameters }) => ({ version, toolId, parameters })",
      "invoke: () => process.exit(9)",
    );
    expect(source).toContain("process.exit");
    publish(id, "1.1.0", pack(id, "1.1.0", source));
    expect((await server.post(`/modules/${id}/update`)).body).toMatchObject({ updated: true, version: "1.1.0" });
    const answer = await server.post(`/tools/${service}/ping/invoke`, {});
    expect(answer.status).toBeGreaterThanOrEqual(502);
    const crash = async (): Promise<unknown> => {
      await server.post(`/tools/${service}/ping/invoke`, {});
      return (await read(id)).version;
    };
    await expect.poll(crash, { timeout: 40_000, interval: 100 }).toBe("1.0.0");
    await expect.poll(() => versionServing(service), { timeout: 10_000 }).toBe("1.0.0");
    expect(await read(id)).toMatchObject({ enabled: true, reason: null });
    expect(server.lines.some((line) => line.includes('"module-rolled-back"') && line.includes(id))).toBe(true);
  });
});

describe("a module whose folder is gone", () => {
  it("is missing with its reason, keeps its flag, and is used again when it is back", async () => {
    const { id, service } = await inService();
    const { hash } = await read(id);
    await rm(join(server.folder, "modules", id, hash), { recursive: true });
    expect((await server.post("/modules/reload")).body.faulty).toBeGreaterThan(0);
    expect(await read(id)).toMatchObject({ missing: true, enabled: true, reason: expect.stringMatching(/./) });
    expect((await enable(id)).status).toBe(409);
    expect((await server.post(`/tools/${service}/ping/invoke`, {})).body.code).toBe("unavailable");
    expect((await server.get(`/modules?missing=true`)).body.items.map((item: { id: string }) => item.id)).toContain(id);
    publish(id, "1.0.1");
    expect((await server.post(`/modules/${id}/update`)).body).toMatchObject({ updated: true });
    expect(await versionServing(service)).toBe("1.0.1");
    expect(await read(id)).toMatchObject({ missing: false, enabled: true, reason: null });
  });
});

describe("an environment", () => {
  it("of a package takes over from the active one, and gives it back", async () => {
    const id = newId();
    publish(id, "1.0.0", pack(id, "1.0.0", sampleModuleSource("environment", "1.0.0"), "environment"), {
      type: "environment",
    });
    expect((await install(id)).status).toBe(201);
    const running = await server.post("/processes", {
      code: "await new Promise((end) => setTimeout(end, 3_000)); return 1",
    });
    await expect.poll(async () => (await server.get(`/processes/${running.body.id}`)).body.state).toBe("running");
    expect((await enable(id)).status).toBe(200);
    expect(await read("javascript")).toMatchObject({ enabled: false });
    const echoed = await server.run("whatever");
    expect(echoed.exitState).toBe("success");
    expect(await server.output(echoed.id)).toEqual({ version: "1.0.0" });
    expect((await server.get(`/processes/${echoed.id}/stdout`)).text).toBe("whatever");
    expect((await server.get("/environment/docs")).text).toBe("Whatever is sent is printed");
    const former = await server.get(`/processes/${running.body.id}?wait=30`);
    expect(former.body).toMatchObject({ exitState: "success" });

    expect((await enable("javascript")).status).toBe(200);
    expect(await read(id)).toMatchObject({ enabled: false });
    expect((await server.run("return 1")).exitState).toBe("success");
  });

  it("disabled, leaves none: new programs end failed and say why, docs are unavailable", async () => {
    expect((await enable("javascript", false)).status).toBe(200);
    const process = await server.run("return 1");
    expect(process).toMatchObject({ exitState: "failed", error: expect.stringContaining("no active environment") });
    expect((await server.get("/environment/docs")).status).toBe(503);
    expect((await enable("javascript")).status).toBe(200);
    expect((await server.run("return 1")).exitState).toBe("success");
  });
});

const withSecrets = `export default {
  type: "adapter",
  secretsSchema: { type: "object", properties: { licence: { type: "string" } }, required: ["licence"] },
  setup: ({ secrets: own, log }) => ({
    generateDefinition: () => ({
      name: "Talkative",
      secretsSchema: { type: "object", properties: { token: { type: "string" } }, required: ["token"] },
      tools: ["count", "tell", "spill"].map((id) => ({ id, name: id })),
    }),
    hydrate: ({ secrets }) => ({ both: [own.licence, secrets.token] }),
    invoke: ({ both }, { toolId }) => {
      log.info("Holding " + both.join(" and "));
      if (toolId === "spill") throw new Error("Refused with " + both.join(" and "));
      return both.map((secret) => secret.length);
    },
  }),
};
`;

describe("a module that is given secrets, and talks of them", () => {
  it("works with them, and they are in no answer, no diagnosis and no log line", async () => {
    const id = newId();
    const service = `s_${id}`;
    const secrets = [canary("licence"), canary("token", '/"')];
    publish(id, "1.0.0", pack(id, "1.0.0", withSecrets));
    expect((await install(id)).status).toBe(201);
    const [licence, token] = secrets.map(({ text }) => text);
    expect((await server.patch(`/modules/${id}/secrets`, { op: "add", path: "/licence", value: licence })).status).toBe(
      200,
    );
    expect((await enable(id)).status).toBe(200);
    expect((await server.post("/services", { id: service, adapter: id, definition: "any" })).status).toBe(201);
    await server.patch(`/services/${service}/secrets`, { op: "add", path: "/token", value: token });
    expect((await server.post(`/services/${service}/enabled`, { enabled: true })).status).toBe(200);

    const invoke = (tool: string) => server.post(`/tools/${service}/${tool}/invoke`, {});
    expect((await invoke("count")).body.result).toEqual([licence?.length, token?.length]);
    const spilled = await invoke("spill");
    expect(spilled.status).toBe(502);

    const client = await openForeignClient(server.grpc);
    const diagnose = (method: string, request = {}) => client.call("DiagnosticsService", method, request);
    const said = [
      spilled.text,
      (await server.get(`/modules/${id}`)).text,
      (await server.get(`/services/${service}`)).text,
      (await server.get("/logs?limit=100")).text,
      ...(await Promise.all([
        diagnose("GetActor", { kind: "module", id }),
        diagnose("GetActor", { kind: "service", id: service }),
        diagnose("ListActors", { limit: 100 }),
        diagnose("ListExecutors"),
      ])),
    ];
    client.close();
    expect(said[4]).toMatchObject({ actor: { state: { secrets: "[masked]" } } });
    const places = { answers: JSON.stringify(said), output: server.lines.join("\n") };
    for (const text of Object.values(places)) expect(text).toContain("Holding *** and ***");
    const searched = Object.entries(places).map(([name, text]) => ({ name, bytes: Buffer.from(text) }));
    expect(search(searched, secrets)).toEqual([]);
  });
});

describe("a restart", () => {
  it("finds every module as it was, and lets no broken one keep the server from starting", async () => {
    const first = await startServer();
    try {
      await first.post("/registries", { baseUrl: registry.url });
      const [good, broken] = [newId(), newId()];
      for (const id of [good, broken]) {
        publish(id, "1.0.0");
        expect((await first.post("/modules", { registryId: "dev-registry", moduleId: id })).status).toBe(201);
        expect((await first.post(`/modules/${id}/enabled`, { enabled: true })).status).toBe(200);
        await first.post("/services", { id: `s_${id}`, adapter: id, definition: "ping" });
        await first.post(`/services/s_${id}/enabled`, { enabled: true });
      }
      await first.patch("/modules/javascript/config", { op: "add", path: "/memoryMb", value: 32 });
      await first.kill();
      await writeFile(join(first.folder, "modules", broken, "stray"), "");
      const { hash } = { hash: sha256(pack(broken, "1.0.0")) };
      await rm(join(first.folder, "modules", broken, hash), { recursive: true });
      const second = await startServer({ folder: first.folder });
      try {
        await expect
          .poll(async () => (await second.post(`/tools/s_${good}/ping/invoke`, {})).body.result, { timeout: 20_000 })
          .toMatchObject({ version: "1.0.0" });
        expect((await second.get(`/modules/${broken}`)).body).toMatchObject({ missing: true, enabled: true });
        expect((await second.get("/modules/javascript/config")).body.config).toEqual({ memoryMb: 32 });
      } finally {
        await second.kill("SIGTERM");
      }
    } finally {
      await first.kill();
      await removeFolder(first.folder);
    }
  });
});
