/** Where parameter values end up: every style, read back from what a real server received, and every value that must not leave. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Adapter } from "../../src/ports/adapter.ts";
import { type Call, defined, openTestAdapter } from "./adapter-bench.ts";
import { openRecordingServer, type RecordingServer } from "./recording-server.ts";

let adapter: Adapter;
let server: RecordingServer;

beforeAll(async () => {
  [adapter, server] = await Promise.all([openTestAdapter(), openRecordingServer()]);
});
afterAll(async () => {
  await Promise.all([adapter.close(), server.close()]);
});

const list = ["blue", "black", "brown"];
const color = { R: 100, G: 200, B: 150 };

interface Row {
  readonly in: "path" | "query" | "header" | "cookie";
  readonly style?: string;
  readonly explode?: boolean;
  readonly allowReserved?: boolean;
  readonly content?: string;
  readonly value: unknown;
  /** What the server must have received: path after `/p/`, raw query, header value or Cookie header. */
  readonly sent: string | undefined;
}

/** The first rows are the table of the OpenAPI 3.0.4 specification. */
const rows: readonly Row[] = [
  { in: "path", value: "blue", sent: "blue" },
  { in: "path", value: list, sent: "blue,black,brown" },
  { in: "path", value: color, sent: "R,100,G,200,B,150" },
  { in: "path", explode: true, value: color, sent: "R=100,G=200,B=150" },
  { in: "path", style: "label", value: "blue", sent: ".blue" },
  { in: "path", style: "label", value: list, sent: ".blue,black,brown" },
  { in: "path", style: "label", explode: true, value: list, sent: ".blue.black.brown" },
  { in: "path", style: "label", value: color, sent: ".R,100,G,200,B,150" },
  { in: "path", style: "label", explode: true, value: color, sent: ".R=100.G=200.B=150" },
  { in: "path", style: "matrix", value: "blue", sent: ";v=blue" },
  { in: "path", style: "matrix", value: "", sent: ";v" },
  { in: "path", style: "matrix", value: list, sent: ";v=blue,black,brown" },
  { in: "path", style: "matrix", explode: true, value: list, sent: ";v=blue;v=black;v=brown" },
  { in: "path", style: "matrix", value: color, sent: ";v=R,100,G,200,B,150" },
  { in: "path", style: "matrix", explode: true, value: color, sent: ";R=100;G=200;B=150" },
  { in: "path", value: "a/b?c#d e%2Fü;,", sent: "a%2Fb%3Fc%23d%20e%252F%C3%BC%3B%2C" },
  { in: "path", value: "!'()*~-._", sent: "%21%27%28%29%2A~-._" },
  { in: "path", value: ["a,b", "c"], sent: "a%2Cb,c" },
  { in: "path", value: "...", sent: "..." },
  { in: "path", value: "\ud800", sent: "%EF%BF%BD" },
  { in: "path", value: 1.5, sent: "1.5" },
  { in: "path", value: false, sent: "false" },
  { in: "path", content: "application/json", value: { a: [1] }, sent: "%7B%22a%22%3A%5B1%5D%7D" },
  { in: "query", value: "blue", sent: "v=blue" },
  { in: "query", value: "", sent: "v=" },
  { in: "query", value: list, sent: "v=blue&v=black&v=brown" },
  { in: "query", value: color, sent: "R=100&G=200&B=150" },
  { in: "query", explode: false, value: list, sent: "v=blue,black,brown" },
  { in: "query", explode: false, value: color, sent: "v=R,100,G,200,B,150" },
  { in: "query", style: "spaceDelimited", value: list, sent: "v=blue%20black%20brown" },
  { in: "query", style: "spaceDelimited", value: color, sent: "v=R%20100%20G%20200%20B%20150" },
  { in: "query", style: "spaceDelimited", explode: true, value: list, sent: "v=blue&v=black&v=brown" },
  { in: "query", style: "pipeDelimited", value: list, sent: "v=blue%7Cblack%7Cbrown" },
  { in: "query", style: "pipeDelimited", value: color, sent: "v=R%7C100%7CG%7C200%7CB%7C150" },
  { in: "query", style: "pipeDelimited", explode: true, value: list, sent: "v=blue&v=black&v=brown" },
  { in: "query", style: "deepObject", value: color, sent: "v%5BR%5D=100&v%5BG%5D=200&v%5BB%5D=150" },
  {
    in: "query",
    style: "deepObject",
    value: { a: { b: [1, { c: 2 }] } },
    sent: "v%5Ba%5D%5Bb%5D%5B0%5D=1&v%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=2",
  },
  { in: "query", style: "deepObject", value: "plain", sent: "v=plain" },
  { in: "query", style: "no such style", value: list, sent: "v=blue&v=black&v=brown" },
  { in: "query", value: "a&b=c+d #é", sent: "v=a%26b%3Dc%2Bd%20%23%C3%A9" },
  { in: "query", allowReserved: true, value: "a/b:c?d=e,f", sent: "v=a/b:c?d=e,f" },
  { in: "query", allowReserved: true, value: "a&b#c+d[e]%41", sent: "v=a%26b%23c%2Bd%5Be%5D%2541" },
  { in: "query", value: [1, null, true], sent: "v=1&v=true" },
  { in: "query", value: [], sent: "" },
  { in: "query", explode: false, value: {}, sent: "" },
  { in: "query", value: null, sent: "" },
  { in: "query", value: undefined, sent: "" },
  { in: "query", value: { a: { b: 1 } }, sent: "a=%7B%22b%22%3A1%7D" },
  { in: "query", content: "application/json", value: { a: "b&c" }, sent: "v=%7B%22a%22%3A%22b%26c%22%7D" },
  { in: "query", content: "application/json", value: [1, 2], sent: "v=%5B1%2C2%5D" },
  { in: "header", value: "blue", sent: "blue" },
  { in: "header", value: list, sent: "blue,black,brown" },
  { in: "header", value: color, sent: "R,100,G,200,B,150" },
  { in: "header", explode: true, value: color, sent: "R=100,G=200,B=150" },
  { in: "header", value: 'a b;c="d"', sent: 'a b;c="d"' },
  { in: "header", content: "application/json", value: { a: "ü" }, sent: '{"a":"\\u00fc"}' },
  { in: "header", value: null, sent: undefined },
  { in: "cookie", value: "blue", sent: "v=blue" },
  { in: "cookie", explode: false, value: list, sent: "v=blue,black,brown" },
  { in: "cookie", value: list, sent: "v=blue; v=black; v=brown" },
  { in: "cookie", value: color, sent: "R=100; G=200; B=150" },
  { in: "cookie", value: "a;b c=d", sent: "v=a%3Bb%20c%3Dd" },
];

