/** Rows of tools and the sandbox: lists and flags of tools, calls from programs, what programs see, OpenAPI documents and answers. */
import { describe, expect, it } from "vitest";
import type { Respond } from "../adapters/recording-server.ts";
import { newServiceId, openApi, openServiceBench } from "./service-bench.ts";
import { notFound, openSite, refusedByUs, told } from "./site.ts";

/** Short, so that a call that is too slow is over soon; long enough for two calls on a busy machine. */
const toolTimeoutMs = 3_000;
const site = openSite({ SERVICE_TOOL_TIMEOUT_MS: String(toolTimeoutMs) });
const bench = openServiceBench(site);
const conflict = [409, "conflict"];

const json =
  (body: unknown, status = 200): Respond =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

/** An enabled service with these operations at the target, which answers like this. */
async function calling(operations: Readonly<Record<string, object>>, respond: Respond, more = {}): Promise<string> {
  bench.target.respond = respond;
  bench.target.requests.length = 0;
  const definition = openApi(bench.target.origin, operations, more);
  const id = await bench.install({ id: newServiceId(), definition });
  expect((await bench.enable(id)).status).toBe(200);
  return id;
}

const invoke = (service: string, tool: string, parameters: unknown = {}) =>
  site.server.post(`/tools/${service}/${tool}/invoke`, { parameters });
const setTool = (service: string, tool: string, enabled: boolean) =>
  site.server.post(`/tools/${service}/${tool}/enabled`, { enabled });

/** What a program returned, objects included; it must have succeeded. */
async function returned(code: string, more: Record<string, unknown> = {}): Promise<unknown> {
  const { id, exitState, error } = await site.server.run(`return { value: await (async () => { ${code} })() }`, more);
  expect([exitState, error]).toEqual(["success", null]);
  return (await site.server.output(id)).value;
}

const caught = (call: string): string =>
  `try { await ${call}; return "no error" } catch (e) { return [e instanceof Error, e.code, e.status, e.message] }`;

describe("the list of tools", () => {
  it("P-111 of a service that is not there is 404", async () => {
    for (const query of ["", "&query=ping", "&enabled=true", "&limit=1"]) {
      expect(told(await site.server.get(`/tools?serviceId=ghost${query}`))).toEqual(notFound);
    }
    expect(told(await site.server.get("/tools/ghost/a"))).toEqual(notFound);
    expect(told(await site.server.get("/tools/ghost/a/docs"))).toEqual(notFound);
  });

  it("P-112 says of a tool of a disabled service that it is not effectively enabled, however it is asked", async () => {
    const id = await bench.install({ id: newServiceId(), definition: openApi("http://a.test", { pingwhale: {} }) });
    const shown = async (): Promise<unknown[]> => {
      const lists = [`serviceId=${id}`, "limit=100", "query=pingwhale", `query=pingwhale&serviceId=${id}`];
      const found = await Promise.all(
        lists.map(async (query) => {
          const { body } = await site.server.get(`/tools?${query}`);
          return body.items.find((tool: { id: string }) => tool.id === "pingwhale");
        }),
      );
      const one = (await site.server.get(`/tools/${id}/pingwhale`)).body;
      return [...found, one].map((tool) => [tool.enabled, tool.effectivelyEnabled]);
    };
    expect(await shown()).toEqual(Array(5).fill([true, false]));
    await bench.enable(id);
    expect(await shown()).toEqual(Array(5).fill([true, true]));
    await setTool(id, "pingwhale", false);
    expect(await shown()).toEqual(Array(5).fill([false, false]));
  });

  it("P-113 is in the order of service id, then id, also over pages of any size", async () => {
    for (const id of ["zz_last", "aa_first", "Aa_upper"]) {
      await bench.install({ id, definition: openApi("http://a.test", { b: {}, a: {}, B: {}, a1: {}, a2: {} }) });
    }
    const walked = async (limit: number): Promise<string[]> => {
      const seen: string[] = [];
      let cursor = "";
      do {
        const { body } = await site.server.get(`/tools?limit=${limit}${cursor}`);
        expect(body.items.length).toBeLessThanOrEqual(limit);
        seen.push(...body.items.map((tool: { serviceId: string; id: string }) => `${tool.serviceId} ${tool.id}`));
        cursor = body.nextCursor === null ? "" : `&cursor=${body.nextCursor}`;
      } while (cursor !== "");
      return seen;
    };
    const all = await walked(100);
    expect(all).toEqual([...all].sort());
    expect(all).toEqual(expect.arrayContaining(["Aa_upper B", "Aa_upper a", "aa_first a1", "zz_last a2", "zz_last b"]));
    for (const limit of [1, 4]) expect(await walked(limit)).toEqual(all);
  });
});

