/**
 * What anybody may send to POST /mcp, on a gateway of its own with rows that are made up: what is wrong with the request as HTTP is
 * answered in the envelope, what is wrong with the message by a JSON-RPC error, and nothing takes the server down.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Failure } from "../../src/errors/failure.ts";
import { type Gateway, openGateway } from "../../src/gateway/gateway.ts";
import { mountMcp } from "../../src/gateway/mcp-route.ts";
import { bodyBytesMax, mcpCallsInFlightMax } from "../../src/limits.ts";
import { openMcpFace } from "../../src/mcp-face/mcp-face.ts";
import { openAuthentication, parseApiKeys } from "../../src/operations/authentication.ts";
import type { CallContext, Operation } from "../../src/operations/operation.ts";
import { parseRateLimits, RateLimits } from "../../src/operations/rate-limits.ts";
import type { Log, LogFields } from "../../src/ports/log.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { until } from "../until.ts";

const lines: { level: string; event: string; fields: LogFields | undefined }[] = [];
const log: Log = {
  debug: (event, _message, fields) => void lines.push({ level: "debug", event, fields }),
  info: (event, _message, fields) => void lines.push({ level: "info", event, fields }),
  warn: (event, _message, fields) => void lines.push({ level: "warn", event, fields }),
  error: (event, _message, fields) => void lines.push({ level: "error", event, fields }),
};

let gateway: Gateway;
/** Calls of getProcess that wait now, and the most there were at once. */
let waiting = 0;
let mostWaiting = 0;
let letGo = Promise.withResolvers<void>();

const rows: readonly Operation[] = [
  row("listTools", ["query", "serviceId", "limit", "cursor"], async () => ({ items: [], nextCursor: null })),
  row("getToolDocs", ["serviceId", "toolId"], async () => {
    throw new Error("A crash of ours, with SECRET in it");
  }),
  row("getEnvironmentDocs", [], async () => ({ docs: "# Docs" })),
  row("invokeTool", ["serviceId", "toolId", "parameters"], async (input) => ({ result: input })),
  row("createProcess", ["code", "ref", "timeoutMs"], async () => {
    throw new Failure("queue_full", "The run queue is full", {
      exhaustion: { limit: 1, remaining: 0, resetAt: 0, retryAfterSeconds: 7 },
    });
  }),
  row("getProcess", ["id", "wait"], async ({ id }, context) => {
    if (id === 1) await waitFor(context);
    return { process: { id, state: "idle" }, reason: null };
  }),
  row("killProcess", ["id"], async () => ({ process: {} })),
  row("getProcessOutput", ["id"], async () => ({ output: {} })),
  row("getProcessStdout", ["id"], async () => ({ stdout: "" })),
  row("getProcessStderr", ["id"], async () => ({ stderr: "" })),
];

type Run = (input: Record<string, unknown>, context: CallContext) => Promise<unknown>;

function row(name: string, fields: readonly string[], run: Run): Operation {
  const input = z.object(Object.fromEntries(fields.map((field) => [field, z.unknown().optional()])));
  return {
    name,
    summary: name,
    rpcService: "TestService",
    route: { method: "POST", path: `/${name}`, body: "fields", status: 200 },
    role: "agent",
    input: input as z.ZodType<unknown>,
    output: z.unknown(),
    run: run as Operation["run"],
  };
}

async function waitFor({ signal }: CallContext): Promise<void> {
  waiting += 1;
  mostWaiting = Math.max(mostWaiting, waiting);
  const gone = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => gone.resolve(), { once: true });
  await Promise.race([letGo.promise, gone.promise]);
  waiting -= 1;
}

beforeEach(async () => {
  lines.length = 0;
  waiting = 0;
  mostWaiting = 0;
  letGo = Promise.withResolvers();
});

afterEach(async () => {
  letGo.resolve();
  await gateway.close(0);
});