const slot = { path: "path", query: "query", header: "headers", cookie: "cookies" } as const;

function parameterOf(row: Row): Record<string, unknown> {
  const { in: place, style, explode, allowReserved, content } = row;
  const described = content
    ? { content: { [content]: { schema: {} } } }
    : { schema: {}, style, explode, allowReserved };
  return { name: "v", in: place, required: place === "path", ...described };
}

describe("values written by style", () => {
  let call: Call;
  beforeAll(async () => {
    const paths = rows.map((row, index) => [
      row.in === "path" ? `/p${index}/{v}` : `/p${index}/x`,
      { get: { operationId: `op${index}`, parameters: [parameterOf(row)], responses: {} } },
    ]);
    ({ call } = await defined(adapter, {
      openapi: "3.0.4",
      servers: [{ url: server.origin }],
      paths: Object.fromEntries(paths),
    }));
  });

  const named = rows.map(
    (row, index) =>
      [
        `${row.in} ${row.style ?? row.content ?? ""} ${row.explode ?? ""} ${JSON.stringify(row.value)}`,
        row,
        index,
      ] as const,
  );
  test.each(named)("%s arrives as the specification says", async (_, row, index) => {
    await call(`op${index}`, { [slot[row.in]]: { v: row.value } });
    const { path, query, headers } = server.last();
    const sent = { path: path.replace(/^\/p\d+\//, ""), query, header: headers.v, cookie: headers.cookie }[row.in];
    expect(sent).toBe(row.sent);
  });
});

describe("values that must not leave", () => {
  let call: Call;
  beforeAll(async () => {
    const text = (name: string, place: string) => ({ name, in: place, required: place === "path", schema: {} });
    const names = [
      "Authorization",
      "cookie",
      "Host",
      "Content-Length",
      "Transfer-Encoding",
      "CONNECTION",
      "X-Key",
      "Accept",
      "content-type",
      "bad name",
      "x\r\ny",
    ];
    ({ call } = await defined(adapter, {
      openapi: "3.0.0",
      servers: [{ url: `${server.origin}/base` }],
      components: {
        securitySchemes: {
          key: { type: "apiKey", in: "header", name: "x-key" },
          q: { type: "apiKey", in: "query", name: "token" },
          c: { type: "apiKey", in: "cookie", name: "session" },
        },
      },
      security: [],
      paths: {
        "/one/{a}": { get: { operationId: "one", parameters: [text("a", "path")] } },
        "/two/{a}{b}/x": { get: { operationId: "two", parameters: [text("a", "path"), text("b", "path")] } },
        "/label/{a}": { get: { operationId: "label", parameters: [{ ...text("a", "path"), style: "label" }] } },
        "/h": {
          get: {
            operationId: "h",
            parameters: [
              ...names.map((name) => text(name, "header")),
              text("X-Fine", "header"),
              text("token", "query"),
              text("session", "cookie"),
              text("ok", "cookie"),
            ],
          },
        },
      },
    }));
  });

  test.each([
    ["one", { a: "." }],
    ["one", { a: ".." }],
    ["one", { a: "" }],
    ["one", { a: [] }],
    ["one", { a: null }],
    ["two", { a: ".", b: "." }],
    ["two", { a: "", b: ".." }],
    ["label", { a: "" }],
    ["label", { a: "." }],
  ])("path values of %s %j are refused", async (toolId, path) => {
    const before = server.requests.length;
    await expect(call(toolId, { path })).rejects.toMatchObject({ kind: "invalid_request" });
    expect(server.requests).toHaveLength(before);
  });

  test("a path value that only looks like a parent folder stays one segment", async () => {
    for (const value of ["../etc", "..\\x", "%2e%2e", "..;", "a/../../b"]) {
      await call("one", { path: { a: value } });
      expect(server.last().path).toBe(`/base/one/${encodeURIComponent(value)}`);
    }
  });

  test.each([
    "Authorization",
    "cookie",
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "CONNECTION",
    "X-Key",
    "Accept",
    "content-type",
    "bad name",
    "x\r\ny",
  ])("the headers slot cannot set %j", async (name) => {
    await expect(call("h", { headers: { [name]: "x" } })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringContaining("may not have property"),
    });
  });

  test("query and cookie names of security schemes cannot be set", async () => {
    await expect(call("h", { query: { token: "x" } })).rejects.toMatchObject({ kind: "invalid_request" });
    await expect(call("h", { cookies: { session: "x" } })).rejects.toMatchObject({ kind: "invalid_request" });
  });

  test.each(["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b", "\u007f", "snow ☃", "\ud83d\ude00"])(
    "header value %j is refused",
    async (value) => {
      await expect(call("h", { headers: { "X-Fine": value } })).rejects.toMatchObject({ kind: "invalid_request" });
      await expect(call("h", { headers: { "X-Fine": [value] } })).rejects.toMatchObject({ kind: "invalid_request" });
    },
  );

  test("line breaks in a cookie or a query are encoded", async () => {
    await call("h", { cookies: { ok: "a\r\nb; c=d" }, headers: { "X-Fine": "fine\tü" } });
    expect(server.last().headers.cookie).toBe("ok=a%0D%0Ab%3B%20c%3Dd");
  });
});

describe("what parameters must fit", () => {
  let call: Call;
  beforeAll(async () => {
    ({ call } = await defined(adapter, {
      openapi: "3.0.0",
      servers: [{ url: server.origin }],
      paths: {
        "/x/{id}": {
          parameters: [
            { name: "id", in: "path", required: true, schema: { type: "integer" } },
            { name: "limit", in: "query", schema: { type: "integer", maximum: 10 } },
            { name: "X-Shared", in: "header", required: true, schema: { type: "string" } },
          ],
          get: {
            operationId: "get",
            parameters: [
              { name: "limit", in: "query", required: true, schema: { type: "string", enum: ["all", "few"] } },
              { name: "X-Shared", in: "header", schema: { type: "string", pattern: "^(a+)+$" } },
              { name: "when", in: "query", schema: { type: "string", format: "date-time" } },
            ],
          },
          post: {
            operationId: "post",
            parameters: [{ name: "X-Shared", in: "header", schema: { type: "string" } }],
            requestBody: {
              required: true,
              content: { "application/json": { schema: { $ref: "#/components/schemas/Thing" } } },
            },
          },
        },
      },
      components: {
        schemas: {
          Thing: {
            type: "object",
            required: ["id", "name", "secret"],
            properties: {
              id: { type: "integer", readOnly: true },
              secret: { type: "string", writeOnly: true },
              name: { type: "string", nullable: true },
              age: { type: "number", minimum: 0, exclusiveMinimum: true },
              list: { type: "array", items: { type: "integer" } },
            },
          },
        },
      },
    }));
  });

  const good = { path: { id: 1 }, query: { limit: "all" } };
  test.each([
    ["get", undefined, 'the parameters must have property "path"; the parameters must have property "query"'],
    ["get", [], "the parameters must be object"],
    ["get", "x", "the parameters must be object"],
    ["get", { ...good, path: {} }, '/path must have property "id"'],
    ["get", { ...good, path: { id: "1" } }, "/path/id must be integer"],
    ["get", { ...good, query: {} }, '/query must have property "limit"'],
    ["get", { ...good, query: { limit: 5 } }, '/query/limit must be string; /query/limit must be one of "all", "few"'],
    ["get", { ...good, query: { limit: "some" } }, '/query/limit must be one of "all", "few"'],
    ["get", { ...good, query: { limit: "all", other: 1 } }, '/query may not have property "other"'],
    [
      "get",
      { ...good, query: JSON.parse('{"limit":"all","__proto__":1}') },
      '/query may not have property "__proto__"',
    ],
    ["get", { ...good, query: { limit: "all", when: "yesterday" } }, '/query/when must match format "date-time"'],
    ["get", { ...good, body: {} }, 'the parameters may not have property "body"'],
    ["post", { path: { id: 1 } }, 'the parameters must have property "body"'],
    ["post", { path: { id: 1 }, body: { name: 1 } }, "/body/name must be string,null"],
    ["post", { path: { id: 1 }, body: { name: null, age: 0 } }, "/body/age must be > 0"],
    [
      "post",
      { path: { id: 1 }, body: { name: "a", list: [1, "b", 3, "d"] } },
      "/body/list/1 must be integer; /body/list/3 must be integer",
    ],
  ])("%s with %j is refused naming the place", async (toolId, parameters, problems) => {
    const before = server.requests.length;
    await expect(call(toolId, parameters)).rejects.toMatchObject({
      kind: "invalid_request",
      message: `Parameters do not fit: ${problems}`,
    });
    expect(server.requests).toHaveLength(before);
  });

  test("at most ten problems are named", async () => {
    const failure = await call("post", { path: { id: 1 }, body: { name: "a", list: Array(5_000).fill("x") } }).catch(
      (error: Error) => error,
    );
    expect(String((failure as Error).message).split(";")).toHaveLength(10);
  });

  test("fields at fault are given apart, as dotted paths", async () => {
    await expect(call("get", { path: { id: "x" }, query: { limit: "all" } })).rejects.toMatchObject({
      details: { fields: [{ field: "path.id", description: "must be integer" }] },
    });
  });

  test("a property that only answers carry is not asked for, and null stands where nullable allows it", async () => {
    await call("post", { path: { id: 1 }, body: { name: null } });
    expect(server.last().body.toString()).toBe('{"name":null}');
  });

  test("a pattern that would hold a backtracking engine for hours is answered at once", async () => {
    await expect(call("get", { ...good, headers: { "X-Shared": `${"a".repeat(40)}!` } })).rejects.toMatchObject({
      kind: "invalid_request",
    });
    await call("get", { ...good, headers: { "X-Shared": "aaaa" } });
  });
});
