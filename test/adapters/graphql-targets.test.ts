/** Endpoints that refuse, lie, dawdle or break off, at discovery and at a call; and the settings a service is made ready with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { toolAnswerBytesMax, toolAnswerDepthMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { defined } from "./adapter-bench.ts";
import { type Discovered, discover, discovered, openTestGraphql } from "./graphql-bench.ts";
import { openShop, type Shop, shopSdl } from "./graphql-shop.ts";

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

let adapter: Adapter;
let shop: Shop;
let service: Discovered;

beforeAll(async () => {
  [adapter, shop] = await Promise.all([openTestGraphql(), openShop()]);
  service = await discovered(adapter, shop.endpoint);
});
afterAll(async () => {
  await Promise.all([adapter.close(), shop.close()]);
});
afterEach(() => {
  shop.respond = null;
  shop.introspection = true;
  shop.posted.length = 0;
});

const answer =
  (status: number, body: string, headers: Record<string, string> = { "content-type": "application/json" }): Respond =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);
const html = { "content-type": "text/html; charset=utf-8" };

describe("discovery", () => {
  test("asks the url it is given and names it in the document", async () => {
    expect(JSON.parse(await discover(adapter, { url: shop.endpoint }))).toMatchObject({
      endpoint: shop.endpoint,
      introspection: { __schema: { queryType: { name: "Query" } } },
    });
    expect(shop.last().headers.authorization).toBeUndefined();
  });

  test("asks the configured endpoint rather than the url, with the credentials of the service", async () => {
    const config = { endpoint: shop.endpoint, headers: { "X-Tenant": "t" } };
    const secrets = { bearerToken: "s3cret", headers: { "X-Key": "k3y" } };
    await discover(adapter, { url: "http://127.0.0.1:9/", config, secrets });
    expect(shop.last().headers).toMatchObject({ authorization: "Bearer s3cret", "x-key": "k3y", "x-tenant": "t" });
  });

  test("asks the endpoint of the stored document when nothing else tells", async () => {
    const synced = await discover(adapter, { document: JSON.stringify({ endpoint: shop.endpoint }) });
    expect((await adapter.define({ text: synced })).tools).toHaveLength(15);
  });

  test("leaves a document alone that names no endpoint", async () => {
    expect(await discover(adapter, { document: shopSdl })).toBe(shopSdl);
  });

  test("fetches a schema file, without credentials", async () => {
    let seen: IncomingMessage | undefined;
    shop.respond = (request, response) => {
      seen = request;
      response.end(shopSdl);
    };
    const url = shop.endpoint.replace("/graphql", "/schema.graphqls");
    expect(await discover(adapter, { url, secrets: { bearerToken: "s3cret" } })).toBe(shopSdl);
    expect(seen?.method).toBe("GET");
    expect(seen?.headers.authorization).toBeUndefined();
  });

  test("asks a server that knows only the oldest query again", async () => {
    shop.respond = (_, response) => {
      if (shop.posted.length === 1) return answer(400, '{"errors":[{"message":"Unknown argument"}]}')(_, response);
      return answer(200, '{"data":{"__schema":{"types":[]}}}')(_, response);
    };
    await discover(adapter, { url: shop.endpoint });
    expect(shop.posted[0]!.body.query).toContain("isOneOf");
    expect(shop.posted[1]!.body.query).not.toContain("isOneOf");
  });

  test("that is switched off names the way out", async () => {
    shop.introspection = false;
    await expect(discover(adapter, { url: shop.endpoint })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(
        /refuses introspection \("GraphQL introspection has been disabled.*as "definition" and set config "endpoint"/,
      ),
    });
  });

  test.each<readonly [string, Respond, RegExp]>([
    [
      "401",
      answer(401, '{"message":"Bad credentials"}'),
      /status 401; install the service with the inline definition \{"endpoint": ".*"\}, set its secrets, then sync it$/,
    ],
    ["403 with GraphQL errors", answer(403, '{"errors":[{"message":"No"}]}'), /status 403; install the service/],
    ["a redirect", answer(302, "", { location: "/elsewhere" }), /redirect \(status 302\), which is not followed$/],
    [
      "a web page",
      answer(200, "<p>Hello", html),
      /status 200 and a body of type "text\/html", which is no GraphQL answer$/,
    ],
    ["500 and a web page", answer(500, "<p>Oops", html), /status 500/],
    ["404", answer(404, "{}"), /status 404/],
    ["JSON of another kind", answer(200, '{"openapi":"3.0.0"}'), /is no GraphQL answer$/],
    ["a number", answer(200, "7"), /is no GraphQL answer$/],
    ["nothing", answer(200, ""), /is no GraphQL answer$/],
    ["data without a schema", answer(200, '{"data":{}}'), /refuses introspection; give the schema itself/],
    ["errors of no shape", answer(200, '{"errors":[null,7,{"message":{"a":1}}]}'), /refuses introspection/],
    [
      "an end in the middle",
      (_, response) => void response.writeHead(200).write('{"data":', () => response.destroy()),
      /./,
    ],
  ])("of an endpoint that answers %s is a failure of the target", async (_, respond, message) => {
    shop.respond = respond;
    await expect(discover(adapter, { url: shop.endpoint })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
  });

  test("with credentials that are refused says so, and repeats none of them", async () => {
    shop.respond = answer(401, "");
    const secrets = { bearerToken: "s3cret-token" };
    await expect(discover(adapter, { url: shop.endpoint, secrets })).rejects.toThrow(
      /check the secrets of the service$/,
    );
    shop.respond = answer(400, '{"errors":[{"message":"Token s3cret-token is not known"}]}');
    await expect(discover(adapter, { url: shop.endpoint, secrets })).rejects.toThrow(/"Token \*\*\* is not known"/);
  });

  test.each<readonly [string, string]>([
    ["no URL", "shop"],
    ["another protocol", "ftp://127.0.0.1/"],
    ["a password in it", "http://u:p@127.0.0.1/"],
  ])("of a url that is %s is refused", async (_, url) => {
    await expect(discover(adapter, { url })).rejects.toMatchObject({ kind: "invalid_request" });
  });

  test("ends when the caller goes away", async () => {
    shop.respond = () => {};
    const stop = new AbortController();
    const asked = adapter.discover!({ url: shop.endpoint, config: {}, secrets: {}, signal: stop.signal });
    setTimeout(() => stop.abort(), 100);
    await expect(asked).rejects.toMatchObject({ kind: "cancelled" });
  });
});

describe("a call to an endpoint", () => {
  const deep = (depth: number) => `{"data":{"add":${"[".repeat(depth)}${"]".repeat(depth)}}}`;

  test.each<readonly [string, Respond, RegExp]>([
    [
      "500 and a web page",
      answer(500, "<p>Oops", html),
      /status 500 and a body of type "text\/html" that is no GraphQL answer$/,
    ],
    ["200 and a web page", answer(200, "<p>Hello", html), /no GraphQL answer$/],
    ["200 and nothing", answer(200, "", {}), /without a content type that is no GraphQL answer$/],
    ["401 and JSON", answer(401, '{"message":"No"}'), /status 401.*; check the secrets of the service$/],
    [
      "a redirect",
      answer(307, "", { location: "/elsewhere" }),
      /redirect \(status 307\), which is not followed: set config "endpoint"/,
    ],
    ["a redirect with data", answer(302, '{"data":{"add":1}}', { location: "/elsewhere" }), /redirect/],
    ["broken JSON", answer(200, '{"data":'), /no GraphQL answer$/],
    [
      "text that is not UTF-8",
      (_, response) => void response.end(Buffer.from([0x22, 0xff, 0x22])),
      /no GraphQL answer$/,
    ],
    ["a list", answer(200, "[]"), /no GraphQL answer$/],
    ["an empty object", answer(200, "{}"), /no GraphQL answer$/],
    ["no errors and no data", answer(200, '{"errors":[]}'), /no GraphQL answer$/],
    ["null for data and no word about it", answer(200, '{"data":null}'), /no GraphQL answer$/],
    ["data of another field", answer(200, '{"data":{"other":1}}'), /lacks field "add"$/],
    ["data that only inherits the field", answer(200, '{"data":{"__proto__":{"add":1}}}'), /lacks field "add"$/],
    ["JSON nested too deep", answer(200, deep(toolAnswerDepthMax + 1)), /nested deeper than 512 levels$/],
    ["JSON nested without end", answer(200, deep(500_000)), /nested deeper than 512 levels$/],
    ["too much", answer(200, `{"data":{"add":"${"x".repeat(toolAnswerBytesMax)}"}}`), /larger than \d+ bytes$/],
    [
      "an end in the middle",
      (_, response) => void response.writeHead(200).write('{"data":', () => response.destroy()),
      /./,
    ],
  ])("that answers %s fails as the target's doing", async (_, respond, message) => {
    shop.respond = respond;
    await expect(service.call("add", { a: 1 })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
  });

  test.each<readonly [string, Respond, unknown]>([
    ["400 and errors", answer(400, '{"errors":[{"message":"Bad"}]}'), { data: null, errors: [{ message: "Bad" }] }],
    [
      "500 and errors",
      answer(500, '{"data":null,"errors":[{"message":"Bad"}]}'),
      { data: null, errors: [{ message: "Bad" }] },
    ],
    [
      "401 and errors",
      answer(401, '{"errors":[{"message":"Who?","extensions":{"code":"UNAUTHENTICATED"}}]}'),
      { data: null, errors: [{ message: "Who?", extensions: { code: "UNAUTHENTICATED" } }] },
    ],
    [
      "data under plain text",
      answer(200, '{"data":{"add":3}}', { "content-type": "text/plain" }),
      { data: 3, errors: [] },
    ],
    ["null for the field", answer(200, '{"data":{"add":null}}'), { data: null, errors: [] }],
    ["null for data and no errors", answer(200, '{"data":null,"errors":[]}'), { data: null, errors: [] }],
    [
      "errors of no shape",
      answer(200, '{"errors":[null,{"message":7,"path":1}]}'),
      { data: null, errors: [{ message: expect.any(String) }, { message: expect.any(String) }] },
    ],
    [
      "extensions",
      answer(200, '{"data":{"add":3},"extensions":{"cost":{"actual":1}}}'),
      { data: 3, errors: [], extensions: { cost: { actual: 1 } } },
    ],
  ])("that answers %s has a result", async (_, respond, result) => {
    shop.respond = respond;
    expect(await service.call("add", { a: 1 })).toEqual(result);
  });

  test("that does not answer is given up in time, by the caller's limit or the configured one", async () => {
    shop.respond = () => {};
    const tooSlow = { kind: "timeout", message: 'Tool "add" did not answer within 150 ms' };
    await expect(service.call("add", { a: 1 }, { timeoutMs: 150 })).rejects.toMatchObject(tooSlow);
    await expect(service.call("add", { a: 1 }, { config: { timeoutMs: 150 } })).rejects.toMatchObject(tooSlow);
  });

  test("that answers drop by drop is given up in time", async () => {
    shop.respond = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    };
    await expect(service.call("add", { a: 1 }, { timeoutMs: 200 })).rejects.toMatchObject({ kind: "timeout" });
  });

  test("ends when the caller goes away", async () => {
    shop.respond = () => {};
    const stop = new AbortController();
    const called = service.call("add", { a: 1 }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 100);
    await expect(called).rejects.toMatchObject({ kind: "cancelled" });
  });

  test("of a tool that does not exist is not found", async () => {
    await expect(service.call("nope")).rejects.toMatchObject({ kind: "not_found" });
  });

  test("that is not there fails", async () => {
    const config = { endpoint: "http://127.0.0.1:9/" };
    await expect(service.call("add", { a: 1 }, { config })).rejects.toMatchObject({ kind: "upstream_failed" });
  });

  test("loads the plan once for many calls at the same moment, also after the worker is new", async () => {
    const fresh = await openTestGraphql();
    try {
      const { plan, call } = await defined(fresh, JSON.stringify({ endpoint: shop.endpoint, sdl: shopSdl }));
      const calls = Array.from({ length: 20 }, (_, at) => call("add", { a: at }));
      expect(await Promise.all(calls)).toHaveLength(20);
      expect((plan as typeof plan & { loads(): number }).loads()).toBe(1);
    } finally {
      await fresh.close();
    }
  });
});

describe("settings", () => {
  const ready = (config: Record<string, unknown>, secrets: Record<string, unknown> = {}) =>
    adapter.hydrate({ serviceId: "shop", plan: service.plan, config, secrets });

  test("headers and the token are sent with every call; of one name the secret counts", async () => {
    const config = { headers: { "X-Tenant": "plain", "X-Other": "o" } };
    await service.call(
      "add",
      { a: 1 },
      { config, secrets: { bearerToken: "s3cret", headers: { "x-tenant": "hidden" } } },
    );
    expect(shop.last().headers).toMatchObject({ authorization: "Bearer s3cret", "x-tenant": "hidden", "x-other": "o" });
    await service.call("add", { a: 1 }, { secrets: { headers: { Authorization: "Basic abc", Cookie: "a=b" } } });
    expect(shop.last().headers).toMatchObject({ authorization: "Basic abc", cookie: "a=b" });
  });

  test.each<readonly [string, Record<string, unknown>, Record<string, unknown>, RegExp]>([
    ["a reserved header", { headers: { Authorization: "x" } }, {}, /"authorization" cannot be set in the config$/],
    ["the host", {}, { headers: { Host: "x" } }, /"host" cannot be set in the secrets$/],
    ["the content type", { headers: { "Content-Type": "text/plain" } }, {}, /"content-type" cannot be set/],
    ["the accept header", { headers: { Accept: "x" } }, {}, /"accept" cannot be set/],
    ["a name that is none", { headers: { "a b": "x" } }, {}, /is no header name$/],
    ["a line break", { headers: { "x-a": "a\r\nevil: 1" } }, {}, /holds what a header cannot carry$/],
    ["a line break in a secret", {}, { bearerToken: "s3cret\n" }, /"bearerToken" in the secrets holds what/],
    ["a number as a value", {}, { headers: { "x-a": 7 } }, /holds what a header cannot carry$/],
    ["an endpoint that is no URL", { endpoint: "shop" }, {}, /absolute http or https URL$/],
    ["an endpoint with a password", { endpoint: "http://u:s3cret@127.0.0.1/" }, {}, /may not hold a user name/],
  ])("that cannot work are refused: %s", async (_, config, secrets, message) => {
    const failed = await ready(config, secrets).catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(message) });
    expect((failed as Error).message).not.toContain("s3cret");
  });

  test("without any endpoint are refused, naming the setting", async () => {
    const { plan } = await defined(adapter, shopSdl);
    await expect(adapter.hydrate({ serviceId: "shop", plan, config: {}, secrets: {} })).rejects.toMatchObject({
      kind: "invalid_request",
      message: 'Cannot tell where service "shop" is: set config "endpoint"',
    });
  });

  test("may move a service described elsewhere to its endpoint", async () => {
    const { call } = await defined(adapter, shopSdl);
    expect(await call("add", { a: 1 }, { config: { endpoint: shop.endpoint } })).toEqual({ data: 6, errors: [] });
  });
});