async function open({ keys = "", limits = "off" } = {}): Promise<void> {
  const overrides = parseRateLimits(limits);
  if (typeof overrides === "string") throw new Error(overrides);
  const rateLimits = overrides === null ? undefined : new RateLimits(overrides, systemClock);
  const face = openMcpFace({ operations: rows, rateLimits, clock: systemClock, log, version: "1.2.3" });
  gateway = await openGateway({
    operations: rows,
    authentication: openAuthentication(parseApiKeys(keys).keys, systemClock),
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    corsOrigins: ["https://agents.example.com"],
    rateLimits,
    clock: systemClock,
    log,
    readiness: { check: () => ({ ready: true }), onChange: () => () => undefined },
    mount: (app, { canAnswer }) => mountMcp(app, { answer: face.answer, canAnswer, log }),
  });
}

const usual = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function post(body: unknown, headers: Record<string, string | undefined> = {}, signal?: AbortSignal) {
  const sent = Object.entries({ ...usual, ...headers }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const response = await fetch(`http://127.0.0.1:${gateway.address.port}/mcp`, {
    method: "POST",
    headers: Object.fromEntries(sent),
    body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

const request = (method: string, params?: unknown, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, params });
const call = (name: string, args: unknown = {}, id: unknown = 1) =>
  request("tools/call", { name, arguments: args }, id);
const ping = request("ping");
const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("HTTP", () => {
  beforeEach(() => open());

  const refused: [string, unknown, Record<string, string | undefined>, number, string][] = [
    ["no Content-Type", JSON.stringify(ping), { "content-type": "" }, 415, "unsupported_media_type"],
    ["text", JSON.stringify(ping), { "content-type": "text/plain" }, 415, "unsupported_media_type"],
    ["a form", "a=1", { "content-type": "application/x-www-form-urlencoded" }, 415, "unsupported_media_type"],
    ["JSON in another name", "{}", { "content-type": "application/json-patch+json" }, 415, "unsupported_media_type"],
    ["a compressed body", "{}", { "content-encoding": "gzip" }, 415, "unsupported_media_type"],
    ["a body too large", `"${"x".repeat(bodyBytesMax)}"`, {}, 413, "too_large"],
    ["a foreign Origin", ping, { origin: "https://evil.example" }, 403, "forbidden"],
  ];
  it.each(refused)("refuses %s in the envelope", async (_what, body, headers, status, code) => {
    const answer = await post(body, headers);
    expect([answer.status, answer.body]).toEqual([status, { error: expect.any(String), code }]);
    expect(answer.headers.get("x-request-id")).toMatch(/./);
  });

  it.each(["GET", "DELETE", "PUT", "PATCH"])("answers %s with 405 and what is allowed", async (method) => {
    const response = await fetch(`http://127.0.0.1:${gateway.address.port}/mcp`, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "OPTIONS, POST"]);
    expect(await response.json()).toMatchObject({ code: "method_not_allowed" });
  });

  it("lets a browser of a listed origin in, with the headers that clients send", async () => {
    const origin = "https://agents.example.com";
    const response = await fetch(`http://127.0.0.1:${gateway.address.port}/mcp`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    expect(response.headers.get("access-control-allow-headers")).toContain("mcp-protocol-version");
    const answer = await post(ping, { origin });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
  });

  it("has no sessions: it gives no id, and looks at none", async () => {
    const answer = await post(ping, { "mcp-session-id": "made up" });
    expect([answer.status, answer.body, answer.headers.get("mcp-session-id")]).toEqual([
      200,
      { jsonrpc: "2.0", id: 1, result: {} },
      null,
    ]);
  });
});

describe("messages", () => {
  beforeEach(() => open());

  const faults: [string, unknown, Record<string, string>, number, number][] = [
    ["no JSON", "{", {}, 400, -32700],
    ["nothing", "", {}, 400, -32700],
    ["bytes that are no UTF-8", new Uint8Array([0x22, 0xff, 0x22]), {}, 400, -32700],
    ["nesting without end", deep(100_000), {}, 400, -32700],
    ["a prototype", '{"__proto__":{"a":1}}', {}, 400, -32700],
    ["null", "null", {}, 400, -32700],
    ["a number", "7", {}, 400, -32700],
    ["an empty object", {}, {}, 400, -32700],
    ["another jsonrpc", { ...ping, jsonrpc: "1.0" }, {}, 400, -32700],
    ["no jsonrpc", { id: 1, method: "ping" }, {}, 400, -32700],
    ["an id that is an object", { ...ping, id: {} }, {}, 400, -32700],
    ["a method that is a number", { ...ping, method: 7 }, {}, 400, -32700],
    ["a batch with one that is no message", [ping, 7], {}, 400, -32700],
    ["a batch too long", Array.from({ length: 101 }, (_, id) => ({ ...ping, id })), {}, 400, -32600],
    [
      "two initializations",
      [request("initialize", initialization()), request("initialize", initialization(), 2)],
      {},
      400,
      -32600,
    ],
    ["an unknown protocol version", ping, { "mcp-protocol-version": "1999-01-01" }, 400, -32000],
    ["an Accept without event streams", ping, { accept: "application/json" }, 406, -32000],
    ["an Accept of anything", ping, { accept: "*/*" }, 406, -32000],
    ["an unknown method", request("resources/list"), {}, 200, -32601],
    ["a method of Object", request("constructor"), {}, 200, -32601],
    ["an unknown tool", call("format_disk"), {}, 200, -32602],
    ["a tool of Object", call("toString"), {}, 200, -32602],
    ["no name of a tool", request("tools/call", {}), {}, 200, -32602],
    ["no params of a tool", request("tools/call"), {}, 200, -32602],
    ["arguments that are a list", call("search_tools", [1]), {}, 200, -32602],
    ["a name that is very long", call("x".repeat(1_000_000)), {}, 200, -32602],
  ];
  it.each(faults)("answers %s by an error of the protocol", async (_what, body, headers, status, code) => {
    const answer = await post(body, headers);
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(answer.body.error.message.length).toBeLessThan(1_000);
    expect(await post(ping)).toMatchObject({ status: 200 });
  });

  it("takes notifications and answers of clients without a word", async () => {
    for (const body of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
      { jsonrpc: "2.0", method: "notifications/nonsense" },
      { jsonrpc: "2.0", id: 5, result: {} },
    ]) {
      expect(await post(body)).toMatchObject({ status: 202, body: "" });
    }
  });

  it("answers every message of a batch, each for itself", async () => {
    const { status, body } = await post([ping, call("get_environment_docs", {}, 2), call("nothing", {}, "c")]);
    expect(status).toBe(200);
    const byId = Object.fromEntries(body.map((one: { id: string }) => [one.id, one]));
    expect(byId[1].result).toEqual({});
    expect(byId[2].result.content).toEqual([{ type: "text", text: "# Docs" }]);
    expect(byId.c.error.code).toBe(-32602);
  });

  it("hands on arguments as they are, and none that the tool does not have", async () => {
    const args = { serviceId: 1, toolId: null, parameters: { constructor: 1 }, toString: "x", role: "operator" };
    const { body } = await post(call("invoke_tool", args));
    expect(body.result.structuredContent.result).toEqual({
      serviceId: 1,
      toolId: null,
      parameters: { constructor: 1 },
    });
  });

  it("tells a crash of ours by a request id, and nothing of it", async () => {
    const answer = await post(call("get_tool_docs"), { "x-request-id": "the-request" });
    const { isError, content, structuredContent } = answer.body.result;
    expect([isError, structuredContent.code]).toEqual([true, "internal"]);
    expect(content[0].text).toContain("request id: the-request");
    expect(JSON.stringify(answer.body)).not.toContain("SECRET");
    expect(lines.filter(({ level }) => level === "error").map(({ event }) => event)).toEqual(["operation-crashed"]);
  });

  it("says after how long a full queue is worth another try", async () => {
    const { body } = await post(call("run_process", { code: "1" }));
    expect(body.result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "The run queue is full (code: queue_full)" }],
      structuredContent: { code: "queue_full", retryAfterSeconds: 7 },
    });
  });
});

