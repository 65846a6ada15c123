/** MCP servers over HTTP made to hurt: each costs a clear error with a code, and nothing else. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mcpConnectMs, mcpDiscoveryMs, mcpPagesMax, mcpToolsMax } from "../../src/limits.ts";
import { measureLongestTurn } from "./adapter-bench.ts";
import { hurriedClock, type McpBench, openMcpBench } from "./mcp-bench.ts";
import {
  afterHandshake,
  answer,
  openScriptedServer,
  type Script,
  type ScriptedServer,
  send,
  serverInfo,
  withTools,
} from "./mcp-scripted-server.ts";

let bench: McpBench;
let server: ScriptedServer;
beforeAll(async () => {
  [bench, server] = await Promise.all([openMcpBench(), openScriptedServer()]);
});
afterAll(async () => {
  await Promise.all([bench.close(), server.close()]);
});
beforeEach(() => {
  server.messages.length = 0;
});

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });
const lists = (script: Script) => afterHandshake((message, response) => script(message, response));
/** A result as text, for what could not be written otherwise. */
const raw =
  (result: string): Script =>
  ({ id }, response) =>
    send(response, 200, "application/json", `{"jsonrpc":"2.0","id":${id},"result":${result}}`);
const hangs: Script = () => undefined;

describe("a server that cannot be asked for its tools", () => {
  const endless = (next: (cursor: string | undefined) => string) =>
    lists(({ params }) => ({ tools: [], nextCursor: next(params.cursor) }));
  test.each<readonly [string, Script, RegExp]>([
    [
      "pages for ever",
      endless((cursor) => `${Number(cursor ?? 0) + 1}`),
      new RegExp(`more than ${mcpPagesMax} pages$`),
    ],
    [
      "repeats a cursor",
      endless((cursor) => (cursor === "a" ? "b" : "a")),
      /comes back to a page that was there before$/,
    ],
    [
      "has too many tools",
      lists(() => ({ tools: Array.from({ length: mcpToolsMax + 1 }, (_, at) => tool(`t${at}`)) })),
      new RegExp(`more than ${mcpToolsMax} tools$`),
    ],
    ["has a page of 20 MB", withTools([tool("a", { description: "x".repeat(20_000_000) })]), /answer is too large$/],
    [
      "has large schemas on many pages",
      lists(({ params }) => ({
        tools: [tool(`t${params.cursor ?? ""}`, { inputSchema: { description: "x".repeat(3_000_000) } })],
        nextCursor: `${Number(params.cursor ?? 0) + 1}`,
      })),
      /their list has more than \d+ characters$/,
    ],
    [
      "nests a schema ten thousand deep",
      lists(raw(`{"tools":[{"name":"a","inputSchema":${deepText(10_000)}}]}`)),
      /nests deeper than/,
    ],
    ["gives tools that are no list", lists(() => ({ tools: {} })), /answer is not of the protocol's form$/],
    ["has no tools at all", lists(({ id }, response) => answer(response, methodNotFound(id))), /it offers none$/],
    [
      "answers with a page",
      (_, response) => send(response, 200, "text/html", "<p>Hello"),
      /Unexpected content type: text\/html/,
    ],
    ["answers with no JSON", (_, response) => send(response, 200, "application/json", "{oops"), /is not valid JSON$/],
    [
      "answers with JSON of another kind",
      (_, response) => send(response, 200, "application/json", "[1]"),
      /protocol's form$/,
    ],
    ["answers with nothing", (_, response) => void response.writeHead(202).end(), /ended its answer without a result$/],
    [
      "answers another question",
      (_, response) => answer(response, { jsonrpc: "2.0", id: 77, result: {} }),
      /ended its answer without a result$/,
    ],
    [
      "ends its stream without an answer",
      (_, response) => send(response, 200, "text/event-stream", "id: 1\nretry: 10\ndata:\n\n"),
      /ended its answer without a result$/,
    ],
    [
      "ends its stream in the middle of an event",
      ({ id }, response) => send(response, 200, "text/event-stream", `data: {"jsonrpc":"2.0","id":${id},"result":{}}`),
      /ended its answer without a result$/,
    ],
    [
      "speaks a version of its own",
      () => ({ protocolVersion: "1999-01-01", capabilities: {}, serverInfo }),
      /protocol version is not supported: 1999-01-01$/,
    ],
    ["does not say which version", () => ({ capabilities: {}, serverInfo }), /answer is not of the protocol's form$/],
    [
      "refuses sessions",
      (_, response) => send(response, 400, "application/json", '{"error":{"message":"No sessions"}}'),
      /status 400 \("No sessions"\)$/,
    ],
    [
      "redirects",
      (_, response) => send(response, 307, "text/plain", "", { location: "/elsewhere" }),
      /status 307, a redirect, which is not followed: use the URL it leads to$/,
    ],
    ["is not there", (_, response) => void response.destroy(), /^No connection to 127/],
    [
      "wants credentials",
      (_, response) => send(response, 403, "text/plain", "No"),
      /status 403 \("No"\); it wants credentials: install/,
    ],
    ["fails", (_, response) => send(response, 500, "text/html", "<b>"), /answered with status 500$/],
    [
      "gives a session id that is no header",
      ({ id }, response) =>
        send(response, 200, "application/json", JSON.stringify({ jsonrpc: "2.0", id, result: {} }), {
          "mcp-session-id": "a b\u00e4",
        }),
      /session id that cannot be sent back$/,
    ],
  ])("%s", async (_, script, message) => {
    server.script = script;
    const turned = measureLongestTurn();
    await expect(bench.discover({ url: server.url })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
    expect(turned()).toBeLessThan(3_000);
    expect(server.messages.length).toBeLessThan(mcpPagesMax + 10);
  });

  test("a caller who leaves while it hangs is answered at once", async () => {
    server.script = hangs;
    const stop = new AbortController();
    const asked = bench.adapter.discover!({ url: server.url, config: {}, secrets: {}, signal: stop.signal });
    await expect.poll(() => server.messages.length).toBe(1);
    stop.abort();
    await expect(asked).rejects.toMatchObject({ kind: "cancelled" });
  });

  test.each(["ftp://a/b", "nowhere", "http://user:pass@a/", "file:///etc/passwd"])("%s is no address", async (url) => {
    await expect(bench.discover({ url })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.not.stringContaining("user:pass"),
    });
  });

  test("neither a url nor a definition is a clear error", async () => {
    await expect(bench.discover({})).rejects.toMatchObject({ kind: "invalid_request" });
  });
});

describe("documents that are refused", () => {
  const withTool = (...tools: unknown[]) => ({ url: "http://a/", tools });
  test.each<readonly [string, unknown, RegExp]>([
    ["nothing", "", /is not valid JSON$/],
    ["no JSON", "<p>", /is not valid JSON$/],
    ["a list", [], /is not a JSON object$/],
    ["null", "null", /is not a JSON object$/],
    ["no address", {}, /neither "url" nor "command"$/],
    ["two addresses", { url: "http://a/", command: "b" }, /both "url" and "command"$/],
    ["a relative command", { command: "bin/x" }, /must be absolute when it is a path$/],
    ["an empty command", { command: "" }, /must be the name or path of an executable$/],
    ["arguments that are no texts", { command: "x", args: [1] }, /"args.0"/],
    ["too many arguments", { command: "x", args: Array(300).fill("a") }, /at most 256 arguments$/],
    ["a variable that loads code", { command: "x", env: { LD_PRELOAD: "/tmp/a.so" } }, /may not set "LD_PRELOAD"$/],
    ["another one", { command: "x", env: { node_options: "--require=/tmp/a" } }, /may not set "node_options"$/],
    ["a variable without a name", { command: "x", env: { "A=B": "c" } }, /holds a name that is none$/],
    ["a repeated name", withTool(tool("a"), tool("b"), tool("a")), /lists tool "a" more than once$/],
    ["names with one id", withTool(tool("a b"), tool("a:b")), /tools "a b" and "a:b" would have the same id "a_b"$/],
    ["an empty name", withTool(tool("")), /the name of a tool has 0 characters/],
    ["a name of ten thousand characters", withTool(tool("x".repeat(10_000))), /has 10000 characters/],
    ["a tool without a name", withTool({ inputSchema: {} }), /its "tools.0.name"/],
    ["a tool that is none", withTool(7), /its "tools.0"/],
    [
      "a schema that is none",
      withTool(tool("a", { inputSchema: [] })),
      /input schema of tool "a": the schema is neither/,
    ],
    [
      "a schema too deep",
      withTool(tool("a", { inputSchema: deep(300) })),
      /input schema of tool "a": the schema nests too deep$/,
    ],
    [
      "an output schema too deep",
      withTool(tool("a", { outputSchema: deep(300) })),
      /output schema of tool "a": the schema nests/,
    ],
    ["a schema that doubles", withTool(tool("a", { inputSchema: doubling() })), /references are followed$/],
    [
      "too many tools",
      withTool(...Array.from({ length: mcpToolsMax + 1 }, (_, at) => tool(`t${at}`))),
      /more than 10000 tools$/,
    ],
    ["too many characters", { url: "http://a/", x: "x".repeat(20_000_000) }, /is larger than \d+ characters$/],
  ])("%s", async (_, document, message) => {
    const text = typeof document === "string" ? document : JSON.stringify(document);
    await expect(bench.adapter.define({ text })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(message),
    });
  });
});

describe("what takes for ever is ended", () => {
  let hurried: McpBench;
  beforeAll(async () => {
    hurried = await openMcpBench({ clock: hurriedClock });
  });
  afterAll(() => hurried.close());

  test("a hang at the handshake ends discovery and hydration", async () => {
    server.script = hangs;
    await expect(hurried.discover({ url: server.url })).rejects.toMatchObject({
      kind: "timeout",
      message: `MCP server at "${server.url}" did not say within ${mcpDiscoveryMs} ms which tools it has`,
    });
    await expect(hurried.ready({ url: server.url })).rejects.toMatchObject({
      kind: "timeout",
      message: `Cannot connect: MCP server at "${server.url}" did not answer within ${mcpConnectMs} ms`,
    });
  });

  test("a hang at the list of tools ends discovery", async () => {
    server.script = lists(hangs);
    await expect(hurried.discover({ url: server.url })).rejects.toMatchObject({ kind: "timeout" });
  });
});

describe("documents that are read all the same", () => {
  test("references that lead nowhere are looked for once, not everywhere for each", async () => {
    const parts = Array.from({ length: 20_000 }, (_, at) => ({ $ref: `#a${at}` }));
    const text = JSON.stringify({ url: "http://a/", tools: [tool("a", { inputSchema: { anyOf: parts } })] });
    const turned = measureLongestTurn();
    const { tools } = await bench.adapter.define({ text });
    expect(tools.map(({ id }) => id)).toEqual(["a"]);
    expect(turned()).toBeLessThan(1_000);
  });

  test("names, titles and descriptions are kept within bounds", async () => {
    const { tools } = await bench.adapter.define({
      text: JSON.stringify({
        url: "http://a/",
        tools: [
          tool("files/read.all-1", { title: null, description: "x".repeat(1_000_000) }),
          tool("a:b", { annotations: { title: "Shown" } }),
          tool("constructor", { inputSchema: { properties: { a: {}, b: {} } } }),
          { name: "bare" },
        ],
      }),
    });
    expect(tools.map(({ id, name }) => [id, name])).toEqual([
      ["files/read.all-1", "files/read.all-1"],
      ["a_b", "Shown"],
      ["constructor", "constructor"],
      ["bare", "bare"],
    ]);
    expect(tools[0]!.description.length).toBeLessThan(20_000);
    expect(tools[2]!.parameterNames).toEqual(["a", "b"]);
  });

  test("what the protocol does not allow in a name is replaced in the id, and the server hears its own name", async () => {
    server.script = withTools([tool("a:b")], ({ params }) => ({ content: [{ type: "text", text: params.name }] }));
    const { call } = await bench.ready(await bench.discover({ url: server.url }));
    expect(await call("a_b")).toMatchObject({ content: [{ text: "a:b" }] });
  });

  test("schemas are described as given, with references that still hold", async () => {
    const outputSchema = {
      $id: "https://example.com/x",
      type: "object",
      properties: { next: { $ref: "#" }, kind: { $ref: "#/$defs/kind" }, same: { $ref: "#/properties/kind" } },
      $defs: { kind: { enum: ["a"] } },
    };
    const { definition } = await bench.ready({ url: server.url, tools: [tool("a", { outputSchema }), tool("b")] });
    const plan = { hash: "described", load: async () => definition.plan };
    expect(await bench.adapter.describe(plan, "a")).toMatchObject({
      inputSchema: { type: "object" },
      outputSchema: {
        properties: {
          structuredContent: {
            properties: {
              next: { $ref: "#/properties/structuredContent" },
              kind: { $ref: "#/$defs/kind" },
              same: { $ref: "#/properties/structuredContent/properties/kind" },
            },
          },
        },
        required: ["content", "isError"],
        $defs: { kind: { enum: ["a"] } },
      },
    });
    expect(await bench.adapter.describe(plan, "b")).not.toHaveProperty("outputSchema.properties.structuredContent");
    await expect(bench.adapter.describe(plan, "toString")).rejects.toMatchObject({ kind: "not_found" });
  });
});

describe("calls that go wrong", () => {
  const ready = async (script: Script, more: object = {}) => {
    server.script = withTools([tool("a", more)], script);
    return bench.ready(await bench.discover({ url: server.url }));
  };
  const error = (code: number, message: string): Script => {
    return ({ id }, response) => answer(response, { jsonrpc: "2.0", id, error: { code, message } });
  };

  test.each<readonly [string, Script, string, RegExp]>([
    [
      "parameters the server refuses",
      error(-32602, "a is bad"),
      "invalid_request",
      /^Tool "a" failed: .*-32602 \("a is bad"\)$/,
    ],
    ["an error inside", error(-32603, "oops"), "upstream_failed", /-32603 \("oops"\)$/],
    ["a way to log in", error(-32042, "open this"), "upstream_failed", /-32042/],
    ["a lost connection it claims", error(-32000, "gone"), "upstream_failed", /-32000 \("gone"\)$/],
    ["words without end", error(-32603, "x".repeat(1_000_000)), "upstream_failed", /^.{100,800}$/],
    ["content that is no list", () => ({ content: "x" }), "upstream_failed", /not of the protocol's form$/],
    [
      "content ten thousand deep",
      raw(`{"content":[${deepText(10_000)}]}`),
      "upstream_failed",
      /nested deeper than \d+ levels$/,
    ],
    [
      "a status",
      (_, response) => send(response, 503, "text/plain", "busy"),
      "upstream_failed",
      /status 503 \("busy"\)$/,
    ],
    ["a cut connection", (_, response) => void response.destroy(), "upstream_failed", /^No connection to/],
    ["no answer", (_, response) => void response.writeHead(202).end(), "upstream_failed", /without a result$/],
  ])("%s", async (_, script, kind, message) => {
    const { call } = await ready(script);
    await expect(call("a")).rejects.toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  test("a call that hangs times out", async () => {
    const { call } = await ready(hangs);
    await expect(call("a", {}, { timeoutMs: 200 })).rejects.toMatchObject({ kind: "timeout" });
  });

  test("the time limit of the configuration counts as well", async () => {
    server.script = withTools([tool("a")], hangs);
    const { call } = await bench.ready(await bench.discover({ url: server.url }), { config: { timeoutMs: 150 } });
    await expect(call("a")).rejects.toMatchObject({ message: 'Tool "a" did not answer within 150 ms' });
  });

  test("a pattern that backtracks for ever is ended away from the server", async () => {
    const inputSchema = { properties: { x: { type: "string", pattern: "^(\\w+\\s?)*\\1$" } } };
    const { call } = await ready(() => ({ content: [] }), { inputSchema });
    const turned = measureLongestTurn();
    await expect(call("a", { x: `${"aaaaaaaaaaaaaaaa ".repeat(4)}!` })).rejects.toMatchObject({ kind: "timeout" });
    expect(turned()).toBeLessThan(1_000);
    expect(await call("a", { x: "aa" })).toMatchObject({ isError: false });
  });

  test("a schema that is no JSON Schema refuses the calls of its tool only", async () => {
    server.script = withTools([tool("a", { inputSchema: { type: "text" } }), tool("b")]);
    const { call } = await bench.ready(await bench.discover({ url: server.url }));
    await expect(call("a")).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(/malformed/),
    });
    expect(await call("b")).toMatchObject({ isError: false });
  });

  test("parameters that are no object are refused, whatever the schema says", async () => {
    const { call } = await ready(() => ({ content: [] }), { inputSchema: true });
    await expect(call("a", [1])).rejects.toMatchObject({ message: 'Parameters of tool "a" must be an object' });
  });

  test("a server that cannot be reached fails the hydration, naming it", async () => {
    server.script = (_, response) => send(response, 502, "text/plain", "");
    await expect(bench.ready({ url: server.url })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: `Cannot connect: MCP server at "${server.url}" answered with status 502`,
    });
    await expect(bench.ready({ url: "http://127.0.0.1:1/" })).rejects.toMatchObject({ kind: "upstream_failed" });
  });
});

function deepText(levels: number): string {
  return `${'{"not":'.repeat(levels)}true${"}".repeat(levels)}`;
}

function deep(levels: number): unknown {
  return JSON.parse(deepText(levels));
}

function doubling(): object {
  const halves = Array.from({ length: 30 }, (_, at) => [
    `d${at}`,
    { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
  ]);
  return { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(halves), d30: true } };
}

function methodNotFound(id: number | undefined): object {
  return { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
}
