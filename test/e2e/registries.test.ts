/**
 * Registries over real sockets: the development registry on one side, the server on the other. Titles name the row of API document
 * section 5.2 (and 4.1–4.4) they hold.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type DevRegistry, type DevRegistryOptions, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { type Answer, removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let client: ForeignClient;
const open: DevRegistry[] = [];
let count = 0;

beforeAll(async () => {
  server = await startServer();
  client = await openForeignClient(server.grpc);
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((registry) => registry.close()));
});

afterAll(async () => {
  client.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

async function registry(options: DevRegistryOptions = {}): Promise<DevRegistry> {
  const started = await startDevRegistry({ id: `r${++count}`, ...options });
  open.push(started);
  return started;
}

const key = "CANARY-api-key";
const clientId = "CANARY-client";
const clientSecret = "CANARY-secret p@+w%rd &=é~";
const apikey = { auth: "apikey", apiKey: key } as const;
const oauth2 = { auth: "oauth2", clientId, clientSecret } as const;
const keySetup = { type: "apiKey", apiKey: key };
const oauthSetup = { type: "oauth2", clientId, clientSecret };

async function added(
  options: DevRegistryOptions = {},
  auth?: unknown,
): Promise<{ remote: DevRegistry; id: string; answer: Answer }> {
  const remote = await registry(options);
  const answer = await server.post("/registries", { baseUrl: remote.url, ...(auth === undefined ? {} : { auth }) });
  return { remote, id: answer.body.id, answer };
}

const browse = (id: string, query = ""): Promise<Answer> => server.get(`/registries/${id}/definitions${query}`);
const hits = (remote: DevRegistry, route: string): number =>
  remote.requests.filter((request) => request.route === route).length;
const logged = (event: string, id: string): number =>
  server.lines.filter((line) => line.includes(`"event":"${event}"`) && line.includes(`"registryId":"${id}"`)).length;

describe("POST /registries", () => {
  it("answers the record flat, never synced yet, with auth null when none was sent", async () => {
    const { answer, remote, id } = await added();
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id,
      baseUrl: remote.url,
      lastSyncedAt: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      authType: null,
      tokenExpiresAt: null,
      auth: null,
    });
  });

  it("takes an id that overrides the advertised one, and refuses an id or a base URL that is taken", async () => {
    const remote = await registry();
    const own = `own-${count}`;
    expect((await server.post("/registries", { baseUrl: remote.url, id: own })).body.id).toBe(own);
    const again = await server.post("/registries", { baseUrl: `${remote.url}?x=1#y`, id: "other" });
    expect([again.status, again.body.code]).toEqual([409, "already_exists"]);
    const other = await registry();
    expect((await server.post("/registries", { baseUrl: other.url, id: own })).status).toBe(409);
  });

  it("added twice at the same moment exists once", async () => {
    const remote = await registry();
    const answers = await Promise.all(
      [1, 2, 3].map((n) => server.post("/registries", { baseUrl: remote.url, id: `same-${count}-${n}` })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
  });

  it.each(["ftp://x.test", "nonsense", "http://u:p@127.0.0.1/", ""])("with base URL %j is 400", async (baseUrl) => {
    expect((await server.post("/registries", { baseUrl })).status).toBe(400);
  });

  it("of something that does not answer, or answers nonsense, is 502 and nothing is stored", async () => {
    const remote = await registry();
    await remote.close();
    const gone = await server.post("/registries", { baseUrl: remote.url });
    expect([gone.status, gone.body.code]).toEqual([502, "upstream_failed"]);
    const notARegistry = await server.post("/registries", { baseUrl: server.http });
    expect(notARegistry.status).toBe(502);
  });

  it("with credentials that work is configured at once", async () => {
    const withKey = await added(apikey, keySetup);
    expect(withKey.answer.body).toMatchObject({
      authType: "apiKey",
      tokenExpiresAt: null,
      auth: { type: "apiKey", status: "configured", headerName: "X-Dev-Registry-Key" },
    });
    const withClient = await added(oauth2, oauthSetup);
    expect(withClient.answer.body.authType).toBe("oauth2");
    expect(withClient.answer.body.auth).toEqual({
      type: "oauth2",
      status: "configured",
      tokenExpiresAt: withClient.answer.body.tokenExpiresAt,
    });
    expect((await browse(withKey.id)).status).toBe(200);
    expect((await browse(withClient.id)).status).toBe(200);
    expect(hits(withClient.remote, "token")).toBe(1);
  });

  it("with an exchange that fails still creates the registry, without credentials", async () => {
    const { answer, id } = await added(oauth2, { ...oauthSetup, clientSecret: "CANARY-wrong" });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ authType: null, auth: { type: "oauth2", status: "error" } });
    expect(answer.body.auth.message).toMatch(/status 4\d\d/);
    expect(answer.text).not.toContain("CANARY");
    expect((await server.get(`/registries/${id}/auth`)).body.authType).toBeNull();
  });
});

describe("safety refusals: 400 with their message, nothing stored, on both paths", () => {
  const refusals = [
    ["no advertised method", {}, keySetup, /^The registry does not advertise an auth method/],
    [
      "unsupported advertisement",
      { advertisedAuth: { type: "basic" } },
      keySetup,
      /^The registry advertises unsupported auth.*basic/,
    ],
    [
      "a key in the query",
      { advertisedAuth: { type: "apiKey", name: "k", in: "query" } },
      keySetup,
      /^The registry advertises unsupported auth.*must be "header".*query-param keys are not supported/,
    ],
    ["method mismatch, key for oauth2", oauth2, keySetup, /^The registry advertises oauth2/],
    ["method mismatch, client for apiKey", apikey, oauthSetup, /^The registry advertises apiKey/],
    [
      "unadvertised scope",
      oauth2,
      { ...oauthSetup, scopes: ["definitions:read", "everything"] },
      /^Requested scope\(s\) not advertised by the registry: everything/,
    ],
    [
      "a token endpoint over plaintext elsewhere",
      { advertisedAuth: { type: "oauth2", tokenEndpoint: "http://192.0.2.1/token" } },
      oauthSetup,
      /^Registry authentication requires https/,
    ],
  ] as const;

  for (const [what, options, setup, message] of refusals) {
    it(what, async () => {
      const onAdd = await added(options, setup);
      expect([onAdd.answer.status, onAdd.answer.body.code]).toEqual([400, "refused"]);
      expect(onAdd.answer.body.error).toMatch(message);
      const { id, remote } = await added(options);
      const onSet = await server.post(`/registries/${id}/auth`, setup);
      expect([onSet.status, onSet.body.code]).toEqual([400, "refused"]);
      expect(onSet.body.error).toMatch(message);
      expect((await server.get(`/registries/${id}`)).body.authType).toBeNull();
      expect(hits(remote, "token")).toBe(0);
    });
  }

  it.each([
    {},
    { type: "basic" },
    { type: "apiKey" },
    { type: "apiKey", apiKey: "" },
    { type: "apiKey", apiKey: "k\r\nX: 1" },
    { type: "apiKey", apiKey: "k\u0000" },
    { type: "apiKey", apiKey: "k".repeat(70_000) },
    { type: "oauth2", clientId: "c" },
    { type: "oauth2", clientId: "c", clientSecret: "s", scopes: "all" },
  ])("a body of %j is 400", async (body) => {
    const { id } = await added(apikey);
    const answer = await server.post(`/registries/${id}/auth`, body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });
});

describe("POST /registries/{id}/auth", () => {
  it("stores a key, which is then sent under the pinned header", async () => {
    const { id, remote } = await added(apikey);
    expect((await browse(id)).status).toBe(502);
    const { body } = await server.post(`/registries/${id}/auth`, keySetup);
    expect(body).toEqual({ auth: { type: "apiKey", status: "configured", headerName: "X-Dev-Registry-Key" } });
    expect((await browse(id)).status).toBe(200);
    expect(remote.requests.at(-1)?.headers["x-dev-registry-key"]).toBe(key);
    expect((await server.get(`/registries/${id}/auth`)).body).toEqual({
      authType: "apiKey",
      headerName: "X-Dev-Registry-Key",
      tokenExpiresAt: null,
      availableScopes: [],
      configuredScopes: [],
    });
  });

  it("on a failed exchange stores the credentials, says so, and a correct setup later succeeds", async () => {
    const { id, remote } = await added(oauth2);
    const wrong = await server.post(`/registries/${id}/auth`, { ...oauthSetup, clientSecret: "CANARY-wrong" });
    expect([wrong.status, wrong.body.auth.status]).toEqual([200, "error"]);
    expect(wrong.text).not.toContain("CANARY");
    expect((await server.get(`/registries/${id}`)).body).toMatchObject({ authType: "oauth2", tokenExpiresAt: null });
    expect((await server.post(`/registries/${id}/refresh`)).status).toBe(200);
    const right = await server.post(`/registries/${id}/auth`, oauthSetup);
    expect(right.body.auth.status).toBe("configured");
    expect((await browse(id)).status).toBe(200);
    expect(hits(remote, "token")).toBe(2);
  });

  it("sends the whole advertised set when scopes are omitted, a subset when given, and no scope for none", async () => {
    for (const [scopes, sent, configured] of [
      [undefined, "definitions:read modules:read", ["definitions:read", "modules:read"]],
      [["modules:read"], "modules:read", ["modules:read"]],
      [[], null, []],
    ] as const) {
      const { id, remote } = await added(oauth2);
      await server.post(`/registries/${id}/auth`, { ...oauthSetup, ...(scopes === undefined ? {} : { scopes }) });
      const form = new URLSearchParams(remote.requests.findLast(({ route }) => route === "token")?.body.toString());
      expect(form.get("scope")).toBe(sent);
      expect([form.get("client_id"), form.get("client_secret")]).toEqual([clientId, clientSecret]);
      const { body } = await server.get(`/registries/${id}/auth`);
      expect(body.configuredScopes).toEqual(configured);
      expect(body.availableScopes.map((scope: { id: string }) => scope.id)).toEqual([
        "definitions:read",
        "modules:read",
      ]);
      expect(body.tokenEndpoint).toBe(remote.tokenEndpoint);
    }
  });

  it("replaces credentials: the old token is never sent again, whatever ends later", async () => {
    const { id, remote } = await added(oauth2, oauthSetup);
    await browse(id);
    const before = remote.requests.at(-1)?.headers.authorization;
    remote.set({ clientId: "second", clientSecret: "other" });
    await server.post(`/registries/${id}/auth`, { type: "oauth2", clientId: "second", clientSecret: "other" });
    await browse(id);
    const after = remote.requests.at(-1)?.headers.authorization;
    expect(after).toMatch(/^Bearer /);
    expect(after).not.toBe(before);
  });

  it("DELETE removes them; again is 404", async () => {
    const { id, remote } = await added(apikey, keySetup);
    expect((await server.call("DELETE", `/registries/${id}/auth`)).status).toBe(204);
    expect((await browse(id)).status).toBe(502);
    expect(remote.requests.at(-1)?.headers["x-dev-registry-key"]).toBeUndefined();
    expect((await server.call("DELETE", `/registries/${id}/auth`)).status).toBe(404);
  });
});

describe("token lifecycle", () => {
  it("200 first browses at once share one token request, and 1,000 browses cost 1,000 page requests", {
    timeout: 120_000,
  }, async () => {
    const { id, remote } = await added(oauth2);
    const setup = await server.post(`/registries/${id}/auth`, oauthSetup);
    expect(setup.body.auth.status).toBe("configured");
    remote.revoke();
    remote.set({ tokenLifetimeSeconds: 3_600, faults: { token: { do: "delay", ms: 300 } } });
    const first = await Promise.all(Array.from({ length: 200 }, () => browse(id)));
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200]));
    expect(hits(remote, "token")).toBe(2);
    const pages = hits(remote, "definitions");
    const documents = hits(remote, "well-known");
    for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, () => browse(id)));
    expect(hits(remote, "definitions") - pages).toBe(1_000);
    expect(hits(remote, "well-known") - documents).toBeLessThanOrEqual(20);
  });

  it("a token short of 30 s serves the browse that waited for it and is fetched anew for the next", async () => {
    const { id, remote } = await added({ ...oauth2, tokenLifetimeSeconds: 20 }, oauthSetup);
    const before = hits(remote, "token");
    for (let turn = 0; turn < 3; turn++) expect((await browse(id)).status).toBe(200);
    expect(hits(remote, "token") - before).toBe(3);
  });

  it("one 401 after a token was used leads to exactly one retry with a fresh one; a key is never retried", async () => {
    const { id, remote } = await added(oauth2, oauthSetup);
    await browse(id);
    remote.revoke();
    const pages = hits(remote, "definitions");
    expect((await browse(id)).status).toBe(200);
    expect([hits(remote, "definitions") - pages, hits(remote, "token")]).toEqual([2, 2]);
    const keyed = await added(apikey, keySetup);
    keyed.remote.set({ apiKey: "another" });
    expect((await browse(keyed.id)).status).toBe(502);
    expect(hits(keyed.remote, "definitions")).toBe(1);
  });

  it("is kept over a restart: no new exchange, and no secret lies readable on disk or in the log", async () => {
    const own = await startServer({ settings: { SERVICE_LOG_LEVEL: "debug" } });
    const remote = await registry(oauth2);
    const { body } = await own.post("/registries", { baseUrl: remote.url, auth: oauthSetup });
    await own.get(`/registries/${body.id}/definitions`);
    const token = remote.requests.at(-1)?.headers.authorization?.slice("Bearer ".length) ?? "";
    await own.kill();
    const again = await startServer({ folder: own.folder });
    expect((await again.get(`/registries/${body.id}/definitions`)).status).toBe(200);
    expect(hits(remote, "token")).toBe(1);
    await again.kill("SIGTERM");
    const secrets = [clientId, clientSecret, token].flatMap(spellings);
    const places = [
      ...filesBelow(own.folder).map((file) => readFileSync(file)),
      Buffer.from([...own.lines, ...again.lines].join("\n")),
    ];
    for (const secret of secrets) expect(places.some((place) => place.includes(secret))).toBe(false);
    await removeFolder(own.folder);
  });
});

describe("pinning and drift", () => {
  it("keeps pinned values whatever is advertised, and logs each change once", async () => {
    const { id, remote } = await added(oauth2, oauthSetup);
    expect(logged("registry-auth-unconfigured", id)).toBe(0);
    remote.set({ drift: "values" });
    for (let turn = 0; turn < 3; turn++) expect((await server.post(`/registries/${id}/refresh`)).status).toBe(200);
    expect(logged("registry-auth-token-endpoint-drift", id)).toBe(1);
    expect((await server.get(`/registries/${id}/auth`)).body.tokenEndpoint).toBe(remote.tokenEndpoint);
    remote.revoke();
    expect((await browse(id)).status).toBe(200);
    remote.set({ drift: "type" });
    await server.get(`/registries/${id}/auth`);
    remote.set({ drift: "removed" });
    await server.get(`/registries/${id}/auth`);
    expect(logged("registry-auth-type-drift", id)).toBe(2);
    expect((await browse(id)).status).toBe(200);
    remote.set({ drift: "off" });
    await server.get(`/registries/${id}/auth`);
    remote.set({ drift: "values" });
    await server.get(`/registries/${id}/auth`);
    expect(logged("registry-auth-token-endpoint-drift", id)).toBe(2);
  });

  it("logs header drift, and what is unconfigured or unsupported, once each", async () => {
    const { id, remote } = await added(apikey);
    expect(logged("registry-auth-unconfigured", id)).toBe(1);
    await server.post(`/registries/${id}/auth`, keySetup);
    remote.set({ drift: "values" });
    await server.post(`/registries/${id}/refresh`);
    await server.post(`/registries/${id}/refresh`);
    expect(logged("registry-auth-header-drift", id)).toBe(1);
    remote.set({ drift: "off", advertisedAuth: { type: "basic" } });
    await server.post(`/registries/${id}/refresh`);
    expect(logged("registry-auth-unsupported", id)).toBe(1);
    expect(logged("registry-auth-unconfigured", id)).toBe(1);
  });
});

describe("browsing", () => {
  it("forwards the query unchanged, with 50 as the limit, and passes cursors through", async () => {
    const { id, remote } = await added({ samples: 120 });
    await browse(id, "?query=%C3%A9%20%2B&kind=openapi%403.1.0&cursor=a%2Bb%2Fc%3D%3D%26x%3D1%23y");
    expect(remote.requests.at(-1)?.query).toEqual({
      query: "é +",
      kind: "openapi@3.1.0",
      cursor: "a+b/c==&x=1#y",
      limit: "50",
    });
    const ids: string[] = [];
    let cursor = "";
    do {
      const { body } = await browse(id, `?limit=40${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
      ids.push(...body.definitions.map((entry: { id: string }) => entry.id));
      cursor = body.nextCursor ?? "";
    } while (cursor !== "");
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(120);
  });

  it.each(["limit=0", "limit=201", "limit=x", "query=", "cursor=", "kind=%20", "limit=1&limit=2"])(
    "with %s is 400",
    async (query) => {
      const { id } = await added();
      expect((await browse(id, `?${query}`)).status).toBe(400);
    },
  );

  it("of a registry that is not there is 404, of a broken page 502 naming the entry", async () => {
    expect((await browse("nowhere")).status).toBe(404);
    const { id, remote } = await added();
    for (const lie of [
      "page-without-entries",
      "entry-without-id",
      "entry-without-source",
      "off-origin-source",
    ] as const) {
      remote.set({ lies: [lie] });
      const answer = await browse(id);
      expect([lie, answer.status, answer.body.code]).toEqual([lie, 502, "upstream_failed"]);
    }
  });

  it("lists modules with their type", async () => {
    const { id } = await added();
    const { status, body } = await server.get(`/registries/${id}/modules?type=adapter`);
    expect(status).toBe(200);
    expect(body.modules.length).toBeGreaterThan(0);
    expect(new Set(body.modules.map((entry: { type: string }) => entry.type))).toEqual(new Set(["adapter"]));
    expect((await server.get(`/registries/${id}/modules?type=bogus`)).status).toBe(400);
  });
});

describe("records", () => {
  it("are read, listed newest first, refreshed without changing their id, and deleted", async () => {
    const { id, remote } = await added();
    expect((await server.get(`/registries/${id}`)).body.id).toBe(id);
    expect((await server.get("/registries?limit=1")).body.items[0].id).toBe(id);
    remote.set({ id: "renamed" });
    const { body } = await server.post(`/registries/${id}/refresh`);
    expect(body.id).toBe(id);
    expect(body.lastSyncedAt).toBe(body.updatedAt);
    await remote.close();
    const failed = await server.post(`/registries/${id}/refresh`);
    expect(failed.status).toBe(502);
    expect((await server.get(`/registries/${id}`)).body).toEqual(body);
    expect((await server.call("DELETE", `/registries/${id}`)).status).toBe(204);
    expect((await server.get(`/registries/${id}`)).status).toBe(404);
    expect((await server.call("DELETE", `/registries/${id}`)).status).toBe(404);
  });

  it("say the same through gRPC, secrets included: in no answer", async () => {
    const { id, remote } = await added(oauth2, oauthSetup);
    const rpc = (method: string, request: object): Promise<unknown> =>
      client.call("RegistryService", method, request as never);
    const rest = (await server.get(`/registries/${id}`)).body;
    const answered = (await rpc("GetRegistry", { id })) as { registry: Record<string, unknown> };
    expect(
      Object.fromEntries(
        Object.entries(answered.registry).map(([name, value]) => [
          name,
          name === "tokenExpiresAt" ? Number(value) : value,
        ]),
      ),
    ).toEqual(Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)));
    const definitions = (await rpc("BrowseDefinitions", { id })) as { definitions: unknown[] };
    expect(definitions.definitions).toEqual((await browse(id)).body.definitions);
    const auth = JSON.stringify(await rpc("GetRegistryAuth", { id }));
    expect(auth).toContain(remote.tokenEndpoint);
    expect(auth).not.toContain("CANARY");
    const set = JSON.stringify(
      await rpc("SetRegistryAuth", {
        id,
        auth: { type: "oauth2", clientId, clientSecret: "CANARY-wrong", noScopes: true },
      }),
    );
    expect(set).toContain("error");
    expect(set).not.toContain("CANARY");
    await expect(rpc("GetRegistry", { id: "nowhere" })).rejects.toMatchObject({ code: 5 });
  });

  it("are seeded once from SERVICE_DEFAULT_REGISTRY_URL, in the background", async () => {
    const remote = await registry();
    const own = await startServer({ settings: { SERVICE_DEFAULT_REGISTRY_URL: remote.url } });
    for (let look = 0; look < 200 && (await own.get("/registries")).body.items.length === 0; look++) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    expect((await own.get("/registries")).body.items).toMatchObject([{ baseUrl: remote.url }]);
    await own.kill("SIGTERM");
    await removeFolder(own.folder);
  });
});

function spellings(secret: string): Buffer[] {
  const plain = Buffer.from(secret);
  const encodings = [plain.toString("base64").replace(/=+$/, ""), plain.toString("hex"), encodeURIComponent(secret)];
  return [plain, Buffer.from(secret, "utf16le"), ...encodings.map((text) => Buffer.from(text))];
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => statSync(file).isFile());
}

describe("installing a service from a registry", () => {
  it("takes the latest version by its entry, on the adapter its kind names, and keeps where it came from", async () => {
    const { id, remote } = await added(oauth2, oauthSetup);
    const name = `fromRegistry${count}`;
    const installed = await server.post("/services", { id: name, registryId: id, definitionId: "petstore" });
    expect([installed.status, installed.body]).toEqual([201, { id: name }]);
    const { body } = await server.get(`/services/${name}`);
    expect(body).toMatchObject({ version: "1.1.0", adapter: "openapi", enabled: false, autoUpdate: false });
    expect(body.source).toContain(remote.origin);
    expect((await server.get(`/tools/${name}/getStats`)).status).toBe(200);
  });

  it("takes the version asked for, or the newest within a constraint, and updates to what is newer, never older", async () => {
    const { id } = await added();
    const name = `pinned${count}`;
    const request = { id: name, registryId: id, definitionId: "petstore", version: "1.0.0", constraint: "^1.0.0" };
    expect((await server.post("/services", { ...request, autoUpdate: true })).status).toBe(201);
    expect((await server.get(`/services/${name}`)).body).toMatchObject({
      version: "1.0.0",
      autoUpdate: true,
      autoUpdateConstraint: "^1.0.0",
    });
    expect((await server.get(`/tools/${name}/getStats`)).status).toBe(404);
    const updated = await server.post(`/services/${name}/update`);
    expect([updated.status, updated.body]).toEqual([200, { id: name, updated: true, version: "1.1.0" }]);
    expect((await server.get(`/tools/${name}/getStats`)).status).toBe(200);
    expect((await server.post(`/services/${name}/update`)).body).toEqual({
      id: name,
      updated: false,
      version: "1.1.0",
    });
    const held = `held${count}`;
    await server.post("/services", { ...request, id: held, version: undefined, constraint: "~1.0.0" });
    expect((await server.get(`/services/${held}`)).body.version).toBe("1.0.0");
    expect((await server.post(`/services/${held}/update`)).body.updated).toBe(false);
  });

  it("reads YAML documents and versions that a registry spells oddly", async () => {
    const { id } = await added({ lies: ["odd-versions"] });
    const installed = await server.post("/services", {
      id: `library${count}`,
      registryId: id,
      definitionId: "lending-library",
    });
    expect(installed.status, installed.text).toBe(201);
  });

  it("refuses what does not fit together, what is not there, and what was tampered with", async () => {
    const { id, remote } = await added();
    const install = (body: object): Promise<Answer> =>
      server.post("/services", { id: `never${count}`, registryId: id, definitionId: "petstore", ...body });
    expect((await install({ definitionId: undefined })).status).toBe(400);
    expect((await install({ url: "http://127.0.0.1:9/" })).status).toBe(400);
    expect((await install({ registryId: "nowhere" })).status).toBe(404);
    expect((await install({ definitionId: "nothing" })).status).toBe(404);
    expect((await install({ version: "9.9.9" })).status).toBe(404);
    expect((await install({ constraint: "^9.0.0" })).status).toBe(404);
    expect((await install({ constraint: "not a range" })).status).toBe(400);
    expect((await install({ constraint: "1.2.3 ".padEnd(90_000, "x") })).status).toBe(400);
    expect((await install({ adapter: "unknown" })).status).toBe(400);
    remote.set({ lies: ["wrong-hash"] });
    const tampered = await install({});
    expect([tampered.status, tampered.body.code]).toEqual([502, "upstream_failed"]);
    expect((await server.get(`/services/never${count}`)).status).toBe(404);
  });

  it("stays when its registry is deleted, and is then told that there is nothing to update from", async () => {
    const { id } = await added();
    const name = `orphan${count}`;
    await server.post("/services", { id: name, registryId: id, definitionId: "petstore" });
    await server.call("DELETE", `/registries/${id}`);
    expect((await server.get(`/services/${name}`)).status).toBe(200);
    expect((await server.post(`/services/${name}/update`)).status).toBe(404);
    const sync = await server.post(`/services/${name}/sync`);
    expect([sync.status, sync.body]).toEqual([200, { id: name, updated: true, version: "1.1.0" }]);
  });

  it("answers 409 for updates of services that came from elsewhere, and 400 for constraints that are none", async () => {
    const name = `inline${++count}`;
    await server.post("/services", {
      id: name,
      definition: { openapi: "3.1.0", info: { title: "t", version: "1" }, paths: {} },
    });
    expect((await server.post(`/services/${name}/update`)).status).toBe(409);
    expect((await server.post(`/services/${name}/auto-update`, { autoUpdate: true })).status).toBe(409);
    for (const constraint of ["", "  ", "latest", "1.2.3.4", "^", ">=01.2.3", 1, true, []]) {
      expect((await server.post(`/services/${name}/auto-update`, { autoUpdate: true, constraint })).status).toBe(400);
    }
  });
});
