/** Every operation of a running server asked at least once with success and once without, in an order that makes that possible. */

import { type PetStore, startPetStore } from "../../../src/demo/pet-store.ts";
import { type DevRegistry, startDevRegistry } from "../../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../../src/dev-registry/offers/modules.ts";
import { sampleModuleSource } from "../../../src/dev-registry/offers/sample-modules.ts";
import type { Server } from "../server.ts";
import type { Exchange } from "./contract.ts";

export interface Told extends Exchange {
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  readonly body: any;
}

export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Told>;

/** Tells each exchange to `told`. `key` is sent unless a request brings its own Authorization. */
export function askOf(server: Server, key: string, told: (exchange: Told) => void): Ask {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(server.http + path, {
      method,
      signal: AbortSignal.timeout(60_000),
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await textOf(response);
    const isJson = text !== "" && response.headers.get("content-type")?.includes("json") === true;
    const exchange = {
      method,
      path,
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    };
    told(exchange);
    return exchange;
  };
}

/** Of a stream that does not end, what it says at first. */
const streamReadMs = 1_000;

async function textOf(response: Response): Promise<string> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response.text();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const giveUp = setTimeout(() => reader?.cancel().catch(() => {}), streamReadMs);
  let text = "";
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += part.value;
  clearTimeout(giveUp);
  return text;
}

export interface Surroundings {
  readonly store: PetStore;
  readonly registry: DevRegistry;
  readonly keyed: DevRegistry;
  close(): Promise<void>;
}

export async function openSurroundings(): Promise<Surroundings> {
  const store = await startPetStore({ port: 0, apiKey: "key" });
  const registry = await startDevRegistry({ id: "open" });
  const keyed = await startDevRegistry({ id: "keyed", auth: "apikey", apiKey: "registry-key" });
  for (const version of ["1.0.0", "1.1.0"]) {
    const about = { id: "toy", name: "Toy", type: "adapter", description: "A toy", version } as const;
    const content = moduleArchive({ ...about, source: sampleModuleSource("adapter", version) });
    registry.publish("modules", { id: "toy", version, content });
  }
  return {
    store,
    registry,
    keyed,
    close: async () => {
      await Promise.all([store.close(), registry.close(), keyed.close()]);
    },
  };
}

const add = (path: string, value: unknown): unknown[] => [{ op: "add", path, value }];

export async function walkAll(ask: Ask, surroundings: Surroundings): Promise<void> {
  await walkProcesses(ask);
  await walkRegistries(ask, surroundings);
  await walkServices(ask, surroundings);
  await walkTools(ask);
  await walkModules(ask);
  await walkMcp(ask);
  await walkLogs(ask);
  await walkDocuments(ask);
  await walkRefusals(ask);
  await walkDeletions(ask);
}

async function walkProcesses(ask: Ask): Promise<void> {
  const created = await ask("POST", "/processes", { code: "console.log(1); return { a: [1, null] }", ref: "walk" });
  const path = `/processes/${created.body.id}`;
  await ask("GET", `${path}?wait=30`);
  for (const below of ["", "/output", "/code", "/stdout", "/stderr"]) await ask("GET", path + below);
  const followed = await ask("GET", `${path}/events`);
  const last =
    followed.text
      .match(/^id: (.*)$/gm)
      ?.at(-1)
      ?.slice(4) ?? "";
  await ask("GET", `${path}/events`, undefined, { "last-event-id": last });
  await ask("GET", "/processes/999999/events");
  await ask("POST", `${path}/signals/run`, {});
  await ask("POST", `${path}/signals/run`, { force: true });
  await ask("GET", `${path}?wait=30`);
  await ask("POST", `${path}/signals/unload`);
  await ask("POST", `${path}/signals/unload`, {});
  await ask("POST", `${path}/signals/kill`);
  const failed = await ask("POST", "/processes", {
    code: "throw new Error('no')",
    timeoutMs: null,
    envConfig: { a: 1 },
  });
  await ask("GET", `/processes/${failed.body.id}?wait=30`);
  const endless = await ask("POST", "/processes", { code: "await new Promise((end) => setTimeout(end, 60_000))" });
  await ask("DELETE", `/processes/${endless.body.id}`);
  await ask("GET", `/processes/${endless.body.id}/output`);
  await ask("POST", `/processes/${endless.body.id}/signals/kill`, {});
  const waiting = await ask("POST", "/processes", { code: "", autorun: false }, { "idempotency-key": "walk" });
  await ask("POST", "/processes", { code: "", autorun: false }, { "idempotency-key": "walk" });
  await ask("POST", "/processes", { code: "1", autorun: false }, { "idempotency-key": "walk" });
  await ask("GET", `/processes/${waiting.body.id}`);
  for (const query of ["", "?limit=1", "?limit=500", "?state=idle&exitState=null", "?ref=walk"]) {
    await ask("GET", `/processes${query}`);
  }
  const first = await ask("GET", "/processes?limit=1");
  await ask("GET", `/processes?limit=1&cursor=${first.body.nextCursor}`);
}

