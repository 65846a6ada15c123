/**
 * Requests as hostile or careless clients send them: malformed bodies, odd media types, repeated names, bad escapes, wrong
 * methods, oversized bodies, prototype keys. Whatever comes, the answer is the envelope, and never a 5xx.
 */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../src/limits.ts";
import { openTwoFaces, type TwoFaces } from "../control-plane/two-faces.ts";
import { envelopeOf, type RawAnswer, rawRequest, rawUntilClosed } from "./raw-http.ts";

let faces: TwoFaces;
let port: number;
beforeAll(async () => {
  faces = await openTwoFaces({
    mount: (app: FastifyInstance) => {
      app.get("/throws", () => {
        throw new TypeError("secret of the mounted route");
      });
    },
  });
  port = faces.gateway.address.port;
});
afterAll(() => faces.close());

interface Sent {
  readonly contentType?: string | readonly string[] | undefined;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}

function send(method: string, path: string, { contentType, headers = [], body }: Sent = {}): Promise<RawAnswer> {
  const types = contentType === undefined ? [] : typeof contentType === "string" ? [contentType] : contentType;
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Connection: close",
    ...types.map((type) => `Content-Type: ${type}`),
    ...headers,
    ...(body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    "",
    "",
  ].join("\r\n");
  return rawRequest(port, body === undefined ? head : [head, body]);
}

const post = (body: string | Buffer, contentType: string | readonly string[] = "application/json") =>
  send("POST", "/processes", { contentType, body });

describe("R-101: malformed JSON bodies", () => {
  it.each([
    ["nothing but space", " "],
    ["a lone brace", "{"],
    ["a trailing comma", '{"code":"1",}'],
    ["single quotes", "{'code':'1'}"],
    ["a comment", '{"code":"1"/*x*/}'],
    ["two documents", '{"code":"1"}{}'],
    ["NaN", '{"code":"1","timeoutMs":NaN}'],
    ["a leading zero", '{"code":"1","timeoutMs":01}'],
    ["a raw line break in a string", '{"code":"a\nb"}'],
    ["an unfinished escape", '{"code":"\\u12"}'],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ["an overlong UTF-8 form", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ["UTF-16", Buffer.from('{"code":"1"}', "utf16le")],
    ["a NUL byte", '{"code":"1"}\u0000'],
    ["an array", "[]"],
    ["a string", '"code"'],
    ["null", "null"],
    ["a number", "1e400"],
    ["a code that is no string", '{"code":[1]}'],
    ["no code", "{}"],
  ])("%s is 400 in the envelope", async (_title, body) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect(envelopeOf(answer).code).toBe("invalid_request");
  });

  it.each([
    ["a byte order mark", '\uFEFF{"code":"1"}'],
    ["space around", ' \r\n\t{"code":"1"} '],
    ["escapes", '{"\\u0063ode":"\\ud83d\\ude00"}'],
    ["a key twice", '{"code":1,"code":"1"}'],
    ["unknown keys", '{"code":"1","other":{"a":[1]}}'],
  ])("%s is taken", async (_title, body) => {
    expect((await post(body)).status).toBe(201);
  });
});

describe("R-102: media types", () => {
  const good = '{"code":"1"}';
  const bad = '{"code":1}';

  it.each([
    "application/json",
    "Application/JSON",
    "application/json;charset=utf-8",
    "application/json; charset=UTF-8",
    'application/json; charset="utf-8"',
    "application/json\t",
    "application/json ; version=1",
  ])("%j is parsed and validated", async (type) => {
    expect((await post(good, type)).status).toBe(201);
    expect((await post(bad, type)).status).toBe(400);
  });

  it.each([
    "application/json ;x",
    "application/json, text/plain",
    "application/json;charset=latin1",
    "application/json; charset=utf-16",
    "text/json",
    "application/jsonx",
    "application/json-patch+json",
    "application/ld+json",
    "text/plain",
    "text/plain; application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "json",
    "application/",
    "*/*",
    "",
    "application/json\u00a0",
  ])("%j is 415, whatever the body", async (type) => {
    for (const body of [good, bad]) {
      const answer = await post(body, type);
      expect(answer.status).toBe(415);
      expect(envelopeOf(answer).code).toBe("unsupported_media_type");
    }
  });

  it("no media type is 415", async () => {
    expect((await send("POST", "/processes", { body: good })).status).toBe(415);
    expect((await send("POST", "/processes")).status).toBe(415);
  });

  it("two media types are validated as the first or refused", async () => {
    expect((await post(bad, ["application/json", "text/plain"])).status).toBe(400);
    expect((await post(good, ["text/plain", "application/json"])).status).toBe(415);
  });

  it.each(["gzip", "br", "deflate", "identity, gzip", "x"])("Content-Encoding %s is 415", async (encoding) => {
    const answer = await send("POST", "/processes", {
      contentType: "application/json",
      headers: [`Content-Encoding: ${encoding}`],
      body: good,
    });
    expect(answer.status).toBe(415);
  });

  it("a row with media types of its own takes those and no others", async () => {
    const patch = (contentType: string) => send("PATCH", "/services/s/config", { contentType, body: "[]" });
    expect((await patch("application/json-patch+json")).status).toBe(200);
    expect((await patch("application/json")).status).toBe(200);
    expect((await patch("application/merge-patch+json")).status).toBe(415);
  });
});

