/** Where calls go: servers of every level, their variables, and the configuration that offers them. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Adapter, JsonSchema } from "../../src/ports/adapter.ts";
import { defined, openTestAdapter } from "./adapter-bench.ts";
import { openRecordingServer, type RecordingServer } from "./recording-server.ts";

let adapter: Adapter;
let server: RecordingServer;

beforeAll(async () => {
  [adapter, server] = await Promise.all([openTestAdapter(), openRecordingServer()]);
});
afterAll(async () => {
  await Promise.all([adapter.close(), server.close()]);
});

type Any = Record<string, never>;

describe("servers", () => {
  const at = (servers: unknown, more: object = {}) => ({
    openapi: "3.0.0",
    servers,
    paths: { "/x": { get: { operationId: "op" } } },
    ...more,
  });
  const port = () => new URL(server.origin).port;

  test.each<readonly [string, () => { document: object; url?: string; config?: Record<string, unknown> }, string]>([
    ["absolute", () => ({ document: at([{ url: `${server.origin}/v1` }]) }), "/v1/x"],
    ["with slashes at its end", () => ({ document: at([{ url: `${server.origin}/v1///` }]) }), "/v1/x"],
    [
      "relative to the document",
      () => ({ document: at([{ url: "../v2" }]), url: `${server.origin}/docs/api/openapi.json` }),
      "/docs/v2/x",
    ],
    [
      "relative from the root",
      () => ({ document: at([{ url: "/v3" }]), url: `${server.origin}/docs/openapi.json` }),
      "/v3/x",
    ],
    [
      "absent, beside a document with an address",
      () => ({ document: at(undefined), url: `${server.origin}/docs/openapi.json` }),
      "/x",
    ],
    ["with a query", () => ({ document: at([{ url: `${server.origin}/v1?a=b#c` }]) }), "/v1/x"],
    [
      "with variables",
      () => ({
        document: at([
          {
            url: "{scheme}://127.0.0.1:{port}/{base}",
            variables: {
              scheme: { default: "http", enum: ["http"] },
              port: { default: port() },
              base: { default: "a/b" },
            },
          },
        ]),
      }),
      "/a/b/x",
    ],
    [
      "with a configured variable",
      () => ({
        document: at([{ url: `${server.origin}/{base}`, variables: { base: { default: "a" } } }]),
        config: { serverVar_base: "c" },
      }),
      "/c/x",
    ],
    [
      "configured",
      () => ({ document: at([{ url: "https://example.invalid" }]), config: { serverUrl: `${server.origin}/own/` } }),
      "/own/x",
    ],
    [
      "after one that is not for HTTP",
      () => ({ document: at([{ url: "wss://example.invalid" }, { url: `${server.origin}/second` }]) }),
      "/second/x",
    ],
    [
      "of the path",
      () => ({
        document: at([{ url: "https://example.invalid" }], {
          paths: { "/x": { servers: [{ url: `${server.origin}/path` }], get: { operationId: "op" } } },
        }),
      }),
      "/path/x",
    ],
    [
      "of the operation",
      () => ({
        document: at([{ url: "https://example.invalid" }], {
          paths: {
            "/x": {
              servers: [{ url: "https://example.invalid" }],
              get: { operationId: "op", servers: [{ url: `${server.origin}/op` }] },
            },
          },
        }),
      }),
      "/op/x",
    ],
    [
      "of the operation alone",
      () => ({
        document: at(undefined, {
          paths: { "/x": { get: { operationId: "op", servers: [{ url: `${server.origin}/op` }] } } },
        }),
      }),
      "/op/x",
    ],
    [
      "configured over the operation's",
      () => ({
        document: at([], {
          paths: { "/x": { get: { operationId: "op", servers: [{ url: "https://example.invalid" }] } } },
        }),
        config: { serverUrl: server.origin },
      }),
      "/x",
    ],
  ])("a server %s is where calls go", async (_, make, path) => {
    const { document, url, config } = make();
    const { call } = await defined(adapter, document, url);
    await call("op", {}, config ? { config } : {});
    expect(server.last().path).toBe(path);
  });

  test.each<readonly [object, Record<string, unknown>, RegExp]>([
    [at(undefined), {}, /is not an absolute URL: set the configuration value "serverUrl"$/],
    [at([{ url: "/v1" }]), {}, /is not an absolute URL/],
    [
      at([{ url: "https://{host}/x" }]),
      {},
      /^Server URL "https:\/\/\{host\}\/x" needs the configuration value "serverVar_host"$/,
    ],
    [at([]), { serverUrl: "ftp://example.com" }, /^Configured "serverUrl" is not an http or https URL$/],
    [at([]), { serverUrl: "nonsense" }, /^Configured "serverUrl" is not an absolute URL/],
    [
      at([]),
      { serverUrl: "https://user:canary@example.com" },
      /^Server URL of host "example.com" holds a user name or password$/,
    ],
  ])("%j configured as %j is refused when the service is made ready", async (document, config, message) => {
    const { call } = await defined(adapter, document);
    await expect(call("op", {}, { config })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(message),
    });
  });

  test("configuration offers server, variables and time, and asks for a server only when there is none", async () => {
    const config = async (document: object, url?: string) =>
      (await defined(adapter, document, url)).definition.configSchema as { required?: string[]; properties: Any };
    const variables = { region: { default: "eu", enum: ["eu", "us"], description: "Where" }, free: {} };
    const { properties, required } = await config(at([{ url: "https://{region}.example.com/{free}", variables }]));
    expect(Object.keys(properties)).toEqual(["serverUrl", "serverVar_region", "serverVar_free", "timeoutMs"]);
    expect(properties.serverVar_region).toEqual({
      type: "string",
      description: "Where",
      enum: ["eu", "us"],
      default: "eu",
    });
    expect(properties.timeoutMs).toMatchObject({ default: 30_000, exclusiveMinimum: 0 });
    expect(required).toBeUndefined();
    expect((await config(at(undefined))).required).toEqual(["serverUrl"]);
    expect((await config(at(undefined), "https://example.com/openapi.json")).required).toBeUndefined();
    const split = await config({
      openapi: "3.0.0",
      servers: [
        { url: "https://{h}", variables: { h: { default: "a" } } },
        { url: "https://{h}", variables: { h: { default: "b" } } },
      ],
    });
    expect(split.properties.serverVar_h).not.toHaveProperty("default");
  });

  test("settings schemas are JSON Schemas that hold their own defaults", async () => {
    const { definition } = await defined(
      adapter,
      at([{ url: "https://{h}", variables: { h: { default: "z", enum: ["a", 1] } } }]),
    );
    const check = (schema: JsonSchema, value: unknown) => new Ajv2020().compile(schema as object)(value);
    expect(check(definition.configSchema, { serverVar_h: "z", timeoutMs: 30_000, serverUrl: "HTTPS://a" })).toBe(true);
    expect(check(definition.configSchema, { serverVar_h: "q" })).toBe(false);
    expect(check(definition.configSchema, { other: 1 })).toBe(false);
    expect(check(definition.secretsSchema, { other: 1 })).toBe(false);
  });
});

describe("paths that are not templates alone", () => {
  test("fragments tell operations apart but are not sent, fixed queries are, and undeclared names are asked for", async () => {
    const { call, definition } = await defined(adapter, {
      openapi: "3.0.0",
      servers: [{ url: server.origin }],
      paths: {
        "/#Action=One": { post: { operationId: "one" } },
        "/fixed?mode=a": { get: { operationId: "fixed", parameters: [{ name: "q", in: "query" }] } },
        "/{undeclared}/{}/x": {
          get: { operationId: "undeclared", parameters: [{ name: "gone", in: "path", required: true }] },
        },
      },
    });
    expect(definition.tools).toHaveLength(3);
    await call("one");
    expect(server.last()).toMatchObject({ path: "/", query: "" });
    await call("fixed", { query: { q: "1" } });
    expect(server.last()).toMatchObject({ path: "/fixed", query: "mode=a&q=1" });
    await call("undeclared", { path: { undeclared: "a b" } });
    expect(server.last().path).toBe("/a%20b/%7B%7D/x");
    await expect(call("undeclared", {})).rejects.toMatchObject({ kind: "invalid_request" });
  });
});
