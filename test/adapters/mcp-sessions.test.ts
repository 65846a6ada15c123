/** Sessions over HTTP: what counts as lost, which calls are made again, and that none is left open at the server. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { planReference } from "./adapter-bench.ts";
import { type McpBench, openMcpBench } from "./mcp-bench.ts";
import { openScriptedServer, type Script, type ScriptedServer, send, serverInfo } from "./mcp-scripted-server.ts";

let bench: McpBench;
let server: ScriptedServer;
beforeAll(async () => {
  [bench, server] = await Promise.all([openMcpBench(), openScriptedServer()]);
});
afterAll(async () => {
  await Promise.all([bench.close(), server.close()]);
});

const tools = [{ name: "a", inputSchema: { type: "object" } }];
const handshake = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
let opened: string[] = [];
let unknown: Set<string | undefined>;
beforeEach(() => {
  opened = [];
  unknown = new Set();
  server.messages.length = 0;
  server.ended.length = 0;
});

/** Keeps sessions; `refusal` is its answer in one that is in `unknown`. */
const keeping =
  (refusal: number, script: Script = () => ({ content: [] })): Script =>
  (message, response) => {
    const { method, id, session } = message;
    if (method === "initialize") {
      opened.push(`s${opened.length + 1}`);
      const answer = JSON.stringify({ jsonrpc: "2.0", id, result: handshake });
      return send(response, 200, "application/json", answer, { "mcp-session-id": opened.at(-1) });
    }
    if (unknown.has(session)) return send(response, refusal, "text/plain", "No such session");
    return method === "tools/list" ? { tools } : script(message, response);
  };
const ready = async (script: Script) => {
  server.script = script;
  return bench.ready({ url: server.url, tools });
};
const calls = () => server.messages.filter(({ method }) => method === "tools/call").map(({ session }) => session);

describe("a session that the server does not know any more", () => {
  test("and says so with 404 is replaced, and the call is made again in the new one", async () => {
    const { call } = await ready(keeping(404));
    unknown.add("s1");
    expect(await call("a")).toMatchObject({ isError: false });
    expect(calls()).toEqual(["s1", "s2"]);
    await expect.poll(() => server.ended).toEqual(["s1"]);
  });

  test("and says so with 400 is replaced, but the call is not made again: it may have been made", async () => {
    const { call } = await ready(keeping(400));
    unknown.add("s1");
    await expect(call("a")).rejects.toMatchObject({
      message: expect.stringMatching(/status 400 \("No such session"\)/),
    });
    expect(calls()).toEqual(["s1"]);
    await expect.poll(() => server.ended).toEqual(["s1"]);
    expect(await call("a")).toMatchObject({ isError: false });
    expect(calls()).toEqual(["s1", "s2"]);
    expect(opened).toEqual(["s1", "s2"]);
  });

  test("is replaced once for all calls that miss it", async () => {
    const { call } = await ready(keeping(404));
    unknown.add("s1");
    await Promise.all(Array.from({ length: 20 }, () => call("a")));
    expect(opened).toEqual(["s1", "s2"]);
    await expect.poll(() => server.ended).toEqual(["s1"]);
  });

  test("is ended when the calls that began in it are over", async () => {
    let release = () => {};
    const held = keeping(404, ({ id, params }, response) => {
      if (JSON.stringify(params).includes("hold") && server.messages.length > 0) {
        release = () => send(response, 200, "application/json", JSON.stringify({ jsonrpc: "2.0", id, result: {} }));
        return undefined;
      }
      return { content: [] };
    });
    const { call } = await ready(held);
    const holding = call("a", { hold: true });
    await expect.poll(calls).toHaveLength(1);
    unknown.add("s1");
    expect(await call("a")).toMatchObject({ isError: false });
    expect(server.ended).toEqual([]);
    release();
    expect(await holding).toMatchObject({ isError: false });
    await expect.poll(() => server.ended).toEqual(["s1"]);
  });

  test("is replaced once for a call, not for ever", async () => {
    const { call } = await ready(keeping(404));
    for (const session of ["s1", "s2", "s3", "s4"]) unknown.add(session);
    await expect(call("a")).rejects.toMatchObject({ kind: "upstream_failed", message: expect.stringMatching(/404/) });
    expect(calls()).toEqual(["s1", "s2"]);
    expect(opened).toEqual(["s1", "s2"]);
  });
});

