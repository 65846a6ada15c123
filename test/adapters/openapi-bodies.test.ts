/** Bodies out and answers back, through a real server: media types, files, sizes, time, and what counts as a result. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { toolAnswerBytesMax } from "../../src/limits.ts";
import type { Adapter, JsonSchema, PlanReference } from "../../src/ports/adapter.ts";
import { type Call, defined, openTestAdapter } from "./adapter-bench.ts";
import { openRecordingServer, type RecordingServer, respondOk } from "./recording-server.ts";

let adapter: Adapter;
let server: RecordingServer;

beforeAll(async () => {
  [adapter, server] = await Promise.all([openTestAdapter(), openRecordingServer()]);
});
beforeEach(() => {
  server.respond = respondOk;
});
afterAll(async () => {
  await Promise.all([adapter.close(), server.close()]);
});

function operation(id: string, content: unknown, more: object = {}): object {
  return { post: { operationId: id, requestBody: { content, ...more }, responses: { 200: { description: "ok" } } } };
}

function document(paths: Record<string, unknown>, openapi = "3.0.0"): object {
  return { openapi, servers: [{ url: server.origin }], paths };
}

const binary = { type: "string", format: "binary" };
const base64 = (text: string) => Buffer.from(text, "latin1").toString("base64");

describe("bodies", () => {
  let call: Call;
  let plan: PlanReference;
  beforeAll(async () => {
    const form = {
      schema: { type: "object" },
      encoding: {
        csv: { explode: false },
        deep: { style: "deepObject", explode: true },
        pipes: { style: "pipeDelimited" },
        raw: { allowReserved: true },
        typed: { contentType: "application/json" },
      },
    };
    const upload = {
      schema: {
        type: "object",
        required: ["file"],
        properties: {
          file: binary,
          files: { type: "array", items: binary },
          note: { type: "string" },
          meta: { type: "object" },
          tags: { type: "array", items: { type: "string" } },
        },
      },
      encoding: { meta: { contentType: "application/vnd.meta+json" }, note: { contentType: "text/markdown" } },
    };
    ({ call, plan } = await defined(
      adapter,
      document({
        "/json": operation("json", { "application/json": { schema: {} } }),
        "/vendor": operation("vendor", { "application/vnd.api+json": { schema: { type: "object" } } }),
        "/range": operation("range", { "*/*": { schema: { type: "object" } } }),
        "/form": operation("form", { "application/x-www-form-urlencoded": form }),
        "/upload": operation("upload", { "multipart/form-data": upload }),
        "/text": operation("text", { "text/plain": { schema: { type: "string" } } }),
        "/xml": operation("xml", { "application/xml": { schema: { type: "object", properties: { a: {} } } } }),
        "/bytes": operation("bytes", { "application/octet-stream": { schema: binary } }),
        "/image": operation("image", { "image/*": {} }),
        "/many": operation("many", {
          "text/csv": {},
          "application/x-www-form-urlencoded": { schema: { $ref: "#/components/schemas/A" } },
          "application/json; charset=utf-8": { schema: { $ref: "#/components/schemas/A" } },
          "application/json": { schema: { $ref: "#/components/schemas/A" } },
        }),
        "/none": operation("none", {}),
        "/bad": operation("bad", { "x\r\ny: z": {}, "no-slash": {} }),
        "/get": { get: { operationId: "get", requestBody: { content: { "application/json": {} } } } },
        "/delete": { delete: { operationId: "delete", requestBody: { content: { "application/json": {} } } } },
        components: {},
      }) as object & { components?: unknown },
    ));
  });

  test.each<readonly [string, unknown, string, string]>([
    ["json", { a: ["ü", null, 1.5] }, "application/json", '{"a":["ü",null,1.5]}'],
    ["json", "text", "application/json", '"text"'],
    ["json", null, "application/json", "null"],
    ["json", false, "application/json", "false"],
    ["vendor", { a: 1 }, "application/vnd.api+json", '{"a":1}'],
    ["range", { a: 1 }, "application/json", '{"a":1}'],
    [
      "form",
      { a: "x y&z=ü+", b: 1, c: true, d: null },
      "application/x-www-form-urlencoded",
      "a=x%20y%26z%3D%C3%BC%2B&b=1&c=true",
    ],
    ["form", { list: [1, 2] }, "application/x-www-form-urlencoded", "list=1&list=2"],
    ["form", { csv: [1, 2] }, "application/x-www-form-urlencoded", "csv=1,2"],
    ["form", { pipes: ["a", "b"] }, "application/x-www-form-urlencoded", "pipes=a%7Cb"],
    ["form", { raw: "a/b:c" }, "application/x-www-form-urlencoded", "raw=a/b:c"],
    ["form", { deep: { a: { b: [1] } } }, "application/x-www-form-urlencoded", "deep%5Ba%5D%5Bb%5D%5B0%5D=1"],
    ["form", { object: { a: 1 } }, "application/x-www-form-urlencoded", "object=%7B%22a%22%3A1%7D"],
    ["form", { typed: { a: 1 } }, "application/x-www-form-urlencoded", "typed=%7B%22a%22%3A1%7D"],
    [
      "form",
      JSON.parse('{"__proto__":"p","constructor":"c"}'),
      "application/x-www-form-urlencoded",
      "__proto__=p&constructor=c",
    ],
    ["text", "line\r\nü", "text/plain", "line\r\nü"],
    ["text", "", "text/plain", ""],
    ["xml", "<a/>", "application/xml", "<a/>"],
    ["bytes", { base64: base64("\0\u00ff") }, "application/octet-stream", "\0\u00ff"],
    ["image", { base64: base64("x"), mediaType: "image/png" }, "image/png", "x"],
    ["image", { base64: "" }, "application/octet-stream", ""],
    ["delete", { a: 1 }, "application/json", '{"a":1}'],
  ])("%s sends %j as %s", async (toolId, body, contentType, sent) => {
    await call(toolId, { body });
    expect(server.last().headers["content-type"]).toBe(contentType);
    expect(server.last().body.toString(toolId === "bytes" ? "latin1" : "utf8")).toBe(sent);
  });

  test.each<readonly [string, unknown]>([
    ["form", "a=1"],
    ["form", [1]],
    ["text", { a: 1 }],
    ["xml", { a: 1 }],
    ["bytes", "raw"],
    ["bytes", { base64: "not base64!" }],
    ["bytes", { base64: "QQ==", mediaType: "text/plain\r\nx: y" }],
    ["bytes", { base64: "QQ==", mediaType: "nothing" }],
    ["upload", {}],
    ["upload", { file: "raw" }],
    ["upload", { file: { base64: "***" } }],
    ["upload", { file: { base64: "QQ==", mediaType: "a/b\r\nx: y" } }],
    ["none", { a: 1 }],
    ["bad", { a: 1 }],
    ["get", { a: 1 }],
  ])("%s refuses the body %j and sends nothing", async (toolId, body) => {
    const before = server.requests.length;
    await expect(call(toolId, { body })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(/^Parameters do not fit: /),
    });
    expect(server.requests).toHaveLength(before);
  });

  test("an absent body sends none and no content type", async () => {
    await call("json", {});
    expect(server.last().body).toHaveLength(0);
    expect(server.last().headers["content-type"]).toBeUndefined();
  });

  test("a multipart body carries files, text, lists and JSON as parts another parser reads", async () => {
    const file = { filename: 'a "quoted"\r\nname.bin', mediaType: "image/png", base64: base64("\0\r\n--x") };
    await call("upload", {
      body: {
        file,
        files: [{ base64: base64("1") }, { base64: base64("2") }],
        note: "# ü",
        meta: { a: 1 },
        tags: ["x", "y"],
      },
    });
    const { headers, body } = server.last();
    const parsed = await new Response(new Uint8Array(body), {
      headers: { "content-type": headers["content-type"] ?? "" },
    }).formData();
    const sent = parsed.get("file") as File;
    expect([sent.name, sent.type, Buffer.from(await sent.arrayBuffer()).toString("latin1")]).toEqual([
      'a "quoted"\r\nname.bin',
      "image/png",
      "\0\r\n--x",
    ]);
    expect(parsed.getAll("files")).toHaveLength(2);
    expect(parsed.getAll("tags")).toEqual(["x", "y"]);
    expect(body.toString()).toContain('name="note"\r\nContent-Type: text/markdown\r\n\r\n# ü\r\n');
    expect(body.toString()).toContain('name="meta"\r\nContent-Type: application/vnd.meta+json\r\n\r\n{"a":1}\r\n');
  });

  test("among several media types JSON is used unless contentType names another", async () => {
    const { inputSchema } = await adapter.describe(plan, "many");
    expect(propertyOf(inputSchema, "contentType")).toMatchObject({
      enum: ["application/json; charset=utf-8", "application/json", "application/x-www-form-urlencoded", "text/csv"],
    });
    await call("many", { body: { a: 1 } });
    expect(server.last().headers["content-type"]).toMatch(/^application\/json/);
    await call("many", { body: { a: 1 }, contentType: "application/x-www-form-urlencoded" });
    expect(server.last().body.toString()).toBe("a=1");
    await call("many", { body: "a,b", contentType: "text/csv" });
    expect(server.last().body.toString()).toBe("a,b");
    await expect(call("many", { body: "a,b", contentType: "text/html" })).rejects.toMatchObject({
      kind: "invalid_request",
    });
    await expect(call("many", { body: { a: 1 }, contentType: "text/csv" })).rejects.toMatchObject({
      kind: "invalid_request",
    });
  });
});

