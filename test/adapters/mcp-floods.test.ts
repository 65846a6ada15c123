/** MCP servers over HTTP that answer with more than the answer: it is read or refused, and nobody else is held up or written to meanwhile. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mcpEventsReadMax, mcpNamesMax, mcpToolsChangedQuietMs, mcpValuesMax } from "../../src/limits.ts";
import { measureLongestTurn, realClock } from "./adapter-bench.ts";
import { type McpBench, openMcpBench } from "./mcp-bench.ts";
import {
  afterHandshake,
  openScriptedServer,
  type Script,
  type ScriptedServer,
  send,
  serverInfo,
  withTools,
} from "./mcp-scripted-server.ts";

let bench: McpBench;
let server: ScriptedServer;
let now = 0;
beforeAll(async () => {
  const clock = { ...realClock, monotonic: () => performance.now() + now };
  [bench, server] = await Promise.all([openMcpBench({ clock }), openScriptedServer()]);
});
afterAll(async () => {
  await Promise.all([bench.close(), server.close()]);
});
beforeEach(() => {
  server.messages.length = 0;
});

const tools = [{ name: "a", inputSchema: { type: "object" } }];
const ready = async (script: Script) => {
  server.script = withTools(tools, script);
  return bench.ready({ url: server.url, tools });
};

/** Far under what each of these cost: 1.8 to 15 s. */
const turnMsMax = 1_000;
const json = "application/json";
const events = "text/event-stream";
/** The first call of a session. */
const id = 1;
const here = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "here" }] } });
const many = (piece: string, bytes = 10_000_000) => piece.repeat(Math.floor(bytes / piece.length));
const event = (data: string) => `data: ${data}\n\n`;
const note = '{"jsonrpc":"2.0","method":"notifications/message"}';
const ping = '{"jsonrpc":"2.0","id":"p","method":"ping"}';
const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
const progress = JSON.stringify({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { message: many("x", 400) },
});
const result = (members: string) => `{"jsonrpc":"2.0","id":${id},"result":{${members}}}`;
const names = (count: number) => Array.from({ length: count }, (_, at) => `"n${at}":0`).join(",");

describe("an answer of up to 10 MiB", () => {
  const tooManyLines = /more than \d+ lines$/;
  const tooManyValues = new RegExp(`: More than ${mcpValuesMax} values in one answer$`);
  const tooManyNames = new RegExp(`: More than ${mcpNamesMax} different names in one answer$`);

  test.each<readonly [string, string, string]>([
    ["thousands of progress events", events, many(event(progress)) + event(here)],
    ["pings as events", events, many(event(ping), 2_000_000) + event(here)],
    ["thousands of pings in a list", json, `[${many(`${ping},`, 1_000_000)}${here}]`],
    ["thousands of changes of its tools in a list", json, `[${many(`${changed},`, 1_000_000)}${here}]`],
    ["one strange event", events, event(many('"')) + event(here)],
    ["one event of many lines", events, `${many(`data: ${many("x", 200)}\n`)}\n${event(here)}`],
    ["spaces", json, many(" ") + here],
    ["line ends around the result", json, many("\r\n", 5_000_000) + here + many("\n", 4_000_000)],
  ])("with %s beside the result is read", async (_, type, text) => {
    const body = Buffer.from(text);
    const { call } = await ready((_message, response) => send(response, 200, type, body));
    server.messages.length = 0;
    const turned = measureLongestTurn();
    expect(await call("a")).toMatchObject({ content: [{ text: "here" }] });
    expect(turned()).toBeLessThan(turnMsMax);
    // None of its pings was answered: the answer was over when they were read.
    expect(server.messages.map(({ method }) => method)).toEqual(["tools/call"]);
  });

  test.each<readonly [string, string, string, RegExp]>([
    ["notifications as events", events, many(event(note)) + event(here), tooManyLines],
    ["pings as events", events, many(event(ping)) + event(here), tooManyLines],
    ["strange events", events, many(event("keepalive")) + event(here), tooManyLines],
    ["blank lines", events, many("\n") + event(here), tooManyLines],
    ["blank lines of another kind", events, many("\r") + event(here), tooManyLines],
    ["comments", events, many(":\r\n") + event(here), tooManyLines],
    [
      "events that all may be the response",
      events,
      many(event('{"result":1}'), 200_000) + event(here),
      new RegExp(`more than ${mcpEventsReadMax} events that may be the response$`),
    ],
    [
      "large events that are other responses",
      events,
      many(event(`{"result":[${many("[],", 300_000)}0]}`)),
      tooManyValues,
    ],
    ["notifications in a list", json, `[${many(`${note},`)}${here}]`, tooManyValues],
    ["empty objects in a list", json, `[${many("{},")}${here}]`, tooManyValues],
    ["a result of empty lists", json, result(`"content":[${many("[],")}0]`), tooManyValues],
    ["a result of numbers", json, result(`"content":[${many("1,")}0]`), tooManyValues],
    ["a result nested millions deep", json, result(`"content":[${many("[", 4e6)}${many("]", 4e6)}]`), tooManyValues],
    ["a result of different names", json, result(`"structuredContent":{${names(190_000)}}`), tooManyNames],
    ["different names beside the result", json, result(`${names(190_000)},"content":[]`), tooManyNames],
    ["different names with spaces behind", json, `{${names(190_000).replaceAll('":', '" :')}}`, tooManyNames],
    [
      "an error's data",
      json,
      `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":[${many("[],")}0]}}`,
      tooManyValues,
    ],
  ])("of %s is refused", async (_, type, text, message) => {
    const body = Buffer.from(text);
    const { call } = await ready((_message, response) => send(response, 200, type, body));
    server.messages.length = 0;
    const turned = measureLongestTurn();
    await expect(call("a")).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
    expect(turned()).toBeLessThan(turnMsMax);
    expect(server.messages.map(({ method }) => method)).toEqual(["tools/call"]);
  });

  test("of an error page that is a large JSON is a status, without words", async () => {
    const body = Buffer.from(`{"error":[${many("[],")}0]}`);
    const { call } = await ready((_message, response) => send(response, 500, json, body));
    const turned = measureLongestTurn();
    await expect(call("a")).rejects.toMatchObject({ message: expect.stringMatching(/answered with status 500$/) });
    expect(turned()).toBeLessThan(turnMsMax);
  });

  test("of a tool whose schema is millions of lists ends the discovery", async () => {
    const page = `"tools":[{"name":"a","inputSchema":{"enum":[${many("[],", 7_000_000)}0]}}]`;
    const body = Buffer.from(result(page));
    server.script = afterHandshake((_message, response) => send(response, 200, json, body));
    const turned = measureLongestTurn();
    await expect(bench.discover({ url: server.url })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(tooManyValues),
    });
    expect(turned()).toBeLessThan(turnMsMax);
  });
});