describe("a call that is refused in a session that the server knows", () => {
  test.each([400, 404, 405, 409, 500])("with %i is not made again, and opens no other session", async (status) => {
    const { call } = await ready(keeping(404, (_, response) => send(response, status, "text/plain", "I dislike it")));
    for (let at = 0; at < 3; at += 1) {
      await expect(call("a")).rejects.toMatchObject({
        kind: "upstream_failed",
        message: expect.stringMatching(new RegExp(`status ${status} \\("I dislike it"\\)$`)),
      });
    }
    expect(calls()).toEqual(["s1", "s1", "s1"]);
    expect(opened).toEqual(["s1"]);
    expect(server.ended).toEqual([]);
  });
});

describe("nothing is left open at the server", () => {
  test("by a handshake that fails after the session was opened", async () => {
    server.script = ({ id }, response) => {
      const result = { ...handshake, protocolVersion: "1999-01-01" };
      const answer = JSON.stringify({ jsonrpc: "2.0", id, result });
      return send(response, 200, "application/json", answer, { "mcp-session-id": "odd" });
    };
    await expect(bench.ready({ url: server.url, tools })).rejects.toMatchObject({ kind: "upstream_failed" });
    expect(server.ended).toEqual(["odd"]);
  });

  test("by a server that refuses all that comes after the handshake", async () => {
    const { call } = await ready(keeping(400));
    for (let at = 1; at < 9; at += 1) unknown.add(`s${at}`);
    for (let at = 0; at < 5; at += 1) await expect(call("a")).rejects.toMatchObject({ kind: "upstream_failed" });
    await expect.poll(() => server.ended.toSorted()).toEqual(["s1", "s2", "s3", "s4", "s5"]);
    expect(calls()).toEqual(["s1", "s2", "s3", "s4", "s5"]);
  });
});

describe("an adapter that closes", () => {
  let own: McpBench;
  beforeEach(async () => {
    own = await openMcpBench();
    server.script = keeping(404);
  });
  afterEach(() => own.close());
  const plan = async () => (await bench.adapter.define({ text: JSON.stringify({ url: server.url, tools }) })).plan;
  const hydrate = (reference: ReturnType<typeof planReference>) =>
    own.adapter.hydrate({ serviceId: "s", plan: reference, config: {}, secrets: {} });
  const unavailable = { kind: "unavailable" };

  test("ends the sessions of its services before it has closed", async () => {
    await hydrate(planReference(await plan()));
    await own.close();
    expect(server.ended).toEqual(opened);
    expect(opened).toHaveLength(1);
  });

  test("makes no service ready that had begun, and leaves no session of it", async () => {
    const slow = keeping(404);
    server.script = (message, response) => {
      if (message.method !== "initialize") return slow(message, response);
      setTimeout(() => slow(message, response), 100);
    };
    const refused = expect(hydrate(planReference(await plan()))).rejects.toMatchObject(unavailable);
    await expect.poll(() => server.messages.length).toBe(1);
    await own.close();
    await refused;
  });

  test("makes no service ready whose plan is still loading", async () => {
    const text = await plan();
    const loaded = Promise.withResolvers<string>();
    const hydrated = own.adapter.hydrate({
      serviceId: "s",
      plan: { hash: "slow", load: () => loaded.promise },
      config: {},
      secrets: {},
    });
    const refused = expect(hydrated).rejects.toMatchObject(unavailable);
    await own.close();
    loaded.resolve(text);
    await refused;
    expect(server.messages).toEqual([]);
  });

  test("makes none ready afterwards, and asks nobody for tools", async () => {
    const reference = planReference(await plan());
    await own.close();
    await expect(hydrate(reference)).rejects.toMatchObject(unavailable);
    await expect(own.discover({ url: server.url })).rejects.toMatchObject(unavailable);
    expect(server.messages).toEqual([]);
  });

  test("stops asking for tools, and ends that session", async () => {
    const slow = keeping(404);
    server.script = (message, response) => (message.method === "tools/list" ? undefined : slow(message, response));
    const refused = expect(own.discover({ url: server.url })).rejects.toMatchObject({ kind: "cancelled" });
    await expect.poll(() => server.messages.map(({ method }) => method)).toContain("tools/list");
    await own.close();
    await refused;
    // Not always the first: a session that a test before asked for may have been opened since.
    const asked = server.messages.find(({ method }) => method === "tools/list")?.session;
    await expect.poll(() => server.ended).toEqual([asked]);
  });
});