describe("bodies that may be left out", () => {
  it.each([
    ["no body at all", {}],
    ["an empty body", { body: "" }],
    ["an empty body called a form, as curl -d '' does", { body: "", contentType: "application/x-www-form-urlencoded" }],
    ["an empty object", { body: "{}", contentType: "application/json" }],
    [
      "an empty chunked body",
      { headers: ["Transfer-Encoding: chunked"], contentType: "application/json", chunked: true },
    ],
  ])("a run signal with %s is accepted", async (_title, sent) => {
    if ("chunked" in sent) {
      const head = `POST /processes/5/signals/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
      expect((await rawRequest(port, head)).status).toBe(200);
    } else {
      expect((await send("POST", "/processes/5/signals/run", sent)).status).toBe(200);
    }
    expect(faces.domain.seen.at(-1)?.input).toEqual({ id: 5, force: false });
  });

  it("a body that is needed and empty is refused", async () => {
    expect((await post("")).status).toBe(400);
    expect((await send("PATCH", "/services/s/config", { contentType: "application/json", body: "" })).status).toBe(400);
  });

  it("a body cannot change which record the path names", async () => {
    const answer = await send("POST", "/processes/5/signals/run", {
      contentType: "application/json",
      body: '{"id":6,"force":true}',
    });
    expect(answer.status).toBe(200);
    expect(faces.domain.seen.at(-1)?.input).toEqual({ id: 5, force: true });
  });
});

describe("R-103: query strings", () => {
  it.each(["limit=1&limit=2", "limit=1&limit=1", "ref=a&x=1&ref=b", "l%69mit=1&limit=2"])(
    "a repeated known name is 400: %s",
    async (query) => {
      const answer = await send("GET", `/processes?${query}`);
      expect(answer.status).toBe(400);
      expect(envelopeOf(answer).error).toMatch(/"(limit|ref)"/);
    },
  );

  it.each([
    "limit[]=5",
    "ref[__proto__]=x",
    "__proto__=x&__proto__=y",
    "constructor[prototype][p]=1",
    "unknown=1&unknown=2",
    "%zz=1",
    "=",
    "&&&",
    "?",
  ])("unknown and odd names are ignored: %s", async (query) => {
    expect((await send("GET", `/processes?${query}`)).status).toBe(200);
    expect(faces.domain.seen.at(-1)?.input).toEqual({ limit: 20 });
    expect(({} as { p?: unknown }).p).toBeUndefined();
  });

  it.each(["limit=", "limit=+5", "limit=5.0", "limit=0x5", "limit=1e1", "limit=-1", "limit=%20", "limit=five"])(
    "a number that is not plain digits is 400: %s",
    async (query) => {
      expect((await send("GET", `/processes?${query}`)).status).toBe(400);
    },
  );

  it("thousands of names are no trouble", async () => {
    const query = Array.from({ length: 2_400 }, (_, at) => `a${at}=`).join("&");
    expect(query.length).toBeLessThan(16_000);
    const started = performance.now();
    expect((await send("GET", `/processes?${query}`)).status).toBe(200);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe("R-104: paths", () => {
  it.each([
    "/processes/%",
    "/processes/%E0%A4%A",
    "/processes/%zz",
    "/processes/%C0%AF",
    "/processes/%00",
    "/processes/1%2F..",
    "/processes/",
    "/processes//output",
    "//processes",
    "/%70rocesses/x",
    "/processes/1/../2",
    "/processes/-1",
    "/processes/0",
    "/processes/1.0",
    "/processes/١",
    `/processes/${"9".repeat(400)}`,
    "*",
    "/%",
  ])("%j is 400 or 404 in the envelope", async (path) => {
    const answer = await send("GET", path);
    expect([400, 404]).toContain(answer.status);
    envelopeOf(answer);
    expect(answer.headers["x-request-id"]).toBeDefined();
  });

  it("a path of 100 KB is refused in the envelope", async () => {
    const answer = await send("GET", `/processes/${"a".repeat(100_000)}`);
    expect([414, 431]).toContain(answer.status);
    envelopeOf(answer);
  });

  it("an id that is long but fits the header is still only a wrong id", async () => {
    expect((await send("GET", `/processes/${"a".repeat(8_000)}`)).status).toBe(400);
  });
});

describe("R-105: methods", () => {
  const paths = ["/processes", "/processes/1", "/processes/1/signals/run", "/services/s/config", "/healthz"];

  it.each(paths)("HEAD of %s is GET without its body, or 405", async (path) => {
    const head = await send("HEAD", path);
    const get = await send("GET", path);
    expect(head.status).toBe(get.status);
    expect(head.body).toBe("");
    expect(head.headers["content-type"]).toBe(get.headers["content-type"]);
    if (get.status === 200) expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  });

  it.each(paths.flatMap((path) => ["PUT", "TRACE", "PROPFIND", "LINK"].map((method) => [method, path] as const)))(
    "%s %s is 405 with Allow",
    async (method, path) => {
      const answer = await send(method, path, { contentType: "application/json", body: "{}" });
      expect(answer.status).toBe(405);
      expect(envelopeOf(answer).code).toBe("method_not_allowed");
      expect(answer.headers.allow).toContain("OPTIONS");
      expect(answer.headers.allow?.split(", ")).not.toContain(method);
    },
  );

  it("Allow lists exactly what the path answers to", async () => {
    expect((await send("PUT", "/processes/1")).headers.allow).toBe("DELETE, GET, HEAD, OPTIONS");
    expect((await send("GET", "/processes/1/signals/run")).headers.allow).toBe("OPTIONS, POST");
  });

  it("OPTIONS tells the methods, and of an unknown path nothing", async () => {
    const answer = await send("OPTIONS", "/processes");
    expect(answer.status).toBe(204);
    expect(answer.headers.allow).toBe("GET, HEAD, OPTIONS, POST");
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    expect((await send("OPTIONS", "/nothing")).status).toBe(404);
  });

  it("a method nobody knows is 400 in the envelope", async () => {
    const answer = await send("FOO", "/processes");
    expect(answer.status).toBe(400);
    envelopeOf(answer);
  });

  it("an unknown path is 404 for every method", async () => {
    for (const method of ["GET", "POST", "PUT", "DELETE", "TRACE"]) {
      const answer = await send(method, "/nothing/here", { contentType: "application/json", body: "{}" });
      expect(answer.status).toBe(404);
      expect(envelopeOf(answer).code).toBe("not_found");
    }
  });
});

describe("R-107: deep nesting", () => {
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  it.each([
    ["the whole body", "POST", "/processes", deep(100_000)],
    ["envConfig", "POST", "/processes", `{"code":"1","envConfig":{"a":${deep(100_000)}}}`],
    ["a patch value", "PATCH", "/services/s/config", `[{"op":"add","path":"/a","value":${deep(100_000)}}]`],
    ["unclosed", "POST", "/processes", "[".repeat(1_000_000)],
  ])("%s is 400", async (_title, method, path, body) => {
    const started = performance.now();
    const answer = await send(method, path, { contentType: "application/json", body });
    expect(answer.status).toBe(400);
    expect(envelopeOf(answer).code).toBe("invalid_request");
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe("R-108: large bodies", () => {
  const tenMegabytes = 10 * 1024 * 1024;
  const large = Buffer.alloc(tenMegabytes, 0x20);
  const head = (fields: string) =>
    `POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${fields}\r\n\r\n`;

  it("announced by Content-Length: 413, readable before the end", async () => {
    const answer = await rawRequest(port, [head(`Content-Length: ${tenMegabytes}`), large]);
    expect(answer.status).toBe(413);
    expect(envelopeOf(answer).code).toBe("too_large");
  });

  it("chunked: 413, and the connection can be used again", async () => {
    const chunk = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(0x100000, 0x20), Buffer.from("\r\n")]);
    const chunks = Array.from({ length: 10 }, () => chunk);
    const next = "GET /processes/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const text = await rawUntilClosed(port, [head("Transfer-Encoding: chunked"), ...chunks, "0\r\n\r\n", next]);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 200"]);
  });

  it("with Expect: 413 at once and no 100 Continue", async () => {
    const answer = await rawRequest(port, head(`Content-Length: ${tenMegabytes}\r\nExpect: 100-continue`));
    expect(answer.text).not.toContain("100 Continue");
    expect(answer.status).toBe(413);
    expect(answer.headers.connection).toBe("close");
  });

  it("with Expect and the wrong media type: 415 and no 100 Continue", async () => {
    const text =
      "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    const answer = await rawRequest(port, text);
    expect(answer.text).not.toContain("100 Continue");
    expect(answer.status).toBe(415);
  });

  it("with Expect and a body that fits: 100 Continue, then the answer", async () => {
    const body = '{"code":"1"}';
    const answer = await rawRequest(port, [
      head(`Content-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close`),
      body,
    ]);
    expect(answer.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created/);
  });

  it("a body of exactly the limit is read, one byte more is not", async () => {
    const fits = `{"code":"1"}${" ".repeat(bodyBytesMax - 12)}`;
    expect((await post(fits)).status).toBe(201);
    expect((await post(`${fits} `)).status).toBe(413);
  });

  it("a body that ends early leaves the server well", async () => {
    await expect(rawRequest(port, `${head("Content-Length: 100")}{"code"`, 100)).rejects.toThrow("No answer");
    expect((await post('{"code":"1"}')).status).toBe(201);
  });
});

describe("R-109: prototype keys", () => {
  it.each([
    '{"code":"1","__proto__":{"autorun":false}}',
    '{"code":"1","constructor":{"prototype":{"x":1}}}',
    '{"code":"1","envConfig":{"__proto__":{"x":1}}}',
    '{"code":"1","envConfig":{"a":[{"constructor":{"prototype":{"x":1}}}]}}',
  ])("%s is refused and reaches nothing", async (body) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect(envelopeOf(answer).code).toBe("invalid_request");
    expect(({} as { x?: unknown; autorun?: unknown }).x).toBeUndefined();
    expect(({} as { autorun?: unknown }).autorun).toBeUndefined();
  });
});

describe("R-110: faults keep their shape", () => {
  it("a mounted route that throws is the fixed 500", async () => {
    const answer = await send("GET", "/throws", { headers: ["X-Request-Id: mounted-1"] });
    expect(answer.status).toBe(500);
    expect(envelopeOf(answer).code).toBe("internal");
    expect(answer.text).not.toMatch(/secret|TypeError/);
    expect(answer.headers["x-request-id"]).toBe("mounted-1");
    expect(faces.lines.filter((line) => line.level === "error" && line.fields.requestId === "mounted-1")).toHaveLength(
      1,
    );
  });

  it.each([
    ["no HTTP at all", "hello\r\n\r\n"],
    ["a bad header", "GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n"],
    ["an unknown version", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"],
    [
      "both lengths",
      "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["two lengths", "POST /processes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"],
    ["no Host", "GET /processes HTTP/1.1\r\n\r\n"],
  ])("%s is 400 in the envelope", async (_title, text) => {
    const answer = await rawRequest(port, text);
    expect(answer.status).toBe(400);
    envelopeOf(answer);
  });

  it("headers too large or too many are refused in the envelope", async () => {
    const large = await send("GET", "/processes", { headers: [`X-Large: ${"a".repeat(20_000)}`] });
    expect(large.status).toBe(431);
    envelopeOf(large);
    const many = await send("GET", "/processes", { headers: Array.from({ length: 300 }, (_, at) => `X-${at}: 1`) });
    expect([413, 431]).toContain(many.status);
    envelopeOf(many);
  });

  it("every request is in the log once, with its id, route and status", async () => {
    await send("GET", "/processes/1", { headers: ["X-Request-Id: line-1"] });
    await send("GET", "/nothing?secret=1", { headers: ["X-Request-Id: line-2"] });
    await expect
      .poll(() => faces.lines.filter((line) => line.event === "http-request" && line.fields.requestId === "line-2"))
      .toHaveLength(1);
    const lines = faces.lines.filter((line) => line.event === "http-request");
    expect(lines.filter((line) => line.fields.requestId === "line-1")).toMatchObject([
      { level: "debug", fields: { route: "/processes/:id", status: 200, method: "GET", caller: "anonymous" } },
    ]);
    expect(JSON.stringify(lines.at(-1))).not.toContain("secret");
  });
});
