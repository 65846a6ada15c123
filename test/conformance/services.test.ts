/** Rows of services: installation, the enabled flag, updates. See README.md for rows held elsewhere. */
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { removeFolder, startServer } from "../e2e/server.ts";
import { add, look, mirrorSource, newServiceId, object, openApi, openServiceBench, remove } from "./service-bench.ts";
import { expectEnvelope, notFound, openSite, refusedByUs, told, upstreamFailed } from "./site.ts";

const site = openSite();
const bench = openServiceBench(site);
const conflict = [409, "conflict"];

const create = (request: object) => site.server.post("/services", request);
const inline = { adapter: "mirror", definition: JSON.stringify({ name: "Row", tools: [look] }) };

describe("installation", () => {
  it.each([
    "9bad",
    "a-b",
    "a b",
    "é",
    "",
    "  ",
    "a.b",
    "then",
    "tools",
    "constructor",
    "__proto__",
    "toString",
    7,
    null,
  ])("P-73 the id %j is refused", async (id) => {
    const answer = await create({ ...inline, id });
    expect(told(answer)).toEqual(refusedByUs);
    expect(answer.body.error).toContain("id");
  });

  it("P-73 an id of 128 characters is taken, a longer one is not", async () => {
    expect((await create({ ...inline, id: "i".repeat(128) })).status).toBe(201);
    expect(told(await create({ ...inline, id: "i".repeat(129) }))).toEqual(refusedByUs);
  });

  it("P-73 an id that is there already is 409, and the former stays as it is", async () => {
    const id = await bench.mirrored();
    const former = await bench.read(id);
    expect(told(await create({ ...inline, id }))).toEqual([409, "already_exists"]);
    expect(told(await create({ id, definition: "not even a document" }))).toEqual([409, "already_exists"]);
    expect(await bench.read(id)).toEqual(former);
  });

  it("P-73 an adapter that is not in service is 503, one that does not exist is 400", async () => {
    const manifest = { id: "sleeper", name: "S", type: "adapter", description: "S", version: "1.0.0" } as const;
    const content = moduleArchive({ ...manifest, source: mirrorSource });
    bench.registry.publish("modules", { id: "sleeper", version: "1.0.0", content });
    expect((await site.server.post("/modules", { registryId: "dev-registry", moduleId: "sleeper" })).status).toBe(201);
    expect(told(await create({ ...inline, adapter: "sleeper" }))).toEqual([503, "unavailable"]);
    const unknown = await create({ ...inline, adapter: "nothing" });
    expect(told(unknown)).toEqual(refusedByUs);
    expect(unknown.body.error).toContain('"nothing"');
  });

  it.each([
    ...[
      "10.0.0.1",
      "169.254.169.254",
      "192.168.0.1",
      "172.16.0.1",
      "100.64.0.1",
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
    ],
    ...[
      "167772161",
      "0xa000001",
      "012.0.0.1",
      "[fd00::1]",
      "[fe80::1]",
      "[::ffff:10.0.0.1]",
      "[fd00:ec2::254]",
      "[ff02::1]",
    ],
    "no-such-host.invalid",
  ])("P-74 a document at %s is 502 (loopback is ours to allow)", async (host) => {
    const answer = await create({ url: `http://${host}:9/openapi.json` });
    expect(told(answer)).toEqual(upstreamFailed);
    expectEnvelope(answer);
  });

  it("P-74 a document behind a redirect to such an address is 502, one on loopback is installed", async () => {
    bench.target.respond = ({ path }, response) => {
      if (path === "/away") return void response.writeHead(302, { location: "http://169.254.169.254/" }).end();
      if (path === "/near") return void response.writeHead(302, { location: "/document" }).end();
      response.end(JSON.stringify(openApi("/", { a: {} })));
    };
    expect(told(await create({ url: `${bench.target.origin}/away` }))).toEqual(upstreamFailed);
    const [id, source] = [newServiceId(), `${bench.target.origin}/document`];
    await bench.install({ id, url: `${bench.target.origin}/near` });
    expect(await bench.read(id)).toMatchObject({ source, adapter: "openapi" });
  });

  it("P-74 with no address allowed, loopback is 502 as well", async () => {
    const strict = await startServer({ settings: { SERVICE_EGRESS_ALLOWED_CIDRS: "none" } });
    try {
      for (const host of ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433"]) {
        expect(told(await strict.post("/services", { url: `http://${host}:9/` }))).toEqual(upstreamFailed);
      }
    } finally {
      await strict.kill();
      await removeFolder(strict.folder);
    }
  });

  const mib = 1024 * 1024;
  const answers: readonly (readonly [string, (response: ServerResponse) => unknown, number, string])[] = [
    ["status 500", (response) => response.writeHead(500).end("{}"), 502, "upstream_failed"],
    ["status 404", (response) => response.writeHead(404).end("{}"), 502, "upstream_failed"],
    ["status 304", (response) => response.writeHead(304).end(), 502, "upstream_failed"],
    ["a redirect to itself", (response) => response.writeHead(302, { location: "/" }).end(), 502, "upstream_failed"],
    ["a redirect without a place", (response) => response.writeHead(302).end(), 502, "upstream_failed"],
    ["a cut connection", (response) => response.destroy(), 502, "upstream_failed"],
    [
      "half a body",
      (response) => {
        response.writeHead(200, { "content-length": 100 }).write("{");
        setTimeout(() => response.destroy(), 20);
      },
      502,
      "upstream_failed",
    ],
    [
      "a body that is no gzip",
      (response) => response.writeHead(200, { "content-encoding": "gzip" }).end("x"),
      502,
      "upstream_failed",
    ],
    ["an empty body", (response) => response.end(), 400, "invalid_request"],
    ["status 204", (response) => response.writeHead(204).end(), 400, "invalid_request"],
    ["a document that is none", (response) => response.end("<html>Log in</html>"), 400, "invalid_request"],
    [
      "an announced body of over 30 MiB",
      (response) => response.writeHead(200, { "content-length": 30 * mib + 1 }).write("{"),
      413,
      "too_large",
    ],
    ["a body of over 30 MiB", (response) => response.end(Buffer.alloc(30 * mib + 1, " ")), 413, "too_large"],
  ];
  it.each(answers)("P-75 a document server that answers with %s", async (_, respond, status, code) => {
    bench.target.respond = (_request, response) => void respond(response);
    const id = newServiceId();
    const answer = await create({ id, url: bench.target.origin });
    expect(told(answer), answer.text).toEqual([status, code]);
    expectEnvelope(answer);
    expect(told(await site.server.get(`/services/${id}`))).toEqual(notFound);
  });

  it.each(["http://127.0.0.1:1/", "http://127.0.0.1:1/openapi.json?key=secret"])(
    "P-75 nobody at %s is 502",
    async (url) => {
      const answer = await create({ url });
      expect(told(answer)).toEqual(upstreamFailed);
      expect(answer.text).not.toContain("secret");
    },
  );

  it.each(["openapi.json", "/openapi.json", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "", " ", 7])(
    "P-75 the URL %j is 400",
    async (url) => {
      expect(told(await create({ url }))).toEqual(refusedByUs);
    },
  );

  it("P-76 a new service is disabled and not stale, all its tools are enabled, none can be called", async () => {
    const id = await bench.mirrored({ tools: ["a", "b", "c"].map((tool) => ({ id: tool, name: tool })) });
    expect(await bench.read(id)).toMatchObject({ enabled: false, stale: false, effectivelyEnabled: false });
    const { body } = await site.server.get(`/tools?serviceId=${id}`);
    expect(body.items).toHaveLength(3);
    for (const tool of body.items) expect(tool).toMatchObject({ enabled: true, effectivelyEnabled: false });
  });

  it("P-77 a service that is not there is 404 on every route, also after it was deleted", async () => {
    const id = await bench.mirrored();
    expect((await site.server.call("DELETE", `/services/${id}`)).status).toBe(204);
    expect(told(await site.server.call("DELETE", `/services/${id}`))).toEqual(notFound);
    for (const path of ["", "/config", "/config/schema", "/secrets", "/secrets/schema", "/icon"]) {
      for (const gone of [id, "nope"]) {
        expect([path, ...told(await site.server.get(`/services/${gone}${path}`))]).toEqual([path, ...notFound]);
      }
    }
    expect(
      (await site.server.get("/services?limit=100")).body.items.map((item: { id: string }) => item.id),
    ).not.toContain(id);
    expect((await create({ ...inline, id })).status).toBe(201);
  });

  it("P-78 flags in a query are true or false in any case, and nothing else", async () => {
    for (const flag of ["true", "TRUE", "False"]) {
      const { status, body } = await site.server.get(`/services?enabled=${flag}&limit=100`);
      expect(status).toBe(200);
      for (const { enabled } of body.items) expect(enabled).toBe(flag.toLowerCase() === "true");
    }
    for (const query of [
      "enabled=maybe",
      "enabled=",
      "enabled=1",
      "enabled=null",
      "stale=maybe",
      "enabled=true&enabled=true",
    ]) {
      expect([query, ...told(await site.server.get(`/services?${query}`))]).toEqual([query, ...refusedByUs]);
    }
  });
});

