/** The official SDK's server over streamable HTTP, in each of its four ways to answer: tools found, called, cancelled, lost and found again. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type McpBench, openMcpBench } from "./mcp-bench.ts";
import { openMcpServer, type TestMcpServer } from "./mcp-server.ts";

let bench: McpBench;
let server: TestMcpServer;
beforeAll(async () => {
  bench = await openMcpBench();
});
afterAll(() => bench.close());

async function installed(settings: Parameters<McpBench["ready"]>[1] = {}) {
  return bench.ready(await bench.discover({ url: server.url }), settings);
}

describe.each([
  { sessions: false, json: true },
  { sessions: false, json: false },
  { sessions: true, json: true },
  { sessions: true, json: false },
])("a server with sessions: $sessions, answering in JSON: $json", (options) => {
  beforeEach(async () => {
    server = await openMcpServer(options);
  });
  afterEach(() => server.close());

  test("its tools are discovered as they are", async () => {
    const { definition } = await installed();
    expect(definition).toMatchObject({
      title: "Calculator",
      name: "Calculator",
      summary: "Adds numbers.",
      description: "Adds numbers. And more.",
      version: "2.1.0",
    });
    expect(definition.tools.map(({ id }) => id)).toEqual([
      "add",
      "fail",
      "files_read.all-1",
      "big",
      "progress",
      "wait",
    ]);
    expect(definition.tools[0]).toEqual({
      id: "add",
      name: "Add",
      summary: "Adds two numbers.",
      description: "Adds two numbers. Slowly.",
      parameterNames: ["a", "b"],
    });
  });

  test("a tool is called and gives content, structured content and whether it failed", async () => {
    const { call } = await installed();
    expect(await call("add", { a: 1, b: 2 })).toEqual({
      content: [{ type: "text", text: "3" }],
      structuredContent: { sum: 3 },
      isError: false,
    });
    expect(await call("files_read.all-1", { path: "/ü" })).toMatchObject({
      content: [{ text: "/ü" }, { type: "image", data: "AAAA" }],
    });
  });

  test("an error of the tool is a result", async () => {
    const { call } = await installed();
    expect(await call("fail")).toEqual({ content: [{ type: "text", text: "no luck today" }], isError: true });
  });

  test("messages sent in the middle of a call do not disturb it", async () => {
    const { call } = await installed();
    expect(await call("progress")).toMatchObject({ content: [{ text: "done" }] });
  });

  test("calls run at the same time", async () => {
    const { call } = await installed();
    const started = performance.now();
    const waits = Array.from({ length: 20 }, () => call("wait", { ms: 300 }));
    expect(await Promise.all(waits)).toHaveLength(20);
    // One after another they would take six seconds.
    expect(performance.now() - started).toBeLessThan(4_000);
  });

  test("a call that takes too long ends, and the server is told", async () => {
    const { call } = await installed();
    await expect(call("wait", { ms: 60_000 }, { timeoutMs: 300 })).rejects.toMatchObject({
      kind: "timeout",
      message: 'Tool "wait" did not answer within 300 ms',
    });
    await expect.poll(() => server.requests.at(-1)?.message).toBe("notifications/cancelled");
  });

  test("a caller who leaves is answered at once, and the server is told", async () => {
    const { call } = await installed();
    const stop = new AbortController();
    const left = call("wait", { ms: 60_000 }, { signal: stop.signal });
    await expect.poll(() => server.seen.begun).toBe(1);
    stop.abort();
    await expect(left).rejects.toMatchObject({ kind: "cancelled", message: 'Call of tool "wait" was cancelled' });
    await expect.poll(() => server.requests.at(-1)?.message).toBe("notifications/cancelled");
    if (options.sessions) await expect.poll(() => server.seen.cancelled).toBe(1);
  });

  test("an answer larger than allowed is refused, and the next call is served", async () => {
    const { call } = await installed();
    await expect(call("big", { bytes: 50 * 1024 * 1024 })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: 'Tool "big" failed: The answer is too large',
    });
    expect(await call("big", { bytes: 1_000_000 })).toMatchObject({ isError: false });
  });

  test("parameters that do not fit never reach the server", async () => {
    const { call } = await installed();
    const before = server.requests.length;
    await expect(call("add", { a: "1" })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(
        /^Parameters of tool "add" do not fit: .*must have property "b"; \/a must be number$/,
      ),
    });
    expect(server.requests).toHaveLength(before);
  });

  test("a tool the server no longer has is a failure that says to sync", async () => {
    const document = JSON.parse(await bench.discover({ url: server.url }));
    document.tools.push({ name: "old", inputSchema: { type: "object" } });
    const { call } = await bench.ready(document);
    await expect(call("old")).rejects.toMatchObject({
      kind: "upstream_failed",
      message: 'The MCP server has no tool "old" any more: it has changed its tools; sync the service to get them',
    });
    await expect(call("never")).rejects.toMatchObject({ kind: "not_found" });
  });

  test("the stream between answers is not asked for, and no request lacks the protocol's version", async () => {
    const { call } = await installed();
    await call("add", { a: 1, b: 2 });
    expect(server.requests.filter(({ method }) => method === "GET")).toEqual([]);
    const later = server.requests.filter(({ message }) => message === "tools/call");
    expect(later.map(({ headers }) => headers["mcp-protocol-version"])).toEqual(["2025-11-25"]);
  });
});

describe("sessions", () => {
  beforeEach(async () => {
    server = await openMcpServer({ sessions: true, json: true });
  });
  afterEach(() => server.close());
  const count = (message: string) => server.requests.filter((request) => request.message === message).length;

  test("one session serves all calls of a service and is ended with it", async () => {
    const { call, service } = await installed();
    const before = count("initialize");
    await Promise.all([call("add", { a: 1, b: 2 }), call("add", { a: 1, b: 2 })]);
    expect(count("initialize")).toBe(before);
    const deletes = () => server.requests.filter(({ method }) => method === "DELETE").length;
    await expect.poll(deletes).toBe(1);
    service.close?.();
    await expect.poll(deletes).toBe(2);
    expect(count("notifications/cancelled")).toBe(0);
    await expect(call("add", { a: 1, b: 2 })).rejects.toMatchObject({ kind: "unavailable" });
  });

  test("closing lets a call that has begun end", async () => {
    const { call, service } = await installed();
    const running = call("wait", { ms: 300 });
    await expect.poll(() => server.seen.begun).toBe(1);
    service.close?.();
    expect(await running).toMatchObject({ content: [{ text: "waited" }] });
  });

  test("a session the server has lost is made anew, once for all calls that miss it", async () => {
    const { call } = await installed();
    const before = count("initialize");
    server.forgetSessions();
    const sums = await Promise.all(Array.from({ length: 10 }, (_, a) => call("add", { a, b: 1 })));
    expect(sums.map((sum) => (sum as { structuredContent: { sum: number } }).structuredContent.sum)).toEqual(
      Array.from({ length: 10 }, (_, a) => a + 1),
    );
    expect(count("initialize")).toBe(before + 1);
  });

  test("a server that changes its tools is believed at the next sync", async () => {
    const document = await bench.discover({ url: server.url });
    const again = JSON.parse(await bench.discover({ document }));
    expect(again).toEqual(JSON.parse(document));
  });
});

describe("credentials", () => {
  beforeEach(async () => {
    server = await openMcpServer({ sessions: true, json: true, bearerToken: "s3cret-token" });
  });
  afterEach(() => server.close());

  test("a server that wants credentials is installed by its address, then synced", async () => {
    await expect(bench.discover({ url: server.url })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringContaining(
        `install the service with the inline definition {"url": "${server.url}"}, set its secrets, then sync it`,
      ),
    });
    const inline = { url: server.url };
    const empty = await bench.adapter.define({ text: JSON.stringify(inline) });
    expect(empty.tools).toEqual([]);
    expect(empty.secretsSchema).toMatchObject({ properties: { bearerToken: {}, headers: {} } });
    const secrets = { bearerToken: "s3cret-token" };
    const document = await bench.discover({ document: inline, secrets });
    expect(document).not.toContain("s3cret-token");
    const { call } = await bench.ready(document, { secrets });
    expect(await call("add", { a: 1, b: 1 })).toMatchObject({ structuredContent: { sum: 2 } });
  });

  test("wrong credentials fail the hydration, and no error repeats them", async () => {
    const document = await bench.discover({ document: { url: server.url }, secrets: { bearerToken: "s3cret-token" } });
    const refused = bench.ready(document, { secrets: { bearerToken: "wrong-token" } });
    await expect(refused).rejects.toMatchObject({
      kind: "upstream_failed",
      message: `Cannot connect: MCP server at "${server.url}" answered with status 401 ("Who is "Bearer ***"?"); check the secrets of the service`,
    });
  });

  test("headers of configuration and secrets are sent, and the secret one counts", async () => {
    const document = { url: "http://127.0.0.1:1/elsewhere" };
    const config = { url: server.url, headers: { "X-Team": "a", "X-Key": "public" } };
    const secrets = { headers: { Authorization: "Bearer s3cret-token", "X-Key": "hidden" } };
    await bench.discover({ document, config, secrets });
    expect(server.requests.at(-1)?.headers).toMatchObject({ "x-team": "a", "x-key": "hidden" });
  });

  test.each<readonly [string, object, object, RegExp]>([
    [
      "a session id",
      { headers: { "Mcp-Session-Id": "1" } },
      {},
      /^Header "mcp-session-id" cannot be set in the config$/,
    ],
    ["credentials", { headers: { authorization: "x" } }, {}, /^Header "authorization" cannot be set in the config$/],
    ["accept", {}, { headers: { accept: "*/*" } }, /^Header "accept" cannot be set in the secrets$/],
    ["a host", {}, { headers: { host: "x" } }, /^Header "host" cannot be set in the secrets$/],
    ["no name", { headers: { "a b": "x" } }, {}, /^A name in "headers" of the config is no header name$/],
    ["a line break", {}, { headers: { "x-a": "a\r\nb" } }, /^The value of "x-a" in the secrets holds what/],
    ["a token with a line break", {}, { bearerToken: "a\nb" }, /^The value of "bearerToken" in the secrets/],
    ["a URL that is none", { url: "nowhere" }, {}, /^The "url" of an MCP service must be/],
    ["a URL with a password", { url: "http://a:b@c" }, {}, /may not hold a user name or password$/],
  ])("%s cannot be set", async (_, config, secrets, message) => {
    const refused = bench.ready({ url: server.url }, { config: { ...config }, secrets: { ...secrets } });
    await expect(refused).rejects.toMatchObject({ kind: "invalid_request", message: expect.stringMatching(message) });
  });
});