async function walkRegistries(ask: Ask, { registry, keyed }: Surroundings): Promise<void> {
  await ask("POST", "/registries", { baseUrl: registry.url });
  await ask("POST", "/registries", { baseUrl: registry.url });
  await ask("POST", "/registries", { baseUrl: keyed.url, auth: { type: "apiKey", apiKey: "registry-key" } });
  await ask("POST", "/registries", { baseUrl: "http://127.0.0.1:9/" });
  for (const path of ["", "?limit=1", "/open", "/keyed", "/keyed/auth", "/open/auth"])
    await ask("GET", `/registries${path}`);
  await ask("POST", "/registries/open/refresh", {});
  await ask("POST", "/registries/keyed/auth", { type: "apiKey", apiKey: "registry-key" });
  await ask("POST", "/registries/open/auth", { type: "oauth2", clientId: "a", clientSecret: "b", scopes: [] });
  for (const id of ["open", "keyed"]) {
    await ask("GET", `/registries/${id}/definitions?limit=2`);
    await ask("GET", `/registries/${id}/modules?type=adapter`);
  }
  await ask("GET", "/registries/open/definitions/petstore/icon");
  const icon = await ask("GET", "/registries/open/modules/toy/icon");
  await ask("GET", "/registries/open/modules/toy/icon", undefined, { "if-none-match": icon.headers.get("etag") ?? "" });
  registry.set({ faults: { definitions: { do: "replace", mediaType: "text/html", body: "<p>" } } });
  await ask("GET", "/registries/open/definitions");
  registry.set({ faults: {} });
  await ask("DELETE", "/registries/keyed/auth");
}

async function walkServices(ask: Ask, { store }: Surroundings): Promise<void> {
  await ask("POST", "/services", { id: "pets", url: store.documentUrl });
  await ask("POST", "/services", { id: "pets", url: store.documentUrl });
  await ask("POST", "/services", { id: "nowhere", url: "http://127.0.0.1:9/" });
  await ask("POST", "/services", { registryId: "open", definitionId: "petstore", version: "1.0.0" });
  await ask("POST", "/services", { registryId: "none", definitionId: "petstore" });
  await ask("POST", "/services", { registryId: "open", definitionId: "none" });
  await ask("POST", "/services/pets/enabled", { enabled: true });
  await ask("PATCH", "/services/pets/config", add("/serverVar_port", String(store.port)));
  await ask("PATCH", "/services/pets/config", add("/timeoutMs", 5_000), { "if-match": '"old"' });
  await ask("PATCH", "/services/pets/config", add("/timeoutMs", 5_000), {
    "content-type": "application/json-patch+json",
    "if-match": "*",
  });
  await ask("PATCH", "/services/pets/config", add("/unknown", 1));
  await ask("PATCH", "/services/pets/secrets", add("/petKey", "key"));
  await ask("PATCH", "/services/pets/secrets", [{ op: "test", path: "/petKey", value: "x" }]);
  await ask("POST", "/services/pets/enabled", { enabled: true });
  for (const below of ["", "/config", "/config/schema", "/secrets", "/secrets/schema", "/icon"]) {
    await ask("GET", `/services/pets${below}`);
    await ask("GET", `/services/petstore${below}`);
  }
  const { headers } = await ask("GET", "/services/pets/config");
  await ask("GET", "/services/pets/config", undefined, { "if-none-match": headers.get("etag") ?? "" });
  for (const query of ["", "?limit=1", "?adapter=openapi&enabled=true&stale=false&query=pet"]) {
    await ask("GET", `/services${query}`);
  }
  await ask("POST", "/services/petstore/auto-update", { autoUpdate: true, constraint: "^1.0.0" });
  await ask("POST", "/services/pets/auto-update", { autoUpdate: true });
  await ask("POST", "/services/petstore/update", {});
  await ask("POST", "/services/pets/update", {});
  await ask("POST", "/services/pets/sync");
}

