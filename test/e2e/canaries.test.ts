/**
 * No secret comes out: a server with canaries for every kind of secret is led through what works and through what fails on both
 * faces, killed, restarted and ended; then everything it said and left behind is searched. Markers that are no secrets take the same
 * ways and must be found in each kind of place, so that a search that sees nothing cannot pass.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Metadata, ServiceError } from "@grpc/grpc-js";
import { Level } from "level";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { canary, type Place, search, spellings } from "./canary-search.ts";
import { openForeignClient } from "./foreign-client.ts";
import { newFolder, removeFolder, type Server, startRefused, startServer } from "./server.ts";

/** Characters that escapes change, as far as a header may carry them. */
const odd = `q"\\ '%+/=&`;
const key = Buffer.from(canary("").text.slice(0, 27).padEnd(32, "k"));
const canaries = {
  agent: canary("API key of an agent"),
  operator: canary("API key of an operator"),
  secretsKey: { name: "SERVICE_SECRETS_KEY", text: key.toString("base64") },
  secretsKeyBytes: { name: "SERVICE_SECRETS_KEY, its bytes", text: key.toString("latin1") },
  header: canary("service secret in a header", odd),
  query: canary("service secret in the query", `${odd}é`),
  cookie: canary("service secret in a cookie"),
  password: canary("password of a service", `${odd}é`),
  bearer: canary("bearer token of a service"),
  refused: canary("secret in a refused patch", `${odd}é`),
  apiKey: canary("registry key", odd.replace(" ", "")),
  wrongKey: canary("refused registry key", odd.replace(" ", "")),
  clientSecret: canary("client secret", `${odd}é`),
  wrongSecret: canary("client secret of a failed setup", `${odd}é`),
  scripted: canary("client secret an endpoint repeats", `${odd}é`),
};
const marker = canary("marker");
const issued = new Set<string>();

const said: Place[] = [];
const closers: (() => unknown)[] = [];
let folder: string;

