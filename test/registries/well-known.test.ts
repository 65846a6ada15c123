/** The well-known document: what is read, what is ignored, and what is wrong with it in words. */
import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import type { Advertisement } from "../../src/ports/registry-reader.ts";
import { readWellKnown, wellKnownUrl } from "../../src/registries/well-known.ts";
import { bytes } from "./fixtures.ts";

const origin = "https://reg.test/.well-known/registry.json";

function read(document: unknown, from = origin): Advertisement {
  return readWellKnown(document instanceof Uint8Array ? document : bytes(document), new URL(from));
}

const good = { id: "r", definitions: { v1: "/d" } };
const withAuth = (auth: unknown) => ({ ...good, auth });

function faultOf(document: unknown): string {
  try {
    read(document);
  } catch (error) {
    if (!isFailure(error)) throw error;
    expect(error.kind).toBe("upstream_failed");
    const subject = 'The well-known document of "reg.test" ';
    expect(error.message.startsWith(subject)).toBe(true);
    return error.message.slice(subject.length);
  }
  return expect.unreachable("The document was accepted");
}

test("the document is at the root of the origin, whatever the path of the base URL", () => {
  expect(wellKnownUrl("https://reg.test/deep/path/?q=1#f")).toBe(origin);
  expect(wellKnownUrl("http://127.0.0.1:8080")).toBe("http://127.0.0.1:8080/.well-known/registry.json");
});

describe("capabilities", () => {
  test.each([
    ["d", "https://reg.test/.well-known/d"],
    ["/d", "https://reg.test/d"],
    ["../d", "https://reg.test/d"],
    ["?x=1", "https://reg.test/.well-known/registry.json?x=1"],
    ["//reg.test/d", "https://reg.test/d"],
    ["https://reg.test/d?tenant=7", "https://reg.test/d?tenant=7"],
    ["https://REG.test:443/d#f", "https://reg.test/d"],
    ["  /d  ", "https://reg.test/d"],
  ])("%j is %s", (v1, url) => {
    expect(read({ id: "r", definitions: { v1 }, modules: { v1 } })).toEqual({
      id: "r",
      definitions: url,
      modules: url,
      auth: null,
    });
  });

  test("relative URLs start from where the document came from", () => {
    expect(read({ id: "r", modules: { v1: "m" } }, "https://cdn.test/a/b.json").modules).toBe("https://cdn.test/a/m");
  });

  test.each([
    "https://evil.test/d",
    "//evil.test/d",
    "http://reg.test/d",
    "https://reg.test:8443/d",
    "https://reg.test.evil.test/d",
    "https://reg.test@evil.test/d",
    "\\\\evil.test\\d",
    "https://u:p@reg.test/d",
    "javascript:1",
    "file:///d",
    "data:,x",
    "http://[bad",
    "https://",
  ])("%j is refused", (v1) => {
    expect(faultOf({ id: "r", definitions: { v1 } })).toMatch(/^is malformed: in "definitions", "v1" /);
  });

  test.each([[42], [""], ["   "], [null], [["/d"]], [{ url: "/d" }], [true]])("the value %j is refused", (v1) => {
    expect(faultOf({ id: "r", modules: { v1 } })).toMatch(/^is malformed: in "modules", "v1" is (not a string|blank)$/);
  });

  test.each([[[]], ["/d"], [null], [7]])("versions that are %j are refused", (definitions) => {
    expect(faultOf({ id: "r", definitions })).toBe('is malformed: "definitions" is not an object');
  });

  test("other versions and other keys are ignored, whatever they hold", () => {
    const document = {
      id: " r ",
      definitions: { v9: 42, v3: "https://evil.test/" },
      modules: { v1: "/m", v2: null },
      tools: { v1: 4 },
      name: { nested: [] },
    };
    expect(read(document)).toEqual({ id: "r", definitions: null, modules: "https://reg.test/m", auth: null });
  });
});

