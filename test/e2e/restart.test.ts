/** What a restart keeps and settles, and what a start refuses. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { interruptedError } from "../../src/actors/process.ts";
import { until } from "../until.ts";
import { newFolder, removeFolder, type Server, startRefused, startServer } from "./server.ts";

const servers: Server[] = [];
const folders: string[] = [];

async function start(folder: string, settings: Record<string, string> = {}): Promise<Server> {
  const server = await startServer({ folder, settings });
  servers.push(server);
  return server;
}

async function folderOfOwn(): Promise<string> {
  const folder = await newFolder();
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill()));
  await Promise.all(folders.splice(0).map(removeFolder));
});

async function ids(server: Server, count: number, body: Record<string, unknown>): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => server.post("/processes", body)));
  return answers.map((answer) => answer.body.id);
}

const countOf = async (server: Server, state: string): Promise<number> =>
  (await server.get(`/processes?state=${state}&limit=100`)).body.items.length;

describe("after kill -9", () => {
  it("a list goes on with the cursor from before, and what is created meanwhile is not in the way", async () => {
    const folder = await folderOfOwn();
    let server = await start(folder);
    const created = (await ids(server, 7, { code: "", autorun: false, ref: "paged" })).sort((a, b) => b - a);
    const seen: number[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { body } = await server.get(`/processes?ref=paged&limit=4${cursor === "" ? "" : `&cursor=${cursor}`}`);
      seen.push(...body.items.map(({ id }: { id: number }) => id));
      cursor = body.nextCursor;
      await server.kill();
      server = await start(folder);
      await ids(server, 1, { code: "", autorun: false, ref: "paged" });
    }
    expect(seen).toEqual(created);
  });

  it("10 running read interrupted, 10 queued run, 5 never started are as they were, and ids go on", async () => {
    const folder = await folderOfOwn();
    const first = await start(folder, { SERVICE_PROCESS_CONCURRENCY: "10" });
    const running = await ids(first, 10, { code: "await new Promise((r) => setTimeout(r, 60000))", timeoutMs: null });
    await until(async () => (await countOf(first, "running")) === 10);
    const queued = await ids(first, 10, { code: "return 'ran after the restart'" });
    const idle = await ids(first, 5, { code: "return 1", autorun: false });
    expect(await countOf(first, "queued")).toBe(10);
    await first.kill();

    const second = await start(folder, { SERVICE_PROCESS_CONCURRENCY: "10" });
    for (const id of running) {
      const { body } = await second.get(`/processes/${id}`);
      expect(body).toMatchObject({ state: "idle", exitState: "failed", error: interruptedError });
      expect(body.completedAt).not.toBeNull();
      expect((await second.get(`/processes/${id}/output`)).body).toEqual({});
    }
    for (const id of queued) {
      expect((await second.get(`/processes/${id}?wait=30`)).body.exitState).toBe("success");
      expect(await second.output(id)).toEqual({ result: "ran after the restart" });
    }
    for (const id of idle) {
      expect((await second.get(`/processes/${id}`)).body).toMatchObject({ state: "idle", exitState: null, pid: null });
      expect((await second.get(`/processes/${id}/output`)).body).toEqual({});
    }
    const [next] = await ids(second, 1, { code: "" });
    expect(next).toBe(26);
    expect((await second.post(`/processes/${running[0]}/signals/run`)).status).toBe(400);
  });

  it("finished ones keep exit state, output and what they printed, with pid null", async () => {
    const folder = await folderOfOwn();
    const first = await start(folder);
    const process = await first.run("console.log('printed'); return { kept: [1, 2] }", { ref: "kept" });
    await first.kill();
    const second = await start(folder);
    expect((await second.get(`/processes/${process.id}`)).body).toEqual({ ...process, pid: null });
    expect(await second.output(process.id)).toEqual({ kept: [1, 2] });
    expect((await second.get(`/processes/${process.id}/stdout`)).text).toBe("printed\n");
    expect((await second.get("/processes")).body.items).toEqual([{ ...process, pid: null }]);
  });

  it("services keep configuration, secrets, flags and tools, and serve again without being asked", async () => {
    const folder = await folderOfOwn();
    const first = await start(folder);
    const definition = {
      openapi: "3.0.3",
      info: { title: "self", version: "1" },
      servers: [{ url: first.http }],
      paths: { "/healthz": { get: { operationId: "health", responses: { 200: { description: "ok" } } } } },
      components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } },
    };
    await first.post("/services", { id: "self", definition });
    await first.patch("/services/self/secrets", { op: "add", path: "/key", value: "s" });
    await first.post("/services/self/enabled", { enabled: true });
    await first.kill();
    const second = await start(folder);
    await second.patch("/services/self/config", { op: "add", path: "/serverUrl", value: second.http });
    expect((await second.get("/services/self")).body).toMatchObject({ enabled: true, effectivelyEnabled: true });
    expect((await second.get("/services/self/secrets")).body).toEqual({ present: ["/key"], outdated: [] });
    const called = await second.post("/tools/self/health/invoke", { parameters: {} });
    expect([called.status, called.body.result.status]).toEqual([200, 200]);
  });
});

describe("SIGTERM", () => {
  it("lets what runs end, exits 0, and keeps what is queued", async () => {
    const folder = await folderOfOwn();
    const server = await start(folder, { SERVICE_PROCESS_CONCURRENCY: "1" });
    const [short] = await ids(server, 1, { code: "await new Promise((r) => setTimeout(r, 1500)); return 'done'" });
    await until(async () => (await countOf(server, "running")) === 1);
    const [waiting] = await ids(server, 1, { code: "return 'later'" });
    expect(await server.kill("SIGTERM")).toBe(0);
    const again = await start(folder);
    expect((await again.get(`/processes/${short}`)).body.exitState).toBe("success");
    expect((await again.get(`/processes/${waiting}?wait=30`)).body.exitState).toBe("success");
  });

  it("ends what would run for ever within the limit, as canceled, whatever callers wait for it", async () => {
    const folder = await folderOfOwn();
    const server = await start(folder, { SERVICE_SHUTDOWN_TIMEOUT_MS: "3000" });
    const [endless] = await ids(server, 1, { code: "for (;;) {}", timeoutMs: null });
    await until(async () => (await countOf(server, "running")) === 1);
    const waiting = server.get(`/processes/${endless}?wait=60`).catch(() => undefined);
    const started = Date.now();
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(Date.now() - started).toBeLessThan(8_000);
    await waiting;
    const again = await start(folder);
    expect((await again.get(`/processes/${endless}`)).body).toMatchObject({ exitState: "canceled", error: null });
  });

  it("repeated is ignored; a second SIGINT after a second ends the process at once", async () => {
    const folder = await folderOfOwn();
    const server = await start(folder, { SERVICE_SHUTDOWN_TIMEOUT_MS: "60000" });
    await ids(server, 1, { code: "for (;;) {}", timeoutMs: null });
    await until(async () => (await countOf(server, "running")) === 1);
    server.child.kill("SIGTERM");
    server.child.kill("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(server.child.exitCode).toBeNull();
    expect(await server.kill("SIGINT")).toBe(130);
  });
});

describe("a start is refused", () => {
  it("on a folder that another server has, which is not disturbed", async () => {
    const folder = await folderOfOwn();
    const first = await start(folder);
    const { code, said } = await startRefused({ folder });
    expect(code).toBe(75);
    expect(said).toMatch(/is using it/);
    expect((await first.run("return 1")).exitState).toBe("success");
    await first.kill();
    await start(folder);
  });

  it("with another secrets key than the data was written with", async () => {
    const folder = await folderOfOwn();
    const key = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
    await (await start(folder, { SERVICE_SECRETS_KEY: key(1) })).kill("SIGTERM");
    const { code, said } = await startRefused({ folder, settings: { SERVICE_SECRETS_KEY: key(2) } });
    expect(code).toBe(78);
    expect(said).toMatch(/secrets key is not the one/);
    expect(said).not.toContain(key(2));
    await start(folder, { SERVICE_SECRETS_KEY: key(2), SERVICE_SECRETS_PREVIOUS_KEYS: key(1) });
  });

  it.each([
    ["31 bytes", Buffer.alloc(31, 1).toString("base64")],
    ["no base64", "not a key at all"],
    ["zeros only", Buffer.alloc(32).toString("base64")],
  ])("with a secrets key of %s", async (_, key) => {
    const folder = await folderOfOwn();
    const { code } = await startRefused({ folder, settings: { SERVICE_SECRETS_KEY: key } });
    expect(code).toBe(78);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("with settings that do not add up, all reported together, before anything is opened", async () => {
    const folder = await folderOfOwn();
    const settings = { SERVICE_PROCESS_CONCURRENCY: "many", SERVICE_LOG_LEVEL: "loud", SERVICE_HTTP_HOST: "0.0.0.0" };
    const { code, said } = await startRefused({ folder, settings });
    expect(code).toBe(78);
    for (const name of Object.keys(settings)) expect(said).toContain(name);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("on a store whose files were damaged, and nothing is removed", async () => {
    const folder = await folderOfOwn();
    await (await start(folder)).kill();
    const store = join(folder, "store");
    writeFileSync(join(store, "CURRENT"), "MANIFEST-999999\n");
    const before = readdirSync(store).sort();
    const { code, said } = await startRefused({ folder });
    expect(code).toBe(65);
    expect(said).toContain(store);
    expect(readdirSync(store).sort()).toEqual(before);
  });

  it("on a port that is taken", async () => {
    const first = await start(await folderOfOwn());
    const { port } = new URL(first.http);
    const { code, said } = await startRefused({ folder: await folderOfOwn(), settings: { SERVICE_HTTP_PORT: port } });
    expect(code).not.toBe(0);
    expect(said).toContain("EADDRINUSE");
  });
});