async function walkTools(ask: Ask): Promise<void> {
  for (const query of ["", "?limit=2", "?query=photo", "?serviceId=pets&enabled=true", "?serviceId=none"]) {
    await ask("GET", `/tools${query}`);
  }
  for (const below of ["", "/docs"]) {
    await ask("GET", `/tools/pets/listPets${below}`);
    await ask("GET", `/tools/pets/none${below}`);
  }
  await ask("POST", "/tools/pets/listPets/invoke", { parameters: { query: { tags: ["calm"] } } });
  await ask("POST", "/tools/pets/listPets/invoke", { parameters: { query: { tags: 1 } } });
  await ask("POST", "/tools/pets/listPets/enabled", { enabled: false });
  await ask("POST", "/tools/pets/listPets/invoke", {});
  await ask("POST", "/tools/pets/none/enabled", { enabled: false });
  await ask("GET", "/environment/docs");
}

async function walkModules(ask: Ask): Promise<void> {
  await ask("POST", "/modules", { registryId: "open", moduleId: "toy", version: "1.0.0" });
  await ask("POST", "/modules", { registryId: "open", moduleId: "toy" });
  await ask("POST", "/modules", { registryId: "open", moduleId: "none" });
  await ask("POST", "/modules", { source: "http://127.0.0.1:9/toy.tgz", hash: "0".repeat(64) });
  await ask("POST", "/modules/toy/enabled", { enabled: true });
  await ask("POST", "/modules/toy/auto-update", { autoUpdate: true, constraint: null });
  await ask("POST", "/modules/toy/auto-update", { autoUpdate: true, constraint: "no range" });
  await ask("POST", "/modules/toy/rollback", {});
  await ask("POST", "/modules/toy/update", {});
  await ask("POST", "/modules/toy/rollback", {});
  await ask("POST", "/modules/reload");
  await ask("PATCH", "/modules/javascript/config", add("/memoryMb", 64));
  await ask("PATCH", "/modules/javascript/secrets", []);
  for (const id of ["toy", "javascript"]) {
    for (const below of ["", "/config", "/config/schema", "/secrets", "/secrets/schema", "/icon"]) {
      await ask("GET", `/modules/${id}${below}`);
    }
    for (const action of ["update", "rollback"]) await ask("POST", `/modules/${id}/${action}`, {});
  }
  await ask("POST", "/modules/javascript/auto-update", { autoUpdate: true });
  await ask("DELETE", "/modules/javascript");
  for (const query of ["", "?limit=1", "?type=adapter&isBuiltin=true&enabled=true&missing=false&query=o"]) {
    await ask("GET", `/modules${query}`);
  }
}

async function walkLogs(ask: Ask): Promise<void> {
  for (const query of ["", "?limit=1", "?levelMin=warn&query=module", "?level=loud", "?from=yesterday"]) {
    await ask("GET", `/logs${query}`);
  }
  await ask("GET", "/logs/stream");
  await ask("GET", "/logs/stream?levelMin=loud");
}