describe("a call that a gate closes", () => {
  it("P-114 of a disabled tool is an Error that a program can catch, uncaught it fails the run", async () => {
    const id = await calling({ a: {}, b: {} }, json({}));
    expect((await setTool(id, "a", false)).body).toEqual({ serviceId: id, id: "a", enabled: false });
    expect(await returned(caught(`services.${id}.a()`))).toEqual([
      true,
      "conflict",
      409,
      expect.stringContaining("disabled"),
    ]);
    const uncaught = await site.server.run(`await services.${id}.a()`);
    expect(uncaught).toMatchObject({ state: "idle", exitState: "failed", error: expect.stringContaining("disabled") });
    expect(bench.target.requests).toEqual([]);
    expect(await returned(`return (await services.${id}.b()).status`)).toBe(200);
    await setTool(id, "a", true);
    expect(await returned(`return (await services.${id}.a()).status`)).toBe(200);
  });

  it.each<[string, (id: string) => string, string, number]>([
    ["a disabled service", (id) => `services.${id}.a()`, "conflict", 409],
    ["an unknown tool", (id) => `services.${id}.unknown()`, "not_found", 404],
    ["a tool with a name every object has", (id) => `services.${id}.tools["constructor"].invoke()`, "not_found", 404],
    ["an unknown service", () => "services.ghost.a()", "not_found", 404],
  ])("P-115 of %s is a caught Error, and nothing is sent", async (what, call, code, status) => {
    const id = await calling({ a: {} }, json({}));
    if (what === "a disabled service") await bench.enable(id, false);
    expect(await returned(caught(call(id)))).toEqual([true, code, status, expect.stringMatching(/./)]);
    expect(bench.target.requests).toEqual([]);
  });

  it("P-115 is the same over REST", async () => {
    const id = await calling({ a: {} }, json({}));
    expect(told(await invoke(id, "unknown"))).toEqual(notFound);
    expect(told(await invoke("ghost", "a"))).toEqual(notFound);
    await bench.enable(id, false);
    expect(told(await invoke(id, "a"))).toEqual(conflict);
    expect(bench.target.requests).toEqual([]);
  });

  it("P-115 with parameters that do not fit is 400, and nothing is sent", async () => {
    const parameters = [{ name: "n", in: "query", required: true, schema: { type: "integer", minimum: 1 } }];
    const id = await calling({ a: { parameters } }, json({}));
    for (const given of [
      {},
      { query: {} },
      { query: { n: 0 } },
      { query: { n: "x" } },
      { query: 1 },
      { other: {} },
      [],
    ]) {
      expect([given, ...told(await invoke(id, "a", given))]).toEqual([given, ...refusedByUs]);
      const code = `services.${id}.a(${JSON.stringify(given)})`;
      expect(await returned(caught(code))).toEqual([true, "invalid_request", 400, expect.stringMatching(/./)]);
    }
    expect(bench.target.requests).toEqual([]);
    expect((await invoke(id, "a", { query: { n: 1 } })).status).toBe(200);
  });
});

