/** Documents made to hurt: none may crash the server, hold it up, reach the network or take more than its time and memory. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { documentBytesMax, documentDepthMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { defined, measureLongestTurn, openTestAdapter } from "./adapter-bench.ts";
import { openRecordingServer, type RecordingServer } from "./recording-server.ts";

let adapter: Adapter;
let server: RecordingServer;

beforeAll(async () => {
  [adapter, server] = await Promise.all([openTestAdapter(), openRecordingServer()]);
});
afterAll(async () => {
  await Promise.all([adapter.close(), server.close()]);
});

const deepYaml = (depth: number) => `openapi: 3.0.0\nx-deep: ${"[".repeat(depth)}${"]".repeat(depth)}\n`;
const deepJson = (depth: number) => `{"openapi":"3.0.0","x-deep":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
const bomb = (levels: number, width: number) =>
  `openapi: 3.0.0\nx0: &x0 lol\n${Array.from({ length: levels }, (_, level) => `x${level + 1}: &x${level + 1} [${Array(width).fill(`*x${level}`).join(", ")}]`).join("\n")}\n`;

describe("documents that are refused", () => {
  test.each<readonly [string, () => string, RegExp]>([
    ["nothing", () => "", /is not a JSON or YAML object$/],
    ["a list", () => "[1]", /is not a JSON or YAML object$/],
    ["a sentence", () => "hello", /is not a JSON or YAML object$/],
    ["null", () => "null", /is not a JSON or YAML object$/],
    ["broken JSON", () => '{"openapi": "3.0.0",', /is neither valid JSON nor valid YAML/],
    ["broken JSON of some size", () => `{"openapi":"3.0.0","x":"${"y".repeat(1_100_000)}"`, /is not valid JSON/],
    ["broken YAML", () => "openapi: 3.0.0\n\t- a: [", /is neither valid JSON nor valid YAML/],
    ["a web page", () => "<!doctype html><p>Not here", /is (not a JSON or YAML object|neither valid)/],
    ["no version", () => '{"info":{}}', /has no field "openapi"$/],
    ["a version of no shape", () => '{"openapi":{"a":1}}', /has no field "openapi"$/],
    ["version 1.2", () => '{"swagger":"1.2"}', /has no field "openapi"$/],
    ["version 4", () => '{"openapi":"4.0.0"}', /its version "4.0.0" is not 3.0, 3.1 or 3.2$/],
    ["version 30", () => '{"openapi":"30.1"}', /its version "30.1" is not/],
    [
      "JSON nested a hundred thousand deep",
      () => deepJson(100_000),
      new RegExp(`is nested deeper than ${documentDepthMax} levels$`),
    ],
    ["JSON just too deep", () => deepJson(documentDepthMax), /is nested deeper/],
    ["YAML nested a thousand deep", () => deepYaml(1_000), /nested (too deeply|deeper)/],
    ["YAML just too deep", () => deepYaml(documentDepthMax), /is nested deeper/],
    ["a YAML alias that holds itself", () => "openapi: 3.0.0\nx: &x {a: *x}\n", /is nested deeper/],
    ["a YAML alias bomb", () => bomb(12, 10), /holds more than \d+ values$/],
    [
      "a YAML alias bomb of text",
      () => `openapi: 3.0.0\na: &a ${"x".repeat(1_000_000)}\nb: [${Array(200).fill("*a").join(", ")}]\n`,
      /holds more than \d+ characters/,
    ],
    [
      "more bytes than allowed",
      () => `{"openapi":"3.0.0","x":"${"y".repeat(documentBytesMax)}"}`,
      /is larger than \d+ bytes$/,
    ],
    [
      "more bytes than allowed, in fewer characters",
      () => `{"openapi":"3.0.0","x":"${"ü".repeat(documentBytesMax / 2)}"}`,
      /is larger than \d+ bytes$/,
    ],
    [
      "Swagger 2.0 of no shape",
      () => '{"swagger":"2.0","paths":{"/a":{"get":{"parameters":[null,{"in":"body"},7]}}},"definitions":{"A":null}}',
      /./,
    ],
  ])("%s", async (_, make, message) => {
    const outcome = await adapter.define({ text: make() }).catch((error: unknown) => error);
    if (outcome instanceof Error)
      expect(outcome).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(message) });
    else expect(message.source).toBe(".");
  });
});

describe("documents that are read all the same", () => {
  test("keys named __proto__ reach nothing, at any place", async () => {
    const evil = '{"polluted":true,"type":"string","get":{"operationId":"evil"}}';
    const text = `{"openapi":"3.0.0","__proto__":${evil},"servers":[{"url":"${server.origin}","variables":{"__proto__":${evil}}}],
      "paths":{"__proto__":${evil},"/a":{"__proto__":${evil},"post":{"operationId":"a","__proto__":${evil},
        "parameters":[{"name":"__proto__","in":"query","schema":{}},{"name":"constructor","in":"query","schema":{}}],
        "requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"__proto__":${evil},"b":{"$ref":"#/components/schemas/__proto__"}},"required":["__proto__"]}}}}}}},
      "components":{"schemas":{"__proto__":${evil}},"securitySchemes":{"__proto__":{"type":"http","scheme":"basic"},"constructor":{"type":"http","scheme":"bearer"}}}}`;
    const { definition, plan, call } = await defined(adapter, text);
    expect(definition.tools.map((tool) => tool.id)).toEqual(["a"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(JSON.stringify(await adapter.describe(plan, "a"))).not.toContain("polluted");
    await expect(adapter.describe(plan, "constructor")).rejects.toMatchObject({ kind: "not_found" });
    await call("a", { query: { constructor: "c" }, body: JSON.parse('{"__proto__":{"x":1}}') }).catch((error: Error) =>
      expect(error.message).toMatch(/must have property "__proto__"/),
    );
    await call("a", { query: { constructor: "c" } }, { secrets: { constructor: "t" } });
    expect(server.last()).toMatchObject({ query: "constructor=c", headers: { authorization: "Bearer t" } });
  });

  test("an alias used a thousand times within bounds is fine", async () => {
    const paths = Array.from({ length: 1_000 }, (_, index) => `  /p${index}: *item`).join("\n");
    const text = `openapi: 3.0.0\nx: &item {get: {responses: {200: {description: ok}}}}\npaths:\n${paths}\n`;
    expect((await adapter.define({ text })).tools).toHaveLength(1_000);
  });

  test("no reference and no server is asked for anything while a document is read", async () => {
    const asked: string[] = [];
    const trap = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.end("{}");
    });
    await new Promise<void>((resolve) => trap.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(trap.address() as AddressInfo).port}`;
    const ref = { $ref: `${origin}/a.json#/A` };
    const paths = {
      "/a": ref,
      "/b": { get: { parameters: [ref], responses: { 200: ref } }, post: { requestBody: ref } },
    };
    const { plan, definition } = await defined(adapter, {
      openapi: "3.1.0",
      servers: [{ url: origin }],
      paths,
      components: { schemas: { A: ref }, securitySchemes: { a: ref } },
    });
    for (const tool of definition.tools) await adapter.describe(plan, tool.id);
    await defined(adapter, { swagger: "2.0", paths: {}, definitions: { A: ref } });
    expect(asked).toEqual([]);
    await new Promise((resolve) => trap.close(resolve));
  });
});

describe("schemas that make checking expensive", () => {
  const checked = (schema: object, schemas: object = {}) =>
    defined(adapter, {
      openapi: "3.1.0",
      servers: [{ url: server.origin }],
      paths: {
        "/a": { post: { operationId: "a", requestBody: { content: { "application/json": { schema } } } } },
        "/b": { get: { operationId: "b" } },
      },
      components: { schemas },
    });

  test("a pattern that backtracks for ever is ended with its worker, and other calls go on", async () => {
    // A back reference is beyond RE2, so this runs in the engine.
    const { call } = await checked({ type: "string", pattern: "^(\\w+\\s?)*\\1$" });
    const held = call("a", { body: `${"aaaaaaaaaaaaaaaa ".repeat(4)}!` });
    const turned = measureLongestTurn();
    const others = Promise.all([call("b"), call("b"), call("b")]);
    await expect(held).rejects.toMatchObject({
      kind: "timeout",
      message: 'Parameter check of tool "a" took longer than 1000 ms',
    });
    expect(await others).toHaveLength(3);
    expect(turned()).toBeLessThan(1_000);
  });

  test("branches that multiply are ended too", async () => {
    const level = (index: number) => ({
      anyOf: [{ $ref: `#/components/schemas/L${index + 1}` }, { $ref: `#/components/schemas/L${index + 1}` }],
    });
    const schemas = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`L${index}`, level(index)]));
    const { call } = await checked({ $ref: "#/components/schemas/L0" }, { ...schemas, L40: { type: "string" } });
    await expect(call("a", { body: 1 })).rejects.toMatchObject({ kind: "timeout" });
    expect(await call("b")).toMatchObject({ status: 200 });
  });

  test.each<readonly [string, object]>([
    ["allOf of itself", { A: { allOf: [{ $ref: "#/components/schemas/A" }] } }],
    ["a reference to itself beside keywords", { A: { $ref: "#/components/schemas/A", minLength: 1 } }],
    ["not of itself", { A: { not: { $ref: "#/components/schemas/A" } } }],
  ])("%s is refused, not followed for ever", async (_, schemas) => {
    const { call } = await checked({ $ref: "#/components/schemas/A" }, schemas);
    await expect(call("a", { body: "x" })).rejects.toMatchObject({ kind: "invalid_request" });
    expect(await call("b")).toMatchObject({ status: 200 });
  });

  test("parameters nested deeper than the check can follow are refused", async () => {
    const { call } = await checked(
      { $ref: "#/components/schemas/A" },
      { A: { type: "array", items: { $ref: "#/components/schemas/A" } } },
    );
    let body: unknown = [];
    for (let depth = 0; depth < 50_000; depth += 1) body = [body];
    await expect(call("a", { body })).rejects.toMatchObject({ kind: "invalid_request" });
    expect(await call("b")).toMatchObject({ status: 200 });
  });
});

describe("plans", () => {
  test("a plan is loaded once while the worker knows it, also by many calls at once", async () => {
    const { call, plan } = await defined(adapter, {
      openapi: "3.0.0",
      info: { title: "once" },
      servers: [{ url: server.origin }],
      paths: { "/a": { get: { operationId: "a" } } },
    });
    await Promise.all(Array.from({ length: 50 }, () => call("a")));
    await adapter.describe(plan, "a");
    expect((plan as unknown as { loads(): number }).loads()).toBe(1);
  });

  test("a plan that cannot be loaded fails its calls with that reason", async () => {
    const plan = { hash: "unknown", load: () => Promise.reject(new Error("store is gone")) };
    await expect(adapter.describe(plan, "a")).rejects.toThrow("store is gone");
  });
});