describe("answers", () => {
  let call: Call;
  beforeAll(async () => {
    ({ call } = await defined(
      adapter,
      document({ "/x": { get: { operationId: "x" }, head: { operationId: "head" } } }),
    ));
  });

  test.each<readonly [string | undefined, string, unknown]>([
    ["application/json", '{"a":[1]}', { a: [1] }],
    ["application/problem+json; charset=utf-8", "null", null],
    ["application/json", "not json", "not json"],
    ["application/json", '{"__proto__":{"a":1}}', JSON.parse('{"__proto__":{"a":1}}')],
    ["text/plain; charset=utf-8", "ü", "ü"],
    ["text/html", "<p>", "<p>"],
    ["application/xml", "<a/>", "<a/>"],
    ["image/svg+xml", "<svg/>", "<svg/>"],
    ["application/x-ndjson", "{}\n{}", "{}\n{}"],
    ["application/octet-stream", "ab", { base64: "YWI=", mediaType: "application/octet-stream" }],
    ["image/png", "\0", { base64: "AA==", mediaType: "image/png" }],
    [undefined, '{"a":1}', { a: 1 }],
    [undefined, "plain", "plain"],
    ["text/plain; charset=no-such", "x", "x"],
  ])("%s %j becomes the body %j", async (contentType, sent, body) => {
    server.respond = (_, response) => {
      response.writeHead(200, contentType === undefined ? {} : { "content-type": contentType }).end(sent);
    };
    expect(await call("x")).toMatchObject({ status: 200, body });
  });

  test("text is decoded in its own character set, and bytes without a type are not taken for text", async () => {
    server.respond = (_, response) =>
      response.writeHead(200, { "content-type": "text/plain; charset=iso-8859-1" }).end(Buffer.from([0xfc]));
    expect(await call("x")).toMatchObject({ body: "ü" });
    server.respond = (_, response) => response.writeHead(200).end(Buffer.from([0xff, 0xfe]));
    expect(await call("x")).toMatchObject({ body: { base64: "//4=" } });
  });

  test.each([200, 201, 204, 301, 302, 307, 304, 400, 401, 404, 418, 429, 500, 503])(
    "status %i is a result, and redirects are not followed",
    async (status) => {
      const before = server.requests.length;
      server.respond = (_, response) =>
        response.writeHead(status, { location: `${server.origin}/elsewhere`, "x-thing": "a" }).end();
      const result = await call("x");
      expect(result).toMatchObject({ status, headers: { "x-thing": "a" } });
      expect(result).not.toHaveProperty("body");
      expect(server.requests).toHaveLength(before + 1);
    },
  );

  test("a HEAD answer has no body", async () => {
    expect(await call("head")).not.toHaveProperty("body");
  });

  test("an answer larger than the limit fails naming it", async () => {
    server.respond = (_, response) =>
      response.writeHead(200, { "content-type": "text/plain" }).end(Buffer.alloc(toolAnswerBytesMax + 1));
    await expect(call("x")).rejects.toMatchObject({
      kind: "upstream_failed",
      message: `The answer of tool "x" is larger than ${toolAnswerBytesMax} bytes`,
    });
  });

  test("an answer nested too deeply to be passed on fails, a deep but ordinary one does not", async () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    server.respond = (_, response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(nested(100_000));
    await expect(call("x")).rejects.toMatchObject({ kind: "upstream_failed" });
    server.respond = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end(nested(400));
    expect(JSON.stringify(await call("x"))).toContain(nested(400));
  });

  test("no connection is a failure, not a result", async () => {
    await expect(call("x", {}, { config: { serverUrl: "http://127.0.0.1:1" } })).rejects.toMatchObject({
      kind: "upstream_failed",
    });
  });

  test.each<readonly [object, number]>([
    [{ timeoutMs: 150 }, 150],
    [{ config: { timeoutMs: 120 } }, 120],
    [{ timeoutMs: 100, config: { timeoutMs: 5_000 } }, 100],
  ])("a target slower than %j times out naming the limit", async (settings, limitMs) => {
    server.respond = () => {};
    await expect(call("x", {}, settings)).rejects.toMatchObject({
      kind: "timeout",
      message: `Tool "x" did not answer within ${limitMs} ms`,
    });
  });

  test("an answer that never ends times out too", async () => {
    server.respond = (_, response) => response.writeHead(200, { "content-type": "text/plain" }).write("a");
    await expect(call("x", {}, { timeoutMs: 200 })).rejects.toMatchObject({ kind: "timeout" });
  });

  test("a call whose caller leaves is cancelled and its request given up", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const gone = new Promise<void>((resolve) => {
      server.respond = (_, response) => {
        response.on("close", resolve);
        arrive();
      };
    });
    const stop = new AbortController();
    const running = call("x", {}, { signal: stop.signal });
    const outcome = expect(running).rejects.toMatchObject({ kind: "cancelled" });
    await arrived;
    stop.abort();
    await outcome;
    await gone;
    await expect(call("x", {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: "cancelled" });
  });

  test("an unknown tool is not found", async () => {
    await expect(call("nothing")).rejects.toMatchObject({ kind: "not_found" });
  });
});

function propertyOf(schema: JsonSchema, name: string): unknown {
  return (schema as { properties?: Record<string, unknown> }).properties?.[name];
}
