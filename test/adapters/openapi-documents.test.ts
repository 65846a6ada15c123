import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type { Adapter, Definition } from "../../src/ports/adapter.ts";
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

async function tools(paths: unknown, more: object = {}): Promise<Definition["tools"]> {
  return (await defined(adapter, { openapi: "3.0.0", paths, ...more })).definition.tools;
}

describe("tools", () => {
  test.each<readonly [string, Record<string, Record<string, object>>, readonly string[]]>([
    ["dots", { "/a": { get: { operationId: "gmail.users.messages.list" } } }, ["gmail_users_messages_list"]],
    ["other characters", { "/a": { get: { operationId: "--list  the/things!--" } } }, ["list_the_things"]],
    ["a leading digit", { "/a": { get: { operationId: "2fa" } } }, ["_2fa"]],
    ["a dollar sign", { "/a": { get: { operationId: "$a" } } }, ["$a"]],
    [
      "no id",
      { "/users/{id}": { get: {} }, "/users/id": { get: {} }, "/": { get: {} } },
      ["get_users_by_id", "get_users_id", "get"],
    ],
    ["an id of which nothing is left", { "/ü": { get: { operationId: "äöü" } } }, ["get"]],
    ["an id that is not text", { "/a": { get: { operationId: { a: 1 } } } }, ["get_a"]],
    [
      "a name on Object.prototype",
      { "/a": { get: { operationId: "constructor" }, put: { operationId: "__proto__" } } },
      ["constructor", "proto"],
    ],
  ])("%s give ids a program can use", async (_, paths, ids) => {
    expect((await tools(paths)).map((tool) => tool.id)).toEqual(ids);
  });

  test("ids that become the same keep the first and get a lasting suffix for the rest", async () => {
    const two = { "/a": { get: { operationId: "a.b" } }, "/b": { get: { operationId: "a_b" } } };
    const ids = (await tools(two)).map((tool) => tool.id);
    expect(ids[0]).toBe("a_b");
    expect(ids[1]).toMatch(/^a_b_[0-9a-f]{6}$/);
    const three = { "/a": two["/a"], "/new": { get: { operationId: "a-b" } }, "/b": two["/b"] };
    expect((await tools(three)).map((tool) => tool.id)[2]).toBe(ids[1]);
  });

  test("a thousand operations with one id are a thousand tools", async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`/p${index}`, { get: { operationId: "same" } }]),
    );
    expect(new Set((await tools(paths)).map((tool) => tool.id)).size).toBe(1_000);
  });

  test("names, descriptions and parameter names say what search needs", async () => {
    const paths = {
      "/a/{id}": {
        parameters: [{ name: "id", in: "path", required: true, schema: {} }],
        post: {
          operationId: "op",
          summary: "Makes a thing",
          description: "Long words",
          parameters: [{ name: "limit", in: "query" }],
          requestBody: {
            description: "The thing",
            content: { "application/json": { schema: { $ref: "#/components/schemas/T" } } },
          },
        },
        get: { operationId: "bare" },
      },
    };
    const schemas = {
      T: { allOf: [{ $ref: "#/components/schemas/U" }, { properties: { own: {} } }] },
      U: { properties: { inherited: {} } },
    };
    expect(await tools(paths, { components: { schemas } })).toEqual([
      { id: "bare", name: "bare", summary: "", description: "", parameterNames: ["id"] },
      {
        id: "op",
        name: "Makes a thing",
        summary: "Makes a thing",
        description: "Long words\n\nBody: The thing",
        parameterNames: ["id", "limit", "inherited", "own"],
      },
    ]);
  });

  test.each<readonly [string, object]>([
    ["no paths", { openapi: "3.1.0", info: { title: "T" } }],
    ["empty paths", { openapi: "3.0.0", paths: {} }],
    ["paths of no shape", { openapi: "3.0.0", paths: [1, "a"] }],
    [
      "operations of no shape",
      {
        openapi: "3.0.0",
        paths: { "/a": { get: "x", post: null, parameters: 7 }, "/b": [], "no-slash": { get: {} }, "x-a": 1 },
      },
    ],
    ["webhooks only", { openapi: "3.1.0", webhooks: { a: { post: {} } } }],
  ])("a document with %s is accepted and has no tools", async (_, document) => {
    expect((await defined(adapter, document)).definition.tools).toEqual([]);
  });

  test("what a document says of itself is taken as text", async () => {
    const text = "openapi: 3.1.0\ninfo: {title: T, version: 1.0, summary: S, description: D}\n";
    expect((await defined(adapter, text)).definition).toMatchObject({
      title: "T",
      name: "T",
      summary: "S",
      description: "D",
      version: "1",
    });
    expect((await defined(adapter, { openapi: "3.0.0" })).definition).toMatchObject({
      title: "",
      name: "",
      version: "",
    });
  });
});