describe("the document itself", () => {
  test.each([["null"], ["[]"], ["42"], ['"text"'], ["true"]])("%s is refused", (text) => {
    expect(faultOf(text)).toBe("is malformed: it is not a JSON object");
  });

  test.each([
    ["", "is not valid JSON"],
    ["<html>login</html>", "is not valid JSON"],
    ["{'id':1}", "is not valid JSON at position 1"],
    ['{"id":"r"', "is not valid JSON at position 9"],
    [`${"[".repeat(100_000)}`, "nests deeper than 64 levels"],
  ])("the text %.20s is refused", (text, fault) => {
    expect(faultOf(text)).toBe(fault);
  });

  test.each([
    [{}, '"id" is missing'],
    [{ id: 7 }, '"id" is not a string'],
    [{ id: "  " }, '"id" is blank'],
    [{ id: "a b" }, '"id" may hold only letters, digits, "_" and "-"'],
    [{ id: "a/b" }, '"id" may hold only letters, digits, "_" and "-"'],
    [{ id: "a.b" }, '"id" may hold only letters, digits, "_" and "-"'],
    [{ id: "é" }, '"id" may hold only letters, digits, "_" and "-"'],
    [{ id: "a\n" + "b" }, '"id" may hold only letters, digits, "_" and "-"'],
    [{ id: "x".repeat(257) }, '"id" is longer than 256 characters'],
  ])("%j is refused", (document, fault) => {
    expect(faultOf(document)).toBe(`is malformed: ${fault}`);
  });

  test("a byte order mark is skipped; UTF-16 and broken UTF-8 are refused", () => {
    const text = JSON.stringify(good);
    expect(read(bytes(`\uFEFF${text}`)).id).toBe("r");
    expect(faultOf(Buffer.from(`\uFEFF${text}`, "utf16le"))).toBe("is not valid UTF-8");
    expect(faultOf(Buffer.from(text, "utf16le"))).toMatch(/^is not valid JSON/);
    expect(faultOf(Buffer.from([...bytes('{"id":"'), 0xff, 0xfe, ...bytes('"}')]))).toBe("is not valid UTF-8");
  });

  test.each([
    ['{"id":"r","__proto__":{"auth":{"type":"apiKey","name":"X"}}}', "__proto__"],
    ['\uFEFF{"id":"r","__proto__":{"auth":{"type":"apiKey","name":"X"}}}', "__proto__"],
    ['{"id":"r","constructor":{"prototype":{"polluted":1}}}', "constructor"],
    ['{"id":"r","definitions":{"__proto__":{"v1":"/d"}}}', "__proto__"],
  ])("%s is refused, and no prototype is touched", (text, name) => {
    expect(faultOf(text)).toBe(`has the forbidden key "${name}"`);
    expect(Object.hasOwn(Object.prototype, "polluted") || Object.hasOwn(Object.prototype, "auth")).toBe(false);
  });

  test("of a key that occurs twice the last one counts", () => {
    const text = `{"id":"r","auth":{"type":"apiKey","name":"X-A"},"auth":{"type":"oauth2","tokenEndpoint":"https://idp.test/t"}}`;
    expect(read(text).auth).toEqual({ type: "oauth2", tokenEndpoint: "https://idp.test/t", scopes: [] });
  });

  test("no error repeats what the document says beyond a few printable characters", () => {
    const canary = "CANARY-7f3";
    for (const document of [
      `{"${canary}": 1e999}`,
      `{"${canary}": {"__proto__": 1}}`,
      `${canary}`,
      { id: `${canary} x` },
      { id: "r", definitions: { v1: `https://evil.test/${canary}` } },
      withAuth({ type: "oauth2", tokenEndpoint: `mailto:${canary}` }),
    ])
      expect(faultOf(document)).not.toContain(canary);
  });
});