async function walkMcp(ask: Ask): Promise<void> {
  const accept = { accept: "application/json, text/event-stream" };
  const message = (method: string, params: object, id?: number): object => ({ jsonrpc: "2.0", method, params, id });
  const clientInfo = { name: "walk", version: "1" };
  const hello = message("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }, 1);
  await ask("POST", "/mcp", hello, accept);
  await ask("POST", "/mcp", message("notifications/initialized", {}), accept);
  await ask("POST", "/mcp", message("tools/list", {}, 2), accept);
  await ask("POST", "/mcp", message("tools/list", {}, 3), { accept: "application/json" });
  await ask("POST", "/mcp", { no: "message" }, accept);
  await ask("POST", "/mcp", "{", accept);
  await ask("POST", "/mcp", hello, { ...accept, authorization: "" });
  await ask("GET", "/mcp", undefined, accept);
}

async function walkDocuments(ask: Ask): Promise<void> {
  for (const path of ["/openapi.json", "/docs", "/docs/style.css", "/llms.txt", "/healthz", "/readyz", "/metrics"]) {
    const { headers } = await ask("GET", path, undefined, { authorization: "" });
    const tag = headers.get("etag");
    if (tag !== null) await ask("GET", path, undefined, { "if-none-match": tag });
    await ask("HEAD", path);
    await ask("GET", path, undefined, { origin: "http://elsewhere.example" });
  }
}

/** Ids that name nothing, cursors that are none, no key, the wrong role, the wrong method, the wrong body. */
async function walkRefusals(ask: Ask): Promise<void> {
  const stranger = { authorization: "Bearer no-such-key" };
  const agent = { authorization: "Bearer agent-key" };
  for (const list of ["/processes", "/registries", "/modules", "/services", "/tools"]) {
    await ask("GET", list, undefined, stranger);
    await ask("GET", `${list}?cursor=!`);
    await ask("GET", `${list}?cursor=eyJ2IjoyLCJrIjpbMSwyXX0`);
    await ask("GET", `${list}?limit=0`);
    await ask("HEAD", list);
    await ask("OPTIONS", list);
    await ask("DELETE", list);
  }
  await ask("GET", "/nothing");
  await ask("GET", "/processes/x");
  await ask("GET", "/%zz");
  await ask("GET", "/environment/docs", undefined, stranger);
  await ask("POST", "/modules/reload", {}, agent);
  await ask("POST", "/processes", "{", { "content-type": "application/json" });
  await ask("POST", "/processes", "code", { "content-type": "text/plain" });
  await ask("POST", "/processes", `"${"x".repeat(3 * 1024 * 1024)}"`);
  for (const below of ["", "/output", "/code", "/stdout", "/stderr"]) await ask("GET", `/processes/999999${below}`);
  for (const signal of ["run", "kill", "unload"]) await ask("POST", `/processes/999999/signals/${signal}`, {});
  for (const below of ["", "/auth", "/definitions", "/modules", "/definitions/a/icon", "/modules/a/icon"]) {
    await ask("GET", `/registries/none${below}`);
  }
  await ask("POST", "/registries/none/refresh", {});
  await ask("POST", "/registries/none/auth", { type: "apiKey", apiKey: "k" });
  await ask("DELETE", "/registries/none/auth");
  for (const kind of ["services", "modules"]) {
    for (const below of ["", "/config", "/config/schema", "/secrets", "/secrets/schema", "/icon"]) {
      await ask("GET", `/${kind}/none${below}`);
    }
    for (const below of ["config", "secrets"]) await ask("PATCH", `/${kind}/none/${below}`, []);
    await ask("POST", `/${kind}/none/enabled`, { enabled: true }, agent);
  }
  await ask("POST", "/services/none/sync", {});
}

async function walkDeletions(ask: Ask): Promise<void> {
  for (const path of ["/modules/toy", "/services/pets", "/registries/open"]) {
    await ask("DELETE", path);
    await ask("DELETE", path);
  }
  const { body } = await ask("GET", "/processes?state=idle&limit=1");
  await ask("DELETE", `/processes/${body.items[0].id}`);
  await ask("DELETE", `/processes/${body.items[0].id}`);
}