describe("forms of a document", () => {
  const document = {
    openapi: "3.0.3",
    info: { title: "T" },
    paths: { "/a": { get: { operationId: "a", responses: { 200: { description: "ok" } } } } },
  };
  test.each([
    ["JSON", JSON.stringify(document)],
    ["JSON with spaces before it", `\n  ${JSON.stringify(document, null, 2)}`],
    ["JSON with a byte order mark", `\ufeff${JSON.stringify(document)}`],
    ["YAML", stringify(document)],
    ["YAML with a byte order mark and a document marker", `\ufeff---\n${stringify(document)}`],
    ["YAML in flow style with a comment", `{openapi: "3.0.3", # comment\n paths: {/a: {get: {operationId: a}}}}`],
    [
      "YAML with aliases and merge keys",
      "openapi: 3.0.0\nx: &op {operationId: a}\npaths:\n  /a:\n    get: {<<: *op, summary: s}\n",
    ],
    [
      "repeated keys in JSON",
      '{"openapi":"1","openapi":"3.0.0","paths":{"/a":{"get":{"operationId":"b","operationId":"a"}}}}',
    ],
    [
      "repeated keys in YAML",
      "openapi: 3.0.0\npaths:\n  /a: {get: {operationId: b}}\npaths:\n  /a: {get: {operationId: a}}\n",
    ],
    ["version 3.2", JSON.stringify({ ...document, openapi: "3.2.0" })],
    ["a version that YAML reads as a number", "openapi: 3.1\npaths: {/a: {get: {operationId: a}}}"],
  ])("%s is read", async (_, text) => {
    expect((await defined(adapter, text)).definition.tools.map((tool) => tool.id)).toEqual(["a"]);
  });

  test("Swagger 2.0 is read as OpenAPI 3", async () => {
    const swagger = {
      swagger: "2.0",
      info: { title: "Old", version: "1" },
      host: server.origin.replace("http://", ""),
      basePath: "/v2",
      schemes: ["http"],
      consumes: ["application/json"],
      securityDefinitions: { key: { type: "apiKey", in: "header", name: "X-Key" }, basic: { type: "basic" } },
      security: [{ key: [] }],
      parameters: { shared: { name: "shared", in: "query", type: "string" } },
      definitions: {
        Pet: {
          type: "object",
          required: ["name"],
          properties: { name: { type: "string" }, parent: { $ref: "#/definitions/Pet" } },
        },
      },
      paths: {
        "/pets/{id}": {
          post: {
            operationId: "addPet",
            parameters: [
              { name: "id", in: "path", required: true, type: "integer" },
              { name: "tags", in: "query", type: "array", items: { type: "string" }, collectionFormat: "csv" },
              { name: "ids", in: "query", type: "array", items: { type: "string" }, collectionFormat: "multi" },
              { $ref: "#/parameters/shared" },
              { name: "body", in: "body", required: true, schema: { $ref: "#/definitions/Pet" } },
            ],
            responses: { 200: { description: "ok", schema: { $ref: "#/definitions/Pet" } } },
          },
          put: {
            operationId: "upload",
            consumes: ["multipart/form-data"],
            parameters: [
              { name: "id", in: "path", required: true, type: "integer" },
              { name: "file", in: "formData", type: "file", required: true },
              { name: "note", in: "formData", type: "string" },
            ],
            responses: { 200: { description: "ok" } },
          },
        },
      },
    };
    const { call, definition } = await defined(adapter, swagger);
    expect(definition.tools.map((tool) => tool.id)).toEqual(["upload", "addPet"]);
    const parameters = {
      path: { id: 1 },
      query: { tags: ["a", "b"], ids: ["1", "2"], shared: "s" },
      body: { name: "n", parent: { name: "p" } },
    };
    await call("addPet", parameters, { secrets: { key: "k" } });
    expect(server.last()).toMatchObject({
      method: "POST",
      path: "/v2/pets/1",
      query: "tags=a,b&ids=1&ids=2&shared=s",
      headers: { "x-key": "k" },
    });
    expect(server.last().body.toString()).toBe('{"name":"n","parent":{"name":"p"}}');
    await call("upload", { path: { id: 1 }, body: { file: { base64: "QQ==" }, note: "n" } }, { secrets: { key: "k" } });
    expect(server.last().headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
    expect(server.last().body.toString()).toContain("\r\n\r\nA\r\n");
  });
});