describe("calls in time", () => {
  it("P-116 a target slower than the limit is an Error that names it, and the run goes on", async () => {
    const id = await calling(
      { slow: {}, quick: {} },
      ({ path }, response) => void (path === "/quick" && response.end()),
    );
    const code = `const first = await (async () => { ${caught(`services.${id}.slow()`)} })();
      return [...first, (await services.${id}.quick()).status]`;
    expect(await returned(code)).toEqual([true, "timeout", 504, expect.stringContaining(`${toolTimeoutMs}`), 200]);
  });

  it("P-116 a shorter limit of the service counts, over REST too", async () => {
    const id = await calling({ slow: {} }, () => undefined);
    await site.server.patch(`/services/${id}/config`, { op: "add", path: "/timeoutMs", value: 150 });
    const answer = await invoke(id, "slow");
    expect(told(answer)).toEqual([504, "timeout"]);
    expect(answer.body.error).toContain("150");
  });

  it("P-117 calls of one program are under way at once: none is answered before all have arrived", async () => {
    for (const count of [2, 20]) {
      const waiting: (() => void)[] = [];
      const id = await calling({ meet: {} }, (_, response) => {
        waiting.push(() => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
        if (waiting.length === count) for (const answer of waiting) answer();
      });
      const code = `const all = await Promise.all(Array.from({ length: ${count} }, () => services.${id}.meet()));
        return all.map(({ status }) => status)`;
      expect(await returned(code)).toEqual(Array(count).fill(200));
    }
  });
});

describe("the sandbox", () => {
  it.each([
    ["lists", "const all = []; for (;;) all.push(new Array(100_000).fill(all.length))"],
    ["text", "let text = 'x'; for (;;) text += text + text"],
    ["buffers", "const all = []; for (;;) all.push(new Uint8Array(8 * 1024 * 1024).fill(1))"],
  ])("P-118 a program that fills memory with %s fails, and the next 10 succeed", async (_, code) => {
    const filled = await site.server.run(code);
    expect(filled).toMatchObject({ state: "idle", exitState: "failed", error: expect.stringMatching(/./) });
    const next = await Promise.all(Array.from({ length: 10 }, () => site.server.run("return 1")));
    expect(next.map(({ exitState }) => exitState)).toEqual(Array(10).fill("success"));
  });

  it("P-119 has no fetch, require, process or file system; timers and URL are there (decisions)", async () => {
    const absent = ["fetch", "require", "process", "module", "Buffer", "XMLHttpRequest", "WebSocket", "Deno"];
    const present = ["setTimeout", "setInterval", "clearTimeout", "URL", "URLSearchParams", "TextEncoder", "atob"];
    const code = `return ${JSON.stringify([...absent, ...present])}.map((name) => [name, typeof globalThis[name]])`;
    expect(await returned(code)).toEqual([
      ...absent.map((name) => [name, "undefined"]),
      ...present.map((name) => [name, "function"]),
    ]);
    for (const name of ["fetch", "require", "process"]) {
      const { exitState, error } = await site.server.run(`return ${name}("node:fs")`);
      expect([exitState, error]).toEqual(["failed", expect.stringContaining(`${name}`)]);
    }
    expect((await site.server.run('return import("node:fs")')).exitState).toBe("failed");
  });

  it("P-120 takes a timer of any length and many at once (decisions: no bounds of their own)", async () => {
    const code = `const far = setTimeout(() => {}, 60_001); clearTimeout(far);
      let fired = 0;
      await new Promise((end) => { for (let n = 0; n < 100; n++) setTimeout(() => { if (++fired === 100) end() }, n % 7) });
      return fired`;
    expect(await returned(code)).toBe(100);
  });

  it("P-121 takes envConfig.limits to lower its memory, ignores what is none, and never raises it (decisions)", async () => {
    const fill = (mb: number): string => `const b = new Uint8Array(${mb} * 1024 * 1024).fill(1); return b.length`;
    const kept = { memoryMb: 64 };
    const run = async (mb: number, envConfig: object): Promise<string> =>
      (await site.server.run(fill(mb), { envConfig })).exitState;
    expect(await run(60, {})).toBe("success");
    expect(await run(60, { memoryLimitMb: 8 })).toBe("success");
    expect(await run(60, { limits: { memoryMb: 16 } })).toBe("failed");
    expect(await run(40, { limits: kept })).toBe("success");
    for (const memoryMb of ["8", null, -1, 0, [], {}]) expect(await run(60, { limits: { memoryMb } })).toBe("success");
    for (const limits of [7, "x", null, []]) expect(await run(60, { limits })).toBe("success");
    expect(await run(400, { limits: { memoryMb: 100_000 } })).toBe("failed");
    expect(await returned("return env", { envConfig: { limits: kept, own: 1 } })).toEqual({ limits: kept, own: 1 });
  });
});

describe("OpenAPI documents", () => {
  const toolIds = async (document: object): Promise<string[]> => {
    const answer = await site.server.post("/services", { id: newServiceId(), definition: document });
    expect(answer.status, answer.text).toBe(201);
    return (await bench.tools(answer.body.id)).map(([id]) => id);
  };
  const responses = { 200: { description: "ok" } };
  const document = (paths: object): object => ({ openapi: "3.0.3", info: { title: "T", version: "1" }, paths });

  it("P-123 an operation without an id gets one of its method and path (decisions: not 400)", async () => {
    const paths = { "/users/{id}": { get: { responses } }, "/pets": { get: { operationId: "listPets", responses } } };
    expect(await toolIds(document(paths))).toEqual(["get_users_by_id", "listPets"]);
  });

  it("P-124 of two ids that become the same, the second gets a suffix that lasts (decisions: not 400)", async () => {
    const paths = {
      "/a": { get: { operationId: "list.pets", responses } },
      "/b": { get: { operationId: "list-pets", responses } },
    };
    const ids = await toolIds(document(paths));
    expect(ids).toEqual(["list_pets", expect.stringMatching(/^list_pets_[0-9a-f]{6}$/)]);
    expect(await toolIds(document(paths))).toEqual(ids);
  });

  it("P-125 a document without operations is accepted and has no tools", async () => {
    for (const paths of [{}, { "/a": {} }, { "/a": { parameters: [] } }]) {
      expect(await toolIds(document(paths))).toEqual([]);
    }
  });

  it("P-126 two properties that refer to the same schema are both described and both checked", async () => {
    const address = { type: "object", properties: { zip: { type: "string" } }, required: ["zip"] };
    const reference = { $ref: "#/components/schemas/Address" };
    const schema = { type: "object", properties: { from: reference, to: reference } };
    const requestBody = { required: true, content: { "application/json": { schema } } };
    bench.target.respond = json({});
    const definition = {
      ...document({ "/a": { post: { operationId: "ship", requestBody, responses } } }),
      servers: [{ url: bench.target.origin }],
      components: { schemas: { Address: address } },
    };
    const id = await bench.install({ id: newServiceId(), definition });
    await bench.enable(id);
    const good = { zip: "1" };
    expect((await invoke(id, "ship", { body: { from: good, to: good } })).status).toBe(200);
    expect(told(await invoke(id, "ship", { body: { from: good, to: {} } }))).toEqual(refusedByUs);
    expect(told(await invoke(id, "ship", { body: { from: {}, to: good } }))).toEqual(refusedByUs);
    const docs = (await site.server.get(`/tools/${id}/ship/docs`)).text;
    expect(docs).toMatch(/from\??:/);
    expect(docs).toMatch(/to\??:/);
    expect(docs).toContain("zip");
  });
});

describe("answers of a target", () => {
  /** The same over REST and in a program. */
  async function results(id: string): Promise<unknown> {
    const answer = await invoke(id, "a");
    expect(answer.status, answer.text).toBe(200);
    expect(await returned(`const { headers, ...rest } = await services.${id}.a(); return rest`)).toEqual(
      Object.fromEntries(Object.entries(answer.body.result).filter(([name]) => name !== "headers")),
    );
    return answer.body.result;
  }

  it.each([
    [{ error: "E", code: "timeout", status: 504 }],
    [{ __error: true, message: "M", stack: "S" }],
    [{ ok: false, code: "not_found", message: "M" }],
    [JSON.parse('{"then": "T", "toJSON": "J", "constructor": "C", "hasOwnProperty": 1}')],
    [{ name: "Error", $error: { message: "M" }, type: "error" }],
    [[{ error: "E" }]],
    ["Error: text"],
    [null],
  ])("P-122 %j is returned as data", async (body) => {
    expect(await results(await calling({ a: {} }, json(body)))).toMatchObject({ status: 200, body });
  });

  it("P-122 a key named __proto__ is data, or refused: it is never a prototype", async () => {
    const respond: Respond = (_, response) =>
      void response
        .writeHead(200, { "content-type": "application/json" })
        .end('{"__proto__": {"polluted": true}, "a": 1}');
    const id = await calling({ a: {} }, respond);
    const code = `const { body } = await services.${id}.a(); return [body.a, body.polluted ?? null, ({}).polluted ?? null]`;
    expect(await returned(code)).toEqual([1, null, null]);
    expect((await invoke(id, "a")).text).toContain('"a":1');
  });

  it.each([400, 401, 404, 409, 418, 429, 500, 503])(
    "P-127 status %i with JSON is a result, not an error (status is a number)",
    async (status) => {
      const id = await calling({ a: {} }, json({ error: "nothing here" }, status));
      const result = await results(id);
      expect(result).toEqual({ status, headers: expect.any(Object), body: { error: "nothing here" } });
      expect((result as { headers: Record<string, string> }).headers["content-type"]).toBe("application/json");
    },
  );

  it("P-127 a redirect is a result, and is not followed", async () => {
    const id = await calling(
      { a: {} },
      (_, response) => void response.writeHead(302, { location: "/elsewhere" }).end(),
    );
    expect(await results(id)).toMatchObject({ status: 302, headers: { location: "/elsewhere" } });
    expect(bench.target.requests.map(({ path }) => path)).toEqual(["/a", "/a"]);
  });

  it.each([204, 205, 200])("P-128 status %i with no body has none in its result", async (status) => {
    const id = await calling({ a: {} }, (_, response) => void response.writeHead(status).end());
    const result = await results(id);
    expect(result).toEqual({ status, headers: expect.any(Object) });
    expect(result).not.toHaveProperty("body");
  });

  it("P-127 a target that cannot be reached, or cuts its answer, is a thrown Error: 502", async () => {
    const half: Respond = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 100 }).write("{");
      setTimeout(() => response.destroy(), 20);
    };
    for (const respond of [half, ((_, response) => void response.destroy()) satisfies Respond]) {
      const id = await calling({ a: {} }, respond);
      expect(told(await invoke(id, "a"))).toEqual([502, "upstream_failed"]);
      expect(await returned(caught(`services.${id}.a()`))).toEqual([true, "upstream_failed", 502, expect.any(String)]);
    }
    const nobody = await bench.install({ id: newServiceId(), definition: openApi("http://127.0.0.1:1", { a: {} }) });
    await bench.enable(nobody);
    expect(told(await invoke(nobody, "a"))).toEqual([502, "upstream_failed"]);
  });
});