describe("tools", () => {
  beforeEach(() => open());

  it("have names that every model provider takes, texts that say enough, and schemas that are objects", async () => {
    const { body } = await post(request("tools/list"));
    const { tools } = body.result;
    expect(tools.map(({ name }: { name: string }) => name).sort()).toEqual([
      "get_environment_docs",
      "get_process",
      "get_tool_docs",
      "invoke_tool",
      "kill_process",
      "run_process",
      "search_tools",
    ]);
    for (const { name, title, description, inputSchema } of tools) {
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(title).toMatch(/^[A-Z]/);
      expect(description).toMatch(/Answers[\s\S]*Example: \{/);
      expect(inputSchema).toMatchObject({ type: "object", properties: expect.any(Object) });
      const example = JSON.parse(/Example: (\{[\s\S]*\})$/.exec(description)?.[1] ?? "");
      expect(Object.keys(inputSchema.properties)).toEqual(expect.arrayContaining(Object.keys(example)));
      for (const field of Object.values<{ description?: string }>(inputSchema.properties)) {
        expect(field.description).toMatch(/./);
      }
    }
  });
});

describe("bounds", () => {
  it("hold a thousand calls at once, each answered", async () => {
    await open();
    const read = (id: number) => call("get_process", { id: 2 }, id);
    const alone = Array.from({ length: 100 }, (_, id) => post(read(id)));
    const together = Array.from({ length: 9 }, () => post(Array.from({ length: 100 }, (_, id) => read(id))));
    const answers = (await Promise.all([...alone, ...together])).flatMap(({ body }) => body);
    expect(answers.map(({ result }) => result?.structuredContent?.snapshot?.state)).toEqual(Array(1_000).fill("idle"));
  });

  it("refuse more calls in flight than there may be, and forget those whose client has gone", async () => {
    await open();
    const leave = new AbortController();
    const full = Array.from({ length: mcpCallsInFlightMax / 100 }, () => {
      const batch = Array.from({ length: 100 }, (_, id) => call("get_process", { id: 1, wait: 60 }, id));
      return post(batch, {}, leave.signal).catch(() => undefined);
    });
    await until(() => waiting === mcpCallsInFlightMax);
    const { body } = await post(call("search_tools"));
    expect(body.result.structuredContent).toMatchObject({ code: "overloaded", retryAfterSeconds: 1 });
    leave.abort();
    await Promise.all(full);
    await until(() => waiting === 0);
    expect((await post(call("search_tools"))).body.result.isError).toBeUndefined();
    const statuses = lines
      .filter(({ event }) => event === "http-request")
      .map(({ fields }) => (fields as { status?: number } | undefined)?.status);
    expect(statuses.filter((status) => status === 499)).toHaveLength(full.length);
    expect(mostWaiting).toBe(mcpCallsInFlightMax);
  });

  it("count the calls of one key in the windows of their operations, and posts in one of their own", async () => {
    await open({ keys: "a:agent:key-a,b:agent:key-b", limits: "POST /killProcess=2/60s; POST /mcp=4/60s" });
    const kill = (key: string) => post(call("kill_process", { id: 1 }), { authorization: `Bearer ${key}` });
    const codes = [];
    for (const key of ["key-a", "key-a", "key-a", "key-b"]) {
      codes.push((await kill(key)).body.result.structuredContent.code);
    }
    expect(codes).toEqual([undefined, undefined, "rate_limit_exceeded", undefined]);
    const told = lines.filter(({ event }) => event === "request-refused").at(-1);
    expect(told?.fields).toMatchObject({ caller: "a", request: "mcp kill_process", limit: "POST /killProcess" });
    await kill("key-a");
    const fifth = await kill("key-a");
    expect(fifth).toMatchObject({
      status: 429,
      body: { error: "rate_limit_exceeded", retryAfter: expect.any(Number) },
    });
    expect(fifth.headers.get("x-ratelimit-remaining")).toBe("0");
  });

  it("end with the gateway: a client that waits is not waited for longer than the limit", async () => {
    await open();
    const pending = post(call("get_process", { id: 1, wait: 60 })).then(
      ({ status }) => status,
      () => "closed",
    );
    await until(() => waiting === 1);
    const before = performance.now();
    await gateway.close(200);
    expect(await pending).toBe("closed");
    expect(performance.now() - before).toBeLessThan(20_000);
  });
});

function initialization() {
  return { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
}
