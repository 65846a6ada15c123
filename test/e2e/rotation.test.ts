/** Rotation of the secrets key over restarts: read with the previous one, written again with the current one, then alone. */
import { createServer, type Server as HttpServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { newFolder, removeFolder, type Server, startRefused, startServer } from "./server.ts";

const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
const [keyA, keyB, keyC] = [keyOf(1), keyOf(2), keyOf(3)];
const credentials = { clientId: "client", clientSecret: "CANARY-client-secret" };

const servers: Server[] = [];
const closers: (() => unknown)[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill()));
  for (const close of closers.splice(0)) await close();
});

async function folderOfOwn(): Promise<string> {
  const folder = await newFolder();
  closers.push(() => removeFolder(folder));
  return folder;
}

async function start(folder: string, key: string, ...previous: string[]): Promise<Server> {
  const settings = { SERVICE_SECRETS_KEY: key, SERVICE_SECRETS_PREVIOUS_KEYS: previous.join(",") };
  const server = await startServer({ folder, settings });
  servers.push(server);
  return server;
}

async function registry(options: Parameters<typeof startDevRegistry>[0]): Promise<DevRegistry> {
  const started = await startDevRegistry(options);
  closers.push(() => started.close());
  return started;
}

async function target(): Promise<{ url: string; seen: IncomingHttpHeaders[] }> {
  const seen: IncomingHttpHeaders[] = [];
  const server: HttpServer = createServer((request, response) => {
    seen.push(request.headers);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

async function line(server: Server, event: string): Promise<Record<string, unknown>> {
  for (let look = 0; look < 400; look++) {
    const found = server.lines.find((text) => text.includes(`"event":"${event}"`));
    if (found !== undefined) return JSON.parse(found) as Record<string, unknown>;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`The server never said "${event}":\n${server.lines.join("\n")}`);
}

/** Four services with a secret, a registry with a token, one with a key, and one whose setup failed. */
async function everythingSealed(server: Server, remotes: readonly DevRegistry[], targetUrl: string): Promise<void> {
  const definition = {
    openapi: "3.0.3",
    info: { title: "t", version: "1" },
    servers: [{ url: targetUrl }],
    paths: { "/x": { get: { operationId: "x", responses: { 200: { description: "ok" } } } } },
    components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } },
    security: [{ key: [] }],
  };
  await Promise.all(
    Array.from({ length: 4 }, async (_, at) => {
      await server.post("/services", { id: `s${at}`, definition });
      await server.patch(`/services/s${at}/secrets`, { op: "add", path: "/key", value: `CANARY-${at}` });
      const enabled = await server.post(`/services/s${at}/enabled`, { enabled: true });
      expect(enabled.status, enabled.text).toBe(200);
    }),
  );
  for (const remote of remotes) {
    const added = await server.post("/registries", { baseUrl: remote.url });
    expect(added.status, added.text).toBe(201);
  }
  await server.post("/registries/oauth/auth", { type: "oauth2", ...credentials });
  await server.post("/registries/key/auth", { type: "apiKey", apiKey: "CANARY-key" });
  const failed = await server.post("/registries/failed/auth", {
    type: "oauth2",
    ...credentials,
    clientSecret: "wrong",
  });
  expect(failed.body.auth.status).toBe("error");
}

async function works(server: Server, seen: IncomingHttpHeaders[]): Promise<void> {
  for (let at = 0; at < 4; at++) {
    expect((await server.get(`/services/s${at}/secrets`)).body.present).toEqual(["/key"]);
    const called = await server.post(`/tools/s${at}/x/invoke`, { parameters: {} });
    expect([called.status, called.body.result?.status], called.text).toEqual([200, 200]);
    expect(seen.at(-1)?.["x-key"]).toBe(`CANARY-${at}`);
  }
  for (const id of ["oauth", "key"]) {
    const page = await server.get(`/registries/${id}/definitions`);
    expect(page.status, page.text).toBe(200);
  }
  expect((await server.get("/registries/failed/auth")).body).toMatchObject({ authType: "oauth2" });
}

describe("a start with a new secrets key and the old one as previous", () => {
  it("serves everything, seals it again, and lets the old key be dropped", async () => {
    const folder = await folderOfOwn();
    const { url, seen } = await target();
    const remotes = [
      await registry({ id: "oauth", auth: "oauth2", ...credentials }),
      await registry({ id: "key", auth: "apikey", apiKey: "CANARY-key" }),
      await registry({ id: "failed", auth: "oauth2", ...credentials }),
    ];
    const tokens = (): number => remotes[0]?.requests.filter(({ route }) => route === "token").length ?? 0;

    const first = await start(folder, keyA);
    await everythingSealed(first, remotes, url);
    await works(first, seen);
    const before = [(await first.get("/services/s1")).body, (await first.get("/registries/oauth")).body];
    expect(first.lines.join("\n")).not.toContain("secrets-reseal");
    await first.kill();

    const rotating = await start(folder, keyB, keyA);
    expect(await line(rotating, "secrets-resealed")).toMatchObject({ resealed: 7, unreadable: 0, failed: 0 });
    await line(rotating, "secrets-rotated");
    await works(rotating, seen);
    await rotating.kill();

    const alone = await start(folder, keyB);
    await works(alone, seen);
    expect([(await alone.get("/services/s1")).body, (await alone.get("/registries/oauth")).body]).toEqual(before);
    expect(tokens()).toBe(1);
    await alone.kill();

    for (const key of [keyA, keyC]) {
      const { code, said } = await startRefused({ folder, settings: { SERVICE_SECRETS_KEY: key } });
      expect([code, said.includes("SERVICE_SECRETS_PREVIOUS_KEYS")]).toEqual([78, true]);
    }
    const again = await start(folder, keyC, keyA, keyB);
    expect(await line(again, "secrets-resealed")).toMatchObject({ resealed: 7, unreadable: 0, failed: 0 });
    await works(again, seen);
  });

  it("killed at any moment of the pass, goes on at the next start", async () => {
    const folder = await folderOfOwn();
    const { url, seen } = await target();
    const remotes = [
      await registry({ id: "oauth", auth: "oauth2", ...credentials }),
      await registry({ id: "key", auth: "apikey", apiKey: "CANARY-key" }),
      await registry({ id: "failed", auth: "oauth2", ...credentials }),
    ];
    const first = await start(folder, keyA);
    await everythingSealed(first, remotes, url);
    await first.kill();
    for (let turn = 0; turn < 2; turn++) await (await start(folder, keyB, keyA)).kill();
    const last = await start(folder, keyB, keyA);
    expect(await line(last, "secrets-resealed")).toMatchObject({ unreadable: 0, failed: 0 });
    await line(last, "secrets-rotated");
    await last.kill("SIGTERM");
    await works(await start(folder, keyB), seen);
  });
});
