/** Which credentials reach the target, which never do, and that no error shows one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attachCredentials } from "../../src/adapters/openapi/security.ts";
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

const securitySchemes = {
  header: { type: "apiKey", in: "header", name: "X-Key", description: "From the portal" },
  query: { type: "apiKey", in: "query", name: "api key" },
  cookie: { type: "apiKey", in: "cookie", name: "session" },
  basic: { type: "http", scheme: "Basic" },
  bearer: { type: "http", scheme: "bearer" },
  token: { type: "http", scheme: "Token" },
  oauth: { type: "oauth2", flows: {} },
  openid: { type: "openIdConnect", openIdConnectUrl: "https://example.com" },
  referred: { $ref: "#/components/securitySchemes/bearer" },
  digest: { type: "http", scheme: "digest" },
  mutual: { type: "mutualTLS" },
  badHost: { type: "apiKey", in: "header", name: "Host" },
  badName: { type: "apiKey", in: "header", name: "X\r\nY" },
  rawAuthorization: { type: "apiKey", in: "header", name: "Authorization" },
};

const operations: Record<string, unknown> = {
  inherited: {},
  none: { security: [] },
  header: { security: [{ header: [] }] },
  query: { security: [{ query: [] }] },
  cookie: { security: [{ cookie: [] }] },
  basic: { security: [{ basic: [] }] },
  bearer: { security: [{ bearer: [] }] },
  token: { security: [{ token: [] }] },
  oauth: { security: [{ oauth: ["read"] }] },
  openid: { security: [{ openid: [] }] },
  referred: { security: [{ referred: [] }] },
  rawAuthorization: { security: [{ rawAuthorization: [] }] },
  both: { security: [{ header: [], query: [], cookie: [] }] },
  either: { security: [{ header: [] }, { bearer: [] }] },
  optional: { security: [{}, { bearer: [] }] },
  digest: { security: [{ digest: [] }] },
  mutual: { security: [{ mutual: [] }, { badHost: [] }] },
  undefinedScheme: { security: [{ nowhere: [] }] },
};

const secrets = {
  header: "canary-h",
  query: "canary q&",
  cookie: "canary-c;",
  basic: { username: "user", password: "canary:pä" },
  bearer: "canary-b",
  token: "canary-t",
  oauth: "canary-o",
  openid: "canary-i",
  referred: "canary-r",
  rawAuthorization: "canary-raw",
};

function documentOf(): object {
  const paths = Object.entries(operations).map(([operationId, more]) => [
    `/${operationId}`,
    {
      get: {
        operationId,
        parameters: [
          { name: "q", in: "query", schema: {} },
          { name: "other", in: "cookie", schema: {} },
        ],
        ...(more as object),
      },
    },
  ]);
  return {
    openapi: "3.0.0",
    servers: [{ url: `${server.origin}/api` }],
    security: [{ bearer: [] }],
    components: { securitySchemes },
    paths: Object.fromEntries(paths),
  };
}

describe("credentials", () => {
  let call: Call;
  beforeAll(async () => {
    ({ call } = await defined(adapter, documentOf()));
  });

  const basic = `Basic ${Buffer.from("user:canary:pä").toString("base64")}`;
  test.each<readonly [string, object]>([
    ["inherited", { authorization: "Bearer canary-b" }],
    ["none", {}],
    ["header", { "x-key": "canary-h" }],
    ["query", { query: "q=1&api%20key=canary%20q%26" }],
    ["cookie", { cookie: "session=canary-c%3B" }],
    ["basic", { authorization: basic }],
    ["bearer", { authorization: "Bearer canary-b" }],
    ["token", { authorization: "Token canary-t" }],
    ["oauth", { authorization: "Bearer canary-o" }],
    ["openid", { authorization: "Bearer canary-i" }],
    ["referred", { authorization: "Bearer canary-r" }],
    ["rawAuthorization", { authorization: "canary-raw" }],
    ["both", { "x-key": "canary-h", query: "q=1&api%20key=canary%20q%26", cookie: "session=canary-c%3B" }],
    ["either", { "x-key": "canary-h" }],
    ["optional", { authorization: "Bearer canary-b" }],
  ])("%s sends exactly %j", async (toolId, expected) => {
    await call(toolId, { query: { q: 1 } }, { secrets });
    const { headers, query } = server.last();
    const { authorization, cookie, "x-key": key } = headers;
    const sent = { authorization, cookie, "x-key": key, query: query === "q=1" ? undefined : query };
    expect(JSON.parse(JSON.stringify(sent))).toEqual(expected);
  });

  test("a cookie credential joins the cookies of the call", async () => {
    await call("cookie", { cookies: { other: "1" } }, { secrets });
    expect(server.last().headers.cookie).toBe("other=1; session=canary-c%3B");
  });

  test("the alternative whose secrets are all there is used", async () => {
    await call("either", {}, { secrets: { bearer: "b" } });
    expect(server.last().headers.authorization).toBe("Bearer b");
  });

  test("a call that may be anonymous is made without secrets", async () => {
    await call("optional");
    expect(server.last().headers.authorization).toBeUndefined();
  });

  test.each<readonly [string, object, string]>([
    ["header", {}, 'Credentials are missing: set secret "header"'],
    ["header", { header: "" }, 'Credentials are missing: set secret "header"'],
    ["basic", { basic: { username: "u" } }, 'Credentials are missing: set secret "basic"'],
    ["both", { query: "q" }, 'Credentials are missing: set secret "header" and secret "cookie"'],
    ["either", {}, 'Credentials are missing: set secret "header", or secret "bearer"'],
    [
      "digest",
      { digest: "x" },
      'Credentials are missing: set "digest" (which cannot be used: HTTP authentication "digest" is not supported)',
    ],
    [
      "undefinedScheme",
      { nowhere: "x" },
      'Credentials are missing: set secret "nowhere" (which the document does not define)',
    ],
  ])("%s with secrets %j is refused and nothing is sent", async (toolId, given, message) => {
    const before = server.requests.length;
    await expect(call(toolId, {}, { secrets: given as Record<string, unknown> })).rejects.toMatchObject({
      kind: "invalid_request",
      message,
    });
    expect(server.requests).toHaveLength(before);
  });

  test.each(["a\r\nb", "a\nb", "snow ☃", "a\0"])(
    "the secret %j is refused before any call, and not shown",
    async (value) => {
      for (const given of [{ header: value }, { bearer: value }, { token: value }]) {
        const failure = (await call("none", {}, { secrets: given }).catch((error: unknown) => error)) as Error;
        expect(failure).toMatchObject({
          kind: "invalid_request",
          message: expect.stringMatching(/^Secret "\w+" holds characters/),
        });
        expect(failure.message).not.toContain(value);
      }
    },
  );

  test("no failure of a call shows a secret", async () => {
    const failures: unknown[] = [];
    const note = (error: unknown) => failures.push(error);
    const unreachable = { secrets, config: { serverUrl: "http://127.0.0.1:1" } };
    for (const toolId of Object.keys(operations)) await call(toolId, {}, unreachable).catch(note);
    server.respond = () => {};
    await call("both", {}, { secrets, timeoutMs: 100 }).catch(note);
    expect(failures.length).toBeGreaterThan(10);
    for (const failure of failures)
      expect(JSON.stringify([(failure as Error).message, (failure as { details: unknown }).details])).not.toContain(
        "canary",
      );
  });
});

describe("which schemes apply", () => {
  const open = (more: object) => ({
    openapi: "3.0.0",
    servers: [{ url: server.origin }],
    components: { securitySchemes },
    paths: { "/a": { get: { operationId: "a" } } },
    ...more,
  });

  test("a document that declares schemes and never says where they apply uses the one that has a secret, or none", async () => {
    server.respond = (_, response) => response.end();
    const { call } = await defined(adapter, open({}));
    await call("a", {}, { secrets: { header: "h" } });
    expect(server.last().headers["x-key"]).toBe("h");
    await call("a");
    expect(server.last().headers["x-key"]).toBeUndefined();
  });

  test("a document that says so for some operations means no credentials for the others", async () => {
    const { call } = await defined(
      adapter,
      open({ paths: { "/a": { get: { operationId: "a" } }, "/b": { get: { security: [{ header: [] }] } } } }),
    );
    await call("a", {}, { secrets: { header: "h" } });
    expect(server.last().headers["x-key"]).toBeUndefined();
  });

  test("a key that an operation lists as a parameter is sent as well, and not asked of the caller", async () => {
    const parameters = [
      { name: "api key", in: "query", required: true, schema: { type: "string" } },
      { name: "x-KEY", in: "header", required: true, schema: { type: "string" } },
    ];
    const { call } = await defined(
      adapter,
      open({ security: [{ query: [] }, { header: [] }], paths: { "/a": { get: { operationId: "a", parameters } } } }),
    );
    await call("a", {}, { secrets: { query: "q", header: "h" } });
    expect(server.last()).toMatchObject({ query: "api%20key=q", headers: { "x-key": "h" } });
    await call("a", {}, { secrets: { header: "h" } });
    expect(server.last()).toMatchObject({ query: "", headers: { "x-key": "h" } });
  });

  test("secrets have one property per usable scheme, and none is required", async () => {
    const { definition } = await defined(adapter, open({}));
    const usable = [
      "header",
      "query",
      "cookie",
      "basic",
      "bearer",
      "token",
      "oauth",
      "openid",
      "referred",
      "rawAuthorization",
    ];
    expect(definition.secretsSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(definition.secretsSchema).not.toHaveProperty("required");
    const { properties } = definition.secretsSchema as { properties: Record<string, unknown> };
    expect(Object.keys(properties)).toEqual(usable);
    expect(properties.basic).toMatchObject({
      type: "object",
      required: ["username", "password"],
      additionalProperties: false,
    });
    expect(properties.header).toMatchObject({ type: "string", description: 'Sent as header "X-Key". From the portal' });
  });

  test("a plan and a description hold no secret, and redirects take none along", async () => {
    const { definition, call } = await defined(adapter, documentOf());
    expect(definition.plan).not.toContain("canary");
    const other = await openRecordingServer();
    server.respond = (_, response) => response.writeHead(302, { location: other.origin }).end();
    expect(await call("header", {}, { secrets })).toMatchObject({ status: 302 });
    expect(other.requests).toHaveLength(0);
    await other.close();
  });
});

describe("attaching", () => {
  const schemes = { key: { kind: "apiKey", in: "header", name: "X-Key", description: "" } } as const;
  const attach = (url: string, origin: string) =>
    attachCredentials(
      { url, headers: {} },
      origin,
      { security: [["key"]], keys: [] },
      { schemes, secrets: { key: "canary" } },
    );

  test.each([
    ["https://api.example.com/x", "https://api.example.com"],
    ["https://api.example.com:443/x", "https://api.example.com"],
  ])("%s is of the origin %s", (url, origin) => {
    expect(attach(url, origin).headers).toEqual({ "x-key": "canary" });
  });

  test.each([
    ["http://api.example.com/x", "https://api.example.com"],
    ["https://api.example.com:8443/x", "https://api.example.com"],
    ["https://api.example.com.evil.com/x", "https://api.example.com"],
    ["https://api.example.com@evil.com/x", "https://api.example.com"],
    ["https://evil.com\\@api.example.com/x", "https://api.example.com"],
  ])("%s is not of the origin %s and gets nothing", (url, origin) => {
    expect(() => attach(url, origin)).toThrow(/^Credentials for .* are not sent to/);
  });
});