test("large results that are a result are passed on whole", async () => {
  const rows = Array.from({ length: 15_000 }, (_, at) => ({ id: at, name: `n${at}`, tags: ["a", "b"], left: null }));
  const { call } = await ready(() => ({ content: [], structuredContent: { rows } }));
  expect(await call("a")).toEqual({ content: [], structuredContent: { rows }, isError: false });
});

describe("a handshake", () => {
  const icons = (count: number) => Array<unknown>(count).fill({ src: 1 });
  const answered = (more: object) => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo,
    ...more,
  });
  test("of megabytes is refused", async () => {
    server.script = () => answered({ serverInfo: { ...serverInfo, icons: icons(300_000) } });
    await expect(bench.discover({ url: server.url })).rejects.toMatchObject({ kind: "upstream_failed" });
  });

  test("holds what only its server knows, which is not looked at", async () => {
    const strange = { serverInfo: { ...serverInfo, icons: icons(10_000) }, _meta: 7, capabilities: { tools: 7 } };
    server.script = (message, response) =>
      message.method === "initialize" ? answered(strange) : withTools(tools)(message, response);
    expect(JSON.parse(await bench.discover({ url: server.url }))).toMatchObject({ server: serverInfo });
  });
});

describe("a server that says that its tools have changed", () => {
  const told = () => bench.lines.filter(({ event }) => event === "mcp-tools-changed").length;

  test("is logged once a minute for a service, however often it says so and in however many sessions", async () => {
    let isLost = false;
    const { call } = await ready(({ id: asked, method }, response) => {
      if (isLost && method !== "initialize") return send(response, 404, "text/plain", "");
      const answer = JSON.stringify({ jsonrpc: "2.0", id: asked, result: { content: [] } });
      return send(response, 200, json, `[${many(`${changed},`, 100_000)}${answer}]`);
    });
    const before = told();
    for (let calls = 0; calls < 5; calls += 1) await call("a");
    isLost = true;
    await call("a").catch(() => undefined);
    isLost = false;
    await call("a");
    expect(told() - before).toBe(1);
    now += mcpToolsChangedQuietMs;
    await call("a");
    expect(told() - before).toBe(2);
  });
});

describe("a result is read beside", () => {
  test.each<readonly [string, string]>([
    ["a stray text", event("keepalive")],
    ["a text that only looks like a response", event('"result"')],
    ["half a message", event('{"jsonrpc":"2.0","result"')],
    ["a response to nobody", event('{"jsonrpc":"2.0","id":null,"result":{}}')],
    ["the answer to another request", event('{"jsonrpc":"2.0","id":99,"result":{}}')],
    ["a message of another protocol", event('{"id":1,"result":{}}')],
    ["an answer without a form", event('{"jsonrpc":"2.0","id":1,"result":"x"}')],
    ["an event of another type", "event: ping\ndata: {}\n\n"],
    ["a response in an event of another type", `event: other\n${event(result("")).replace("here", "x")}`],
    ["fields nobody knows", "foo: bar\ndataset: 1\nretry: 5\n:comment\n\n"],
    ["an event without data", "event: message\nid: 1\n\n"],
    ["a byte order mark", "\uFEFF"],
  ])("%s", async (_, before) => {
    const { call } = await ready((_message, response) => {
      const answer = JSON.stringify(JSON.parse(here), null, 1).replaceAll("\n", "\r\ndata: ");
      return send(response, 200, events, `${before}event: message\r\ndata: ${answer}\r\n\r\n`);
    });
    expect(await call("a")).toMatchObject({ content: [{ text: "here" }] });
  });

  test.each<readonly [string, string]>([
    ["of its own after it", here + ping],
    ["in a list that holds others", `[{"a":1},7,null,${note},${ping},${here}]`],
    ["as one whose id is text", here.replace(`"id":${id}`, `"id":"${id}"`)],
  ])("messages %s, where they are allowed", async (name, text) => {
    const { call } = await ready((_message, response) => send(response, 200, json, text));
    if (name.startsWith("of its own")) await expect(call("a")).rejects.toMatchObject({ kind: "upstream_failed" });
    else expect(await call("a")).toMatchObject({ content: [{ text: "here" }] });
  });
});