describe("the enabled flag", () => {
  it("P-79 is not set while a required secret is missing, and the answer names it", async () => {
    const id = await bench.mirrored({ secretsSchema: object({ token: { type: "string" } }, { required: ["token"] }) });
    const answer = await bench.enable(id);
    expect(told(answer)).toEqual(refusedByUs);
    expect(answer.body.error).toContain("token");
    expect((await bench.read(id)).enabled).toBe(false);
    expect((await bench.patchSecrets(id, add("/token", "t"))).status).toBe(200);
    expect((await bench.enable(id)).body).toEqual({ id, enabled: true });
    expect(told(await bench.patchSecrets(id, remove("/token")))).toEqual(refusedByUs);
    expect((await bench.read(id)).enabled).toBe(true);
  });

  it("P-79 is not set while required configuration is missing, or a pair of secrets is incomplete", async () => {
    const url = { type: "string" };
    const id = await bench.mirrored({ configSchema: object({ url }, { required: ["url"] }) });
    expect(told(await bench.enable(id))).toEqual(refusedByUs);
    expect((await bench.patchConfig(id, add("/url", "u"))).status).toBe(200);
    expect((await bench.enable(id)).status).toBe(200);

    const basic = { components: { securitySchemes: { basic: { type: "http", scheme: "basic" } } } };
    const paired = await bench.install({
      id: newServiceId(),
      definition: openApi(bench.target.origin, { a: {} }, basic),
    });
    expect((await bench.patchSecrets(paired, add("/basic", { username: "u" }))).status).toBe(200);
    const incomplete = await bench.enable(paired);
    expect(told(incomplete)).toEqual(refusedByUs);
    expect(incomplete.body.error).toContain("password");
    expect((await bench.patchSecrets(paired, add("/basic/password", "p"))).status).toBe(200);
    expect((await bench.enable(paired)).status).toBe(200);
  });

  it("P-80 is not set while the adapter is disabled, and works again with it", async () => {
    const id = await bench.mirrored();
    expect((await site.server.post("/modules/mirror/enabled", { enabled: false })).status).toBe(200);
    try {
      const answer = await bench.enable(id);
      expect(told(answer)).toEqual(conflict);
      expect(answer.body.error).toContain('"mirror"');
      expect((await bench.read(id)).enabled).toBe(false);
    } finally {
      expect((await site.server.post("/modules/mirror/enabled", { enabled: true })).status).toBe(200);
    }
    expect((await bench.enable(id)).status).toBe(200);
  });

  it("P-80 is not set while the service is stale, until a version of the adapter can make it again", async () => {
    const refuses = mirrorSource.replace(
      "JSON.parse(document)",
      '{ throw Object.assign(new Error("No longer read"), { code: "invalid_request" }) }',
    );
    const release = (version: string, source: string): void => {
      const content = moduleArchive({ id: "fickle", name: "F", type: "adapter", description: "F", version, source });
      bench.registry.publish("modules", { id: "fickle", version, content });
    };
    release("1.0.0", mirrorSource);
    expect((await site.server.post("/modules", { registryId: "dev-registry", moduleId: "fickle" })).status).toBe(201);
    await site.server.post("/modules/fickle/enabled", { enabled: true });
    const id = await bench.install({ ...inline, id: newServiceId(), adapter: "fickle" });
    release("1.1.0", refuses);
    expect((await site.server.post("/modules/fickle/update")).body.updated).toBe(true);
    expect(await bench.read(id)).toMatchObject({ stale: true, effectivelyEnabled: false });
    expect((await site.server.get("/services?stale=true")).body.items.map((item: { id: string }) => item.id)).toEqual([
      id,
    ]);
    const answer = await bench.enable(id);
    expect(told(answer)).toEqual(conflict);
    expect(answer.body.error).toContain("No longer read");
    expect(told(await site.server.post(`/tools/${id}/look/invoke`, {}))).toEqual(conflict);
    release("1.2.0", mirrorSource);
    expect((await site.server.post("/modules/fickle/update")).body.updated).toBe(true);
    expect((await bench.read(id)).stale).toBe(false);
    expect((await bench.enable(id)).status).toBe(200);
  });

  it("P-81 stays off when the service cannot be made ready: 502, and enabling again tries again", async () => {
    const id = await bench.configured(object({ fails: { type: "boolean" } }), { fails: true });
    for (const _ of [1, 2]) {
      const answer = await bench.enable(id);
      expect(told(answer)).toEqual(upstreamFailed);
      expect(answer.body.error).toContain("The mirror is broken");
      expect(await bench.read(id)).toMatchObject({ enabled: false, effectivelyEnabled: false });
    }
    await bench.patchConfig(id, remove("/fails"));
    expect((await bench.enable(id)).body).toEqual({ id, enabled: true });
  });

  it("P-81 stays on when a patch of an enabled service cannot be made ready: 502, stored, the former settings serve", async () => {
    const id = await bench.configured(object({ fails: { type: "boolean" }, host: { type: "string" } }), { host: "a" });
    await bench.enable(id);
    const answer = await bench.patchConfig(id, add("/fails", true), add("/host", "b"));
    expect(told(answer)).toEqual(upstreamFailed);
    expect((await bench.config(id)).config).toEqual({ fails: true, host: "b" });
    expect((await bench.read(id)).enabled).toBe(true);
    expect((await bench.hydratedWith(id)).config).toEqual({ host: "a" });
    expect((await bench.patchConfig(id, remove("/fails"))).status).toBe(200);
    expect((await bench.hydratedWith(id)).config).toEqual({ host: "b" });
  });

  it("P-82 set to what it is answers 200 and changes nothing", async () => {
    const id = await bench.mirrored();
    const before = await bench.read(id);
    const again = await bench.enable(id, false);
    expect([again.status, again.body]).toEqual([200, { id, enabled: false }]);
    expect(await bench.read(id)).toEqual(before);
    await bench.enable(id);
    const enabled = await bench.read(id);
    expect((await bench.enable(id)).body).toEqual({ id, enabled: true });
    expect(await bench.read(id)).toEqual(enabled);
  });

  it("P-83 of an unknown service is 404, and anything but a boolean is 400", async () => {
    expect(told(await bench.enable("nope"))).toEqual(notFound);
    const id = await bench.mirrored();
    for (const body of [{ enabled: 1 }, { enabled: "true" }, { enabled: null }, {}, [], "null", '"true"', ""]) {
      const answer = await site.server.post(`/services/${id}/enabled`, body);
      expect([body, ...told(answer)]).toEqual([body, ...refusedByUs]);
    }
    expect((await bench.read(id)).enabled).toBe(false);
  });
});