function keep(name: string, content: string | Buffer): void {
  said.push({ name, bytes: Buffer.from(content as string) });
}

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function listen(
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    answer(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a target gets as credentials, to be repeated where it hurts. */
function credentialsOf({ headers, url = "" }: IncomingMessage): string {
  return [headers["x-key"], headers.authorization, headers.cookie, url.split("?")[1]].filter(Boolean).join(" ");
}

const redirectingWays = ["to-blocked", "to-nowhere", "to-name", "to-userinfo", "to-odd", "loop"] as const;
const failingWays = ["reset", "half", "bad-encoding", "ok", "error"] as const;
const received: string[] = [];

function target(request: IncomingMessage, response: ServerResponse): void {
  received.push(credentialsOf(request));
  const leak = encodeURIComponent(credentialsOf(request));
  const name = /cnr[0-9a-f]+/.exec(credentialsOf(request))?.[0] ?? "x";
  const way = request.url?.split(/[/?]/)[1];
  const redirect = (location: string): unknown => response.writeHead(302, { location }).end();
  switch (way) {
    case "reset":
      return void request.socket.destroy();
    case "to-blocked":
      return void redirect(`http://10.0.0.1/${leak}?${leak}`);
    case "to-nowhere":
      return void redirect(`http://127.0.0.1:1/${leak}?${leak}`);
    case "to-name":
      return void redirect(`http://${name}.invalid/`);
    case "to-userinfo":
      return void redirect(`http://user:${leak}@127.0.0.1:1/`);
    case "to-odd":
      return void redirect(`ftp://x/${leak}`);
    case "loop":
      return void redirect(`/loop/${leak}?${leak}`);
    case "half":
      response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
      response.write(`{"x": "${leak}`);
      return void setTimeout(() => request.socket.destroy(), 50);
    case "bad-encoding":
      return void response.writeHead(200, { "content-encoding": "gzip" }).end(`not gzip ${leak}`);
    default:
      return void response.writeHead(way === "error" ? 500 : 200, { "content-type": "application/json" }).end("{}");
  }
}

function definitionOf(url: string): unknown {
  const paths = [...failingWays, ...redirectingWays].map((way) => [
    `/${way}`,
    { get: { operationId: way.replaceAll("-", ""), responses: { 200: { description: "ok" } } } },
  ]);
  return {
    openapi: "3.0.3",
    info: { title: "t", version: "1" },
    servers: [{ url }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        header: { type: "apiKey", in: "header", name: "x-key" },
        query: { type: "apiKey", in: "query", name: "key" },
        cookie: { type: "apiKey", in: "cookie", name: "session" },
        basic: { type: "http", scheme: "basic" },
        bearer: { type: "http", scheme: "bearer" },
      },
    },
  };
}

const serviceSecrets: Record<string, unknown> = {
  header: canaries.header.text,
  query: canaries.query.text,
  cookie: canaries.cookie.text,
  basic: { username: "user", password: canaries.password.text },
  bearer: canaries.bearer.text,
};

const { refused } = canaries;
/** Pointers and names of members are no secrets: refusals name them, and presence lists them. Values never come back. */
const refusedPatches: unknown[] = [
  ...["test", "copy", "move", "bogus"].map((op) => [{ op, path: "/header", from: "/undeclared", value: refused.text }]),
  [{ op: "add", path: "/undeclared", value: refused.text }],
  [{ op: "replace", path: "/undeclared/x", value: refused.text }],
  [{ op: "add", path: "undeclared", value: refused.text }],
  [{ op: "add", path: "/~9undeclared", value: refused.text }],
  [{ op: "add", path: "/header", value: { undeclared: refused.text } }],
  [{ op: "add", path: "/header", value: [refused.text] }],
  [{ op: "add", path: "/basic", value: refused.text }],
  [{ op: "add", path: "/basic", value: { username: 1, password: refused.text, undeclared: 1 } }],
  [{ op: "add", path: "", value: refused.text }],
  [{ op: "add", path: "/header/deeper", value: refused.text }],
  { op: "add", path: "/header", value: refused.text },
  [refused.text],
  refused.text,
  `[{"op":"add","path":"/header","value":${JSON.stringify(refused.text)}`,
  `[{"op":"add","path":"/header","value":"${refused.text}\u0001"}]`,
  `${refused.text}`,
  [
    { op: "add", path: "/header", value: `${refused.text}\r\nX: 1` },
    { op: "test", path: "/header", value: refused.text },
  ],
];

class Tour {
  readonly server: Server;
  readonly client: Awaited<ReturnType<typeof openForeignClient>>;
  /** Where successful answers are kept, when not with the others. */
  answers: string | undefined;

  constructor(server: Server, client: Tour["client"]) {
    this.server = server;
    this.client = client;
  }

  async rest(method: string, path: string, body?: unknown, authorization = `Bearer ${canaries.operator.text}`) {
    const response = await fetch(this.server.http + path, {
      method,
      headers: { authorization, "x-request-id": marker.text, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    keep(this.answers ?? "REST bodies", text);
    keep("REST headers", JSON.stringify([...response.headers]));
    return { status: response.status, text };
  }

  /** OK or the name of nothing: the status number. */
  async rpc(service: string, method: string, request: unknown, authorization = `Bearer ${canaries.operator.text}`) {
    const metadata = { authorization, "x-request-id": marker.text };
    try {
      keep(
        this.answers ?? "gRPC answers",
        JSON.stringify(await this.client.call(service, method, request as never, metadata)),
      );
      return 0;
    } catch (error) {
      const { code, details, message, metadata: trailers } = error as ServiceError;
      // The client's own codec refused the request: nothing was sent.
      if (code === undefined) return undefined;
      keep("gRPC messages", `${details} ${message}`);
      for (const name of Object.keys(trailers?.getMap() ?? {})) keepTrailer(name, trailers);
      return code;
    }
  }
}

function keepTrailer(name: string, trailers: Metadata): void {
  for (const value of trailers.get(name)) keep("gRPC trailers", value);
}

async function start(): Promise<Tour> {
  const server = await startServer({
    folder,
    settings: {
      SERVICE_LOG_LEVEL: "debug",
      SERVICE_SECRETS_KEY: canaries.secretsKey.text,
      SERVICE_API_KEYS: `a:agent:${canaries.agent.text},o:operator:${canaries.operator.text}`,
    },
  });
  const client = await openForeignClient(server.grpc);
  return new Tour(server, client);
}

/** Everything logged so far, as each face tells it. */
async function readLogs(tour: Tour): Promise<void> {
  tour.answers = "log records";
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await tour.rest("GET", `/logs?limit=100${cursor === "" ? "" : `&cursor=${cursor}`}`);
    expect(page.status, page.text).toBe(200);
    cursor = (JSON.parse(page.text) as { nextCursor: string | null }).nextCursor;
  }
  await tour.rpc("LogService", "ListLogs", { limit: 100 });
  tour.answers = undefined;
}

async function end(tour: Tour, signal: NodeJS.Signals): Promise<void> {
  await readLogs(tour);
  tour.client.close();
  await tour.server.kill(signal);
  keep("log", tour.server.lines.join("\n"));
}

async function secretsAndTools(tour: Tour, id: string, url: string): Promise<void> {
  expect((await tour.rest("POST", "/services", { id, definition: definitionOf(url) })).status).toBe(201);
  for (const [name, value] of Object.entries(serviceSecrets)) {
    const patched = await tour.rest("PATCH", `/services/${id}/secrets`, [{ op: "add", path: `/${name}`, value }]);
    expect(patched.status, patched.text).toBe(200);
  }
  for (const patch of refusedPatches) {
    const { status } = await tour.rest("PATCH", `/services/${id}/secrets`, patch);
    expect(status, JSON.stringify(patch)).toBeGreaterThanOrEqual(400);
    if (Array.isArray(patch)) await tour.rpc("ServiceService", "PatchServiceSecrets", { serviceId: id, patch });
  }
  await tour.rest("PATCH", `/services/${id}/config`, [{ op: "add", path: "/timeoutMs", value: "x" }]);
  await tour.rest("POST", `/services/${id}/enabled`, { enabled: true });
}

/** One scheme at a time: without `security` in the document the first that has a secret is used. */
async function callEverything(tour: Tour, id: string): Promise<void> {
  for (const only of Object.keys(serviceSecrets)) {
    for (const [name, value] of Object.entries(serviceSecrets)) {
      const change = name === only ? { op: "add", path: `/${name}`, value } : { op: "remove", path: `/${name}` };
      await tour.rest("PATCH", `/services/${id}/secrets`, [change]);
    }
    for (const way of redirectingWays) {
      const tool = way.replaceAll("-", "");
      // A target that quotes a part of a key, as a host name here, cannot be stopped: it has the key.
      tour.answers = way === "to-name" ? "parts quoted by a target" : "redirect answers";
      await tour.rest("POST", `/tools/${id}/${tool}/invoke`, { parameters: {} });
      await tour.rpc("ToolService", "InvokeTool", { serviceId: id, toolId: tool, parameters: {} });
      tour.answers = undefined;
    }
    for (const way of failingWays) {
      const tool = way.replaceAll("-", "");
      await tour.rest("POST", `/tools/${id}/${tool}/invoke`, { parameters: {} });
      await tour.rpc("ToolService", "InvokeTool", { serviceId: id, toolId: tool, parameters: {} });
      await runProgram(
        tour,
        `console.log(await services.${id}.${tool}({}).catch((e) => { console.error(e.stack); throw e; }))`,
      );
    }
  }
}

async function runProgram(tour: Tour, code: string): Promise<void> {
  const created = await tour.rest("POST", "/processes", { code }, `Bearer ${canaries.agent.text}`);
  const { id } = JSON.parse(created.text) as { id: number };
  for (const what of ["?wait=30", "/output", "/stdout", "/stderr"]) await tour.rest("GET", `/processes/${id}${what}`);
}

interface Scripted {
  readonly url: string;
  tokens: string;
  pages: string;
}

/** A registry that repeats in every way it can what it was sent, and issues tokens that are canaries themselves. */
async function scriptedRegistry(id: string, auth: "apiKey" | "oauth2"): Promise<Scripted> {
  const script = { tokens: "ok", pages: "ok" };
  let origin = "";
  const issue = (): string => {
    const token = canary("").text;
    issued.add(token);
    return token;
  };
  const repeat = (response: ServerResponse, way: string, echo: string): void => {
    received.push(echo);
    const coded = encodeURIComponent(echo);
    const json = { "content-type": "application/json" };
    if (way === "reset") response.destroy();
    else if (way === "redirect") response.writeHead(302, { location: `http://10.0.0.1/${coded}?${coded}` }).end();
    else if (way === "redirect-name") response.writeHead(307, { location: `http://u:${coded}@x.invalid/` }).end();
    else if (way === "not-json") response.writeHead(200, json).end(`${echo} is not JSON`);
    else if (way === "almost-json") response.writeHead(200, json).end(`{"definitions": [], "access_token": ${echo}`);
    else if (way === "reason") response.writeHead(500, coded.slice(0, 200)).end(echo);
    else if (/^[0-9]+$/.test(way)) {
      const body = { error: "invalid_client", error_description: `client ${echo} is not known`, error_uri: echo };
      response
        .writeHead(Number(way), { ...json, "www-authenticate": `Bearer realm="${coded}"` })
        .end(JSON.stringify(body));
    } else response.writeHead(200, json).end(JSON.stringify(shapes(echo)[way]));
  };
  const shapes = (echo: string): Record<string, unknown> => ({
    "wrong-types": { access_token: { echo }, definitions: { echo }, nextCursor: [echo] },
    lifetime: { access_token: issue(), expires_in: echo, definitions: [echo] },
    token: { access_token: `${echo}\u0001\r\n`, definitions: [{ id: "x", source: 1, [echo]: echo }] },
    page: { definitions: [{ id: "x", source: `http://10.0.0.1/${encodeURIComponent(echo)}` }], nextCursor: null },
  });
  origin = await listen((request, response, body) => {
    const path = request.url?.split("?")[0] ?? "";
    const json = { "content-type": "application/json" };
    if (path === "/.well-known/registry.json") {
      const offer =
        auth === "apiKey"
          ? { type: "apiKey", name: "x-registry-key" }
          : { type: "oauth2", tokenEndpoint: `${origin}/token`, scopes: [{ id: "read" }] };
      response.writeHead(200, json).end(JSON.stringify({ id, definitions: { v1: "/definitions" }, auth: offer }));
    } else if (path === "/token") {
      if (script.tokens !== "ok")
        return repeat(response, script.tokens, new URLSearchParams(body).get("client_secret") ?? "");
      const token = { access_token: issue(), refresh_token: issue(), token_type: "Bearer", expires_in: 31 };
      response.writeHead(200, json).end(JSON.stringify(token));
    } else if (script.pages !== "ok") {
      const { authorization, "x-registry-key": sent } = request.headers;
      repeat(response, script.pages, String(sent ?? authorization?.slice("Bearer ".length)));
    } else response.writeHead(200, json).end(JSON.stringify({ definitions: [], nextCursor: null }));
  });
  return Object.assign(script, { url: origin });
}

const repeating = [
  ...["400", "401", "403", "500", "reset", "redirect", "redirect-name", "not-json", "almost-json", "reason"],
  ...["wrong-types", "lifetime", "token", "page"],
];

async function registriesThatRepeat(tour: Tour): Promise<void> {
  const oauth = await scriptedRegistry("oauth", "oauth2");
  const keyed = await scriptedRegistry("keyed", "apiKey");
  for (const { url } of [oauth, keyed]) {
    expect((await tour.rest("POST", "/registries", { baseUrl: url })).status).toBe(201);
  }
  const client = { type: "oauth2", clientId: "client", clientSecret: canaries.scripted.text };
  for (const way of repeating) {
    oauth.tokens = way;
    await tour.rest("POST", "/registries/oauth/auth", client);
    await tour.rpc("RegistryService", "SetRegistryAuth", { id: "oauth", auth: client });
    await tour.rest("GET", "/registries/oauth/definitions");
    await tour.rpc("RegistryService", "BrowseDefinitions", { id: "oauth" });
  }
  oauth.tokens = "ok";
  expect((await tour.rest("POST", "/registries/oauth/auth", client)).text).toContain("configured");
  const apiKey = { type: "apiKey", apiKey: canaries.apiKey.text };
  expect((await tour.rest("POST", "/registries/keyed/auth", apiKey)).text).toContain("configured");
  for (const way of ["ok", ...repeating]) {
    for (const [id, script] of [
      ["oauth", oauth],
      ["keyed", keyed],
    ] as const) {
      script.pages = way;
      await tour.rest("GET", `/registries/${id}/definitions`);
      await tour.rest("GET", `/registries/${id}/auth`);
      await tour.rpc("RegistryService", "BrowseDefinitions", { id });
      await tour.rest("POST", "/services", { id: "never", registryId: id, definitionId: "x" });
    }
  }
}

async function refusedSetups(tour: Tour): Promise<DevRegistry> {
  const { clientSecret, wrongSecret, wrongKey } = canaries;
  const remote = await startDevRegistry({
    id: "dev",
    auth: "oauth2",
    clientId: "client",
    clientSecret: clientSecret.text,
  });
  const open = await startDevRegistry({ id: "open" });
  closers.push(
    () => remote.close(),
    () => open.close(),
  );
  const right = { type: "oauth2", clientId: "client", clientSecret: clientSecret.text };
  const wrong = { ...right, clientSecret: wrongSecret.text };
  const setups: unknown[] = [
    wrong,
    { ...wrong, scopes: ["everything"] },
    { ...wrong, scopes: wrongSecret.text },
    { ...wrong, clientId: 1 },
    { ...wrong, clientSecret: [wrongSecret.text] },
    { ...wrong, type: "bogus" },
    { ...wrong, undeclared: wrongSecret.text },
    { type: "apiKey", apiKey: wrongKey.text },
    { type: "apiKey", apiKey: `${wrongKey.text}\r\nX: 1` },
    { type: "apiKey", apiKey: wrongKey.text.repeat(2_000) },
    { type: "apiKey", apiKey: { undeclared: wrongKey.text } },
    JSON.stringify(wrong).slice(0, -2),
  ];
  for (const auth of setups) {
    for (const { url } of [remote, open]) await tour.rest("POST", "/registries", { baseUrl: url, id: "never", auth });
    if ((await tour.rest("GET", "/registries/never")).status === 200) await tour.rest("DELETE", "/registries/never");
  }
  for (const { url } of [remote, open]) await tour.rest("POST", "/registries", { baseUrl: url });
  for (const auth of setups) {
    for (const id of ["dev", "open", "nowhere"]) {
      await tour.rest("POST", `/registries/${id}/auth`, auth);
      if (typeof auth === "object") await tour.rpc("RegistryService", "SetRegistryAuth", { id, auth });
    }
  }
  expect((await tour.rest("POST", "/registries/dev/auth", right)).text).toContain("configured");
  for (let turn = 0; turn < 2; turn++) {
    expect((await tour.rest("GET", "/registries/dev/definitions")).status).toBe(200);
    remote.revoke();
  }
  return remote;
}

async function refusedCallers(tour: Tour): Promise<void> {
  const { agent, operator } = canaries;
  const wrong = [
    `Bearer ${operator.text}x`,
    `Bearer "${operator.text}"`,
    operator.text,
    `Basic ${Buffer.from(`o:${operator.text}`).toString("base64")}`,
    `Bearer o:operator:${operator.text}`,
    `bearer ${agent.text.toUpperCase()}`,
  ];
  for (const authorization of wrong) {
    expect((await tour.rest("GET", "/services", undefined, authorization)).status).toBe(401);
    expect(await tour.rpc("ServiceService", "ListServices", {}, authorization)).toBe(16);
  }
  const asAgent = `Bearer ${agent.text}`;
  expect((await tour.rest("DELETE", "/services/target", undefined, asAgent)).status).toBe(403);
  expect(await tour.rpc("ServiceService", "DeleteService", { serviceId: "target" }, asAgent)).toBe(7);
}

/** Ways that secrets take, taken by what is no secret. */
async function leaveMarkers(tour: Tour): Promise<void> {
  const { text } = marker;
  await tour.rest("GET", `/services/${text}`);
  await tour.rpc("ServiceService", "GetService", { serviceId: text });
  const value = `http://127.0.0.1/${text}`;
  await tour.rest("PATCH", "/services/target/config", [{ op: "add", path: "/serverUrl", value }]);
  await tour.rpc("ServiceService", "GetServiceConfig", { serviceId: "target" });
  await tour.rest("PATCH", "/services/target/config", [{ op: "remove", path: "/serverUrl" }]);
  await tour.rest("POST", "/processes", { code: `/* ${text} */` });
}

async function keepDataFolder(): Promise<void> {
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = join(folder, String(name));
    if (statSync(file).isFile())
      said.push({ name: "data files", bytes: Buffer.concat([Buffer.from(file), readFileSync(file)]) });
  }
  // Files may be compressed: what LevelDB reads from them is searched as well.
  for (const [database, name] of [
    ["store", "stored entries"],
    ["logs", "stored log records"],
  ] as const) {
    const level = new Level<Buffer, Buffer>(join(folder, database), { keyEncoding: "buffer", valueEncoding: "buffer" });
    for await (const entry of level.iterator()) said.push({ name, bytes: Buffer.concat(entry) });
    await level.close();
  }
}

describe("after a tour through everything that handles secrets", () => {
  beforeAll(async () => {
    folder = await newFolder();
    closers.push(() => removeFolder(folder));
    const url = await listen(target);
    const first = await start();
    await refusedCallers(first);
    await secretsAndTools(first, "target", url);
    await callEverything(first, "target");
    for (const { text } of [canaries.header, canaries.cookie, canaries.bearer]) expect(received.join()).toContain(text);
    for (const text of [
      encodeURIComponent(canaries.query.text),
      Buffer.from(`user:${canaries.password.text}`).toString("base64"),
    ]) {
      expect(received.join().replaceAll("'", "%27")).toContain(text.replaceAll("'", "%27"));
    }
    await leaveMarkers(first);
    const remote = await refusedSetups(first);
    await end(first, "SIGKILL");
    await keepDataFolder();
    const second = await start();
    await registriesThatRepeat(second);
    for (const { text } of [canaries.apiKey, canaries.scripted]) expect(received).toContain(text);
    expect(received.some((text) => issued.has(text))).toBe(true);
    await second.rest("POST", "/tools/target/ok/invoke", { parameters: {} });
    expect((await second.rest("GET", "/registries/dev/definitions")).status).toBe(200);
    await end(second, "SIGTERM");
    await keepDataFolder();
    for (const settings of [
      { SERVICE_SECRETS_KEY: Buffer.from(key).fill("z", 30).toString("base64"), SERVICE_LOG_LEVEL: "debug" },
      { SERVICE_SECRETS_KEY: `${canaries.secretsKey.text}${canaries.secretsKey.text}` },
      { SERVICE_SECRETS_KEY: canaries.secretsKey.text, SERVICE_SECRETS_PREVIOUS_KEYS: canaries.secretsKey.text },
      {
        SERVICE_API_KEYS: `a:bogus:${canaries.agent.text},a:agent:${canaries.agent.text},b:agent:${canaries.agent.text}`,
      },
      { SERVICE_HTTP_HOST: marker.text, SERVICE_SECRETS_KEY: canaries.secretsKey.text },
    ]) {
      const refusal = await startRefused({ folder, settings });
      expect(refusal.code, refusal.said).toBe(78);
      keep("refused starts", refusal.said);
    }
    for (const { headers } of remote.requests) {
      const token = headers.authorization?.slice("Bearer ".length);
      if (token !== undefined) issued.add(token);
    }
  }, 240_000);

  const besides = (...names: readonly string[]): Place[] => said.filter((place) => !names.includes(place.name));

  it("no secret is found in any spelling, anywhere", () => {
    expect(issued.size).toBeGreaterThan(5);
    const tokens = [...issued].map((text) => ({ name: "issued token", text }));
    expect(
      search(besides("redirect answers", "parts quoted by a target"), [...Object.values(canaries), ...tokens]),
    ).toEqual([]);
  });

  // Targets repeat a key of the query in the Location of their redirects.
  it("no secret is found in what a redirecting target answered", () => {
    expect(
      search(
        said.filter(({ name }) => name === "redirect answers"),
        Object.values(canaries),
      ),
    ).toEqual([]);
  });

  it.each([
    ...["REST bodies", "REST headers", "gRPC answers", "gRPC messages", "gRPC trailers"],
    ...["log", "log records", "data files", "stored entries", "stored log records", "refused starts"],
  ])("a marker that is no secret is found in %s", (name) => {
    expect(
      search(
        said.filter((place) => place.name === name),
        [marker],
      ),
    ).not.toEqual([]);
  });

  it.each(Object.values(canaries).map((each) => [each.name, each] as const))(
    "the search would find %s in every spelling and at every alignment",
    (_, each) => {
      for (const [spelling, bytes] of spellings(each.text)) {
        const place = { name: "there", bytes: Buffer.concat([Buffer.from("before"), bytes, Buffer.from("after")]) };
        expect(search([place], [each]).join("\n"), spelling).toContain(each.name);
      }
      for (let before = 0; before < 6; before++) {
        const around = Buffer.concat([Buffer.alloc(before, "x"), Buffer.from(`${each.text}yz`)]);
        for (const encoding of ["base64", "base64url"] as const) {
          expect(search([{ name: "there", bytes: Buffer.from(around.toString(encoding)) }], [each])).not.toEqual([]);
        }
      }
    },
  );
});