describe("the advertised method", () => {
  test.each([
    [
      { type: "apiKey", name: "  X-Key  " },
      { type: "apiKey", headerName: "X-Key" },
    ],
    [
      { type: " apiKey ", name: "Authorization", in: "header" },
      { type: "apiKey", headerName: "Authorization" },
    ],
    [
      { type: "oauth2", tokenEndpoint: " https://idp.test " },
      { type: "oauth2", tokenEndpoint: "https://idp.test/", scopes: [] },
    ],
    [
      {
        type: "oauth2",
        grantType: "client_credentials",
        tokenEndpoint: "http://idp.test/t?x=1#f",
        scopes: [{ id: "a", description: "A" }, { id: " b " }, { id: "a", more: 1 }],
      },
      {
        type: "oauth2",
        tokenEndpoint: "http://idp.test/t?x=1",
        scopes: [
          { id: "a", description: "A" },
          { id: "b", description: "" },
        ],
      },
    ],
  ])("%j is understood", (auth, expected) => {
    expect(read(withAuth(auth)).auth).toEqual(expected);
  });

  const inFault = '"in" must be "header"; query-param keys are not supported';
  test.each([
    [{ type: "jwt" }, "jwt", ""],
    [{ type: "APIKEY", name: "X" }, "APIKEY", ""],
    [{ type: "__proto__" }, "__proto__", ""],
    [{ type: `a"b\n${"x".repeat(100)}` }, `a?b?${"x".repeat(60)}…`, ""],
    [{ type: "apiKey", name: "k", in: "query" }, "apiKey", inFault],
    [{ type: "apiKey", in: "cookie" }, "apiKey", inFault],
    [{ type: "apiKey", name: "k", in: null }, "apiKey", inFault],
    [{ type: "apiKey", name: "k", in: "Header" }, "apiKey", inFault],
    [
      { type: "oauth2", grantType: "authorization_code" },
      "oauth2",
      'grantType "authorization_code" is not supported, only "client_credentials" is',
    ],
    [
      { type: "oauth2", grantType: 7, tokenEndpoint: "x" },
      "oauth2",
      'its grantType is not supported, only "client_credentials" is',
    ],
    [{ type: "oauth2", grantType: null }, "oauth2", 'its grantType is not supported, only "client_credentials" is'],
  ])("%j is unsupported, which browsing does not mind", (auth, declared, reason) => {
    expect(read(withAuth(auth)).auth).toEqual({ type: "unsupported", declared, reason });
  });

  test.each([
    ["X Key", "holds characters"],
    ["X-K\r\nX-Evil: 1", "holds characters"],
    ["X-Key:", "holds characters"],
    ["é", "holds characters"],
    ["", "is blank"],
    ["   ", "is blank"],
    ["x".repeat(257), "is longer than"],
    ...[
      "Host",
      "Cookie",
      "Content-Length",
      "Transfer-Encoding",
      "Connection",
      "Keep-Alive",
      "Upgrade",
      "Expect",
      "TE",
      "Trailer",
      "Set-Cookie",
      "Proxy-Authorization",
      "Sec-Fetch-Site",
      "X-Forwarded-For",
      "Accept",
      "Accept-Encoding",
      "User-Agent",
      "Range",
      "Content-Type",
    ].map((name) => [name, `"${name.toLowerCase()}" is reserved`]),
  ])("a key in the header %j is unsupported", (name = "", reason = "") => {
    const { auth } = read(withAuth({ type: "apiKey", name }));
    expect(auth).toMatchObject({ type: "unsupported", declared: "apiKey" });
    expect(auth?.type === "unsupported" && auth.reason).toContain(reason);
  });

  test.each([
    ["bearer", '"auth" is not an object'],
    [[], '"auth" is not an object'],
    [null, '"auth" is not an object'],
    [{}, 'in "auth", "type" is missing'],
    [{ type: " " }, 'in "auth", "type" is blank'],
    [{ type: 1 }, 'in "auth", "type" is not a string'],
    [{ type: "apiKey" }, 'in "auth", "name" is missing'],
    [{ type: "apiKey", name: 1 }, 'in "auth", "name" is not a string'],
    [{ type: "oauth2" }, 'in "auth", "tokenEndpoint" is missing'],
    [{ type: "oauth2", tokenEndpoint: "/t" }, 'in "auth", "tokenEndpoint" is not an absolute URL'],
    [{ type: "oauth2", tokenEndpoint: "//idp.test/t" }, 'in "auth", "tokenEndpoint" is not an absolute URL'],
    [
      { type: "oauth2", tokenEndpoint: "mailto:a@b.test" },
      'in "auth", "tokenEndpoint" is neither an http nor an https URL',
    ],
    [
      { type: "oauth2", tokenEndpoint: "https://u:p@idp.test/" },
      'in "auth", "tokenEndpoint" holds a user name or password',
    ],
  ])("%j is malformed", (auth, fault) => {
    expect(faultOf(withAuth(auth))).toBe(`is malformed: ${fault}`);
  });

  test.each([
    ["a b", '"scopes" is not an array'],
    [null, '"scopes" is not an array'],
    [{ a: 1 }, '"scopes" is not an array'],
    [[42], "in scope 1, there is no object"],
    [[{ id: "a" }, {}], 'in scope 2, "id" is missing'],
    [[{ id: " " }], 'in scope 1, "id" is blank'],
    [[{ id: "a b" }], 'in scope 1, "id" holds blanks or control characters'],
    [[{ id: "a", description: 7 }], 'in scope 1, "description" is not a string'],
  ])("scopes %j are malformed", (scopes, fault) => {
    const auth = { type: "oauth2", tokenEndpoint: "https://idp.test/", scopes };
    expect(faultOf(withAuth(auth))).toBe(`is malformed: in "auth", ${fault}`);
  });
});