describe("updates", () => {
  const tools = (...ids: string[]) => ids.map((id) => ({ id, name: id }));
  const flag = (id: string, tool: string, enabled: boolean) =>
    site.server.post(`/tools/${id}/${tool}/enabled`, { enabled });

  it("P-109 an update keeps flags of tools and the service enabled, new tools are disabled (decisions: still enabled)", async () => {
    const { id, offer } = await bench.offered({ tools: tools("look", "b", "c") });
    await bench.enable(id);
    expect((await flag(id, "b", false)).body).toEqual({ serviceId: id, id: "b", enabled: false });
    offer({ tools: tools("look", "b", "d") });
    expect((await site.server.post(`/services/${id}/update`)).body.updated).toBe(true);
    expect(await bench.tools(id)).toEqual([
      ["b", false],
      ["d", false],
      ["look", true],
    ]);
    expect(await bench.read(id)).toMatchObject({ enabled: true, effectivelyEnabled: true, version: "1.1.0" });
    offer({ tools: tools("look", "b", "c", "d") });
    await site.server.post(`/services/${id}/update`);
    expect(Object.fromEntries(await bench.tools(id))).toEqual({ b: false, c: false, d: false, look: true });
    expect((await site.server.post(`/services/${id}/update`)).body).toEqual({ id, updated: false, version: "1.2.0" });
  });

  it("P-109 tools are enabled where there were none before", async () => {
    const { id, offer } = await bench.offered({ tools: [] });
    expect(await bench.tools(id)).toEqual([]);
    offer({ tools: tools("a", "b") });
    await site.server.post(`/services/${id}/update`);
    expect(await bench.tools(id)).toEqual([
      ["a", true],
      ["b", true],
    ]);
  });

  it("P-109 a sync keeps flags of tools and the service enabled", async () => {
    const { id } = await bench.offered({ tools: tools("look", "b") });
    await bench.enable(id);
    await flag(id, "b", false);
    const synced = await site.server.post(`/services/${id}/sync`);
    expect([synced.status, synced.body.id]).toEqual([200, id]);
    expect(await bench.tools(id)).toEqual([
      ["b", false],
      ["look", true],
    ]);
    expect((await bench.read(id)).enabled).toBe(true);
    expect(told(await site.server.post("/services/nope/sync"))).toEqual(notFound);
  });

  it("P-109 a version that the enabled service cannot be made ready with is not taken over", async () => {
    const { id, offer } = await bench.offered({ tools: tools("look") });
    await bench.enable(id);
    offer({ tools: tools("look", "b"), plan: { fails: true } });
    expect(told(await site.server.post(`/services/${id}/update`))).toEqual(upstreamFailed);
    expect(await bench.read(id)).toMatchObject({ enabled: true, version: "1.0.0" });
    expect(await bench.tools(id)).toEqual([["look", true]]);
    expect((await bench.hydratedWith(id)).config).toEqual({});
    offer({ tools: tools("look"), secretsSchema: object({ token: {} }, { required: ["token"] }) });
    expect(told(await site.server.post(`/services/${id}/update`))).toEqual(refusedByUs);
    expect(await bench.read(id)).toMatchObject({ enabled: true, version: "1.0.0" });
  });

  it("P-110 a service of a URL, or given inline, has nothing to update from: 409, also for auto-update", async () => {
    bench.target.respond = (_, response) => void response.end(JSON.stringify(openApi("/", { a: {} })));
    const fromUrl = await bench.install({ id: newServiceId(), url: bench.target.origin });
    for (const id of [fromUrl, await bench.mirrored()]) {
      expect(told(await site.server.post(`/services/${id}/update`))).toEqual(conflict);
      expect(told(await site.server.post(`/services/${id}/auto-update`, { autoUpdate: true }))).toEqual(conflict);
      expect(await bench.read(id)).toMatchObject({ autoUpdate: false, autoUpdateConstraint: null });
    }
    for (const below of ["update", "auto-update"]) {
      expect(told(await site.server.post(`/services/nope/${below}`, { autoUpdate: true }))).toEqual(notFound);
    }
  });
});
