/** What documents become: tools, ids, schemas, servers and settings. Each table row is a way real documents differ. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type { Adapter, Definition, JsonSchema, ToolSchemas } from "../../src/ports/adapter.ts";
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

async function tools(paths: unknown, more: object = {}): Promise<Definition["tools"]> {
  return (await defined(adapter, { openapi: "3.0.0", paths, ...more })).definition.tools;
}

async function describeOne(document: object, toolId = "op"): Promise<ToolSchemas> {
  const { plan } = await defined(adapter, document);
  return adapter.describe(plan, toolId);
}

/** The schema of a JSON body, described by a whole document around it. */
async function convert(
  schema: unknown,
  openapi = "3.0.0",
  schemas: object = {},
): Promise<{ body: Any; defs: Any; valid(body: unknown): boolean }> {
  const requestBody = { content: { "application/json": { schema } } };
  const { inputSchema } = await describeOne({
    openapi,
    paths: { "/x": { post: { operationId: "op", requestBody } } },
    components: { schemas },
  });
  const { properties, $defs = {} } = inputSchema as unknown as { properties: Any; $defs?: Any };
  const ajv = new Ajv2020({
    strict: true,
    ownProperties: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    formats: { int32: true },
  });
  addFormats.default(ajv);
  const validate = ajv.compile(inputSchema as object);
  return { body: properties.body as unknown as Any, defs: $defs as Any, valid: (body) => validate({ body }) };
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

describe("references", () => {
  const schemas = {
    "A b/c~d": { type: "object", properties: { n: { type: "integer" } } },
    Cycle: {
      type: "object",
      properties: { next: { $ref: "#/components/schemas/Cycle" }, other: { $ref: "#/components/schemas/Other" } },
    },
    Other: { type: "array", items: { $ref: "#/components/schemas/Cycle" } },
    Alone: { type: "string" },
    Loop: { $ref: "#/components/schemas/Pool" },
    Pool: { $ref: "#/components/schemas/Loop" },
    Alias: { $ref: "#/components/schemas/Alone" },
    Named: { $anchor: "here", type: "integer" },
  };

  test.each<readonly [string, unknown, readonly unknown[], readonly unknown[]]>([
    ["escaped and percent-encoded", { $ref: "#/components/schemas/A%20b~1c~0d" }, [{ n: 1 }, {}], [{ n: "x" }, 1]],
    ["unescaped where nothing needs it", { $ref: "#/components/schemas/A b~1c~0d" }, [{ n: 1 }], [1]],
    ["into a list", { $ref: "#/paths/~1x/post/parameters/0/schema" }, ["s"], [1]],
    [
      "to itself through others",
      { $ref: "#/components/schemas/Cycle" },
      [{ next: { next: {} }, other: [{ other: [] }] }],
      [{ next: { next: 1 } }, { other: [1] }],
    ],
    ["to a reference", { $ref: "#/components/schemas/Alias" }, ["s"], [1]],
    ["to an anchor", { $ref: "#here" }, [1], ["s"]],
    [
      "used twice",
      { properties: { a: { $ref: "#/components/schemas/Alone" }, b: { $ref: "#/components/schemas/Alone" } } },
      [{ a: "1", b: "2" }],
      [{ a: 1 }, { b: 1 }],
    ],
    ["going round in circles", { $ref: "#/components/schemas/Loop" }, [1, "s", null], []],
    ["to nothing", { $ref: "#/components/schemas/Nothing" }, [1, {}], []],
    ["to a name every object has", { $ref: "#/components/schemas/constructor" }, [1, {}], []],
    ["to another file", { $ref: "other.yaml#/A" }, [1, {}], []],
    ["to another host", { $ref: "https://example.com/a.json" }, [1, {}], []],
    ["that is badly encoded", { $ref: "#/components/schemas/%zz" }, [1], []],
  ])("a schema reference %s means what it should", async (_, schema, good, bad) => {
    const parameters = [{ name: "p", in: "query", schema: { type: "string" } }];
    const requestBody = { content: { "application/json": { schema } } };
    const { plan } = await defined(adapter, {
      openapi: "3.1.0",
      components: { schemas },
      paths: { "/x": { post: { operationId: "op", parameters, requestBody } } },
    });
    const { inputSchema } = await adapter.describe(plan, "op");
    const validate = new Ajv2020({ strict: false }).compile(inputSchema as object);
    for (const body of good) expect([body, validate({ body })]).toEqual([body, true]);
    for (const body of bad) expect([body, validate({ body })]).toEqual([body, false]);
  });

  test("a reference that leads nowhere says so", async () => {
    expect((await convert({ $ref: "other.yaml#/A" })).body).toEqual({
      $comment: 'Reference "other.yaml#/A" is outside the document',
    });
    expect((await convert({ $ref: "#/nope" })).body).toEqual({ $comment: 'Reference "#/nope" leads to no schema' });
  });

  test("a tool carries only the definitions it needs, unexpanded", async () => {
    const { defs, body } = await convert({ $ref: "#/components/schemas/Other" }, "3.0.0", schemas);
    expect(body).toEqual({ $ref: "#/$defs/Other" });
    expect(Object.keys(defs).toSorted()).toEqual(["Cycle", "Other"]);
  });

  test("definitions whose names become the same stay two", async () => {
    const both = { "a/b": { type: "string" }, "a b": { type: "integer" } };
    const schema = {
      properties: { x: { $ref: "#/components/schemas/a~1b" }, y: { $ref: "#/components/schemas/a%20b" } },
    };
    const { valid } = await convert(schema, "3.1.0", both);
    expect([valid({ x: "s", y: 1 }), valid({ x: 1 }), valid({ y: "s" })]).toEqual([true, false, false]);
  });

  test("keywords beside a reference count in 3.1 and are ignored in 3.0, descriptions excepted", async () => {
    const schema = { $ref: "#/components/schemas/Alone", maxLength: 2, description: "D" };
    const later = await convert(schema, "3.1.0", schemas);
    expect([later.valid("ab"), later.valid("abc"), later.body.description]).toEqual([true, false, "D"]);
    const earlier = await convert(schema, "3.0.0", schemas);
    expect([earlier.valid("abc"), earlier.body.description]).toEqual([true, "D"]);
  });

  test("parameters, bodies, answers, headers and path items may be references, with their own url or without", async () => {
    const document = {
      openapi: "3.1.0",
      servers: [{ url: server.origin }],
      paths: {
        "/x/{id}": { $ref: "https://example.com/api/openapi.json#/components/pathItems/Item", summary: "Own words" },
      },
      components: {
        pathItems: {
          Item: {
            parameters: [{ $ref: "#/components/parameters/Id" }],
            post: {
              operationId: "op",
              parameters: [{ $ref: "openapi.json#/components/parameters/Q" }],
              requestBody: { $ref: "#/components/requestBodies/B" },
              responses: { 200: { $ref: "#/components/responses/R" } },
            },
          },
        },
        parameters: {
          Id: { name: "id", in: "path", required: true, schema: { type: "string" } },
          Q: { $ref: "#/components/parameters/P" },
          P: { name: "q", in: "query", schema: {} },
        },
        requestBodies: { B: { required: true, content: { "application/json": { schema: { type: "object" } } } } },
        responses: {
          R: {
            description: "Fine",
            headers: { "X-Next": { $ref: "#/components/headers/H" } },
            content: { "application/json": { schema: { type: "string" } } },
          },
        },
        headers: { H: { description: "Where to go on" } },
      },
    };
    const { plan, definition, call } = await defined(adapter, document, "https://example.com/api/openapi.json");
    expect(definition.tools).toMatchObject([{ id: "op", name: "Own words" }]);
    const { inputSchema, outputSchema } = await adapter.describe(plan, "op");
    expect((inputSchema as Any).required).toEqual(["path", "body"]);
    expect(outputSchema).toMatchObject({
      description: "Fine",
      properties: {
        status: { const: 200 },
        headers: { properties: { "x-next": { description: "Where to go on" } } },
        body: { type: "string" },
      },
    });
    await call("op", { path: { id: "1" }, query: { q: "2" }, body: {} });
    expect(server.last()).toMatchObject({ path: "/x/1", query: "q=2" });
  });

  test("parts outside the document are left out and the tool says so", async () => {
    const found = await tools({
      "/x": {
        post: { operationId: "op", parameters: [{ $ref: "params.yaml#/Q" }], requestBody: { $ref: "#/nowhere" } },
      },
    });
    expect(found[0]?.description).toBe(
      'Left out, as it is outside the document or missing: "params.yaml#/Q", "#/nowhere"',
    );
    await expect(tools({ "/x": { $ref: "x.yaml" } })).rejects.toMatchObject({
      kind: "invalid_request",
      message: 'Cannot use the document: path "/x" is described outside the document',
    });
  });
});

describe("schema dialects", () => {
  test.each<readonly [string, unknown, readonly unknown[], readonly unknown[]]>([
    ["nullable with a type", { type: "string", nullable: true }, ["a", null], [1]],
    ["nullable without a type", { nullable: true, minLength: 2 }, ["ab", null, 1], ["a"]],
    ["nullable enum", { type: "string", enum: ["a"], nullable: true }, ["a", null], ["b"]],
    ["nullable reference", { $ref: "#/components/schemas/S", nullable: true }, ["a", null], [1]],
    ["nullable allOf", { allOf: [{ $ref: "#/components/schemas/S" }], nullable: true }, ["a", null], [1]],
    [
      "exclusive bounds as flags",
      { type: "number", minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true },
      [2],
      [1, 3],
    ],
    ["flags that are off", { type: "number", minimum: 1, exclusiveMinimum: false }, [1], [0]],
    ["flags without a bound", { type: "number", exclusiveMinimum: true }, [-1], ["a"]],
    [
      "required as a flag on a property",
      { properties: { a: { type: "string", required: true } } },
      [{}, { a: "x" }],
      [{ a: 1 }],
    ],
    [
      "required of a property that only answers have",
      { required: ["a", "b"], properties: { a: { readOnly: true }, b: {} } },
      [{ b: 1 }],
      [{ a: 1 }],
    ],
    [
      "required behind a reference to one",
      { required: ["a"], properties: { a: { $ref: "#/components/schemas/R" } } },
      [{}],
      [],
    ],
    ["types that are none", { type: "any" }, [1, "a"], []],
    ["type file", { type: "file" }, ["a"], [1]],
    ["items as a list", { type: "array", items: [{ type: "string" }, { type: "integer" }] }, [["a", 1]], [[1]]],
    [
      "limits of no shape",
      {
        type: "string",
        minLength: -1,
        maxLength: "5",
        pattern: 7,
        enum: [],
        multipleOf: 0,
        required: "a",
        properties: [],
      },
      ["abcdef"],
      [],
    ],
    ["a pattern with needless escapes", { type: "string", pattern: "^[\\w\\@\\-]+\\_$" }, ["a@b_"], ["a b_"]],
    ["a pattern that is not JavaScript", { type: "string", pattern: "(?i)^[a" }, ["anything"], []],
    ["compositions of no shape", { allOf: [], anyOf: "x", oneOf: [null, { type: "string" }], not: 5 }, ["a"], [1]],
    [
      "discriminator, xml and extensions",
      {
        type: "object",
        discriminator: { propertyName: "t" },
        xml: {},
        "x-a": 1,
        externalDocs: {},
        $id: "http://[bad",
        $schema: "nope",
      },
      [{}],
      [1],
    ],
    ["unknown formats", { type: "string", format: "no-such-format" }, ["a"], []],
  ])("%s means in 3.0 what it says", async (_, schema, good, bad) => {
    const { inputSchema } = await describeOne({
      openapi: "3.0.0",
      components: { schemas: { S: { type: "string" }, R: { readOnly: true } } },
      paths: { "/x": { post: { operationId: "op", requestBody: { content: { "application/json": { schema } } } } } },
    });
    const ajv = new Ajv2020({ strict: false, logger: false });
    const validate = ajv.compile(inputSchema as object);
    for (const body of good) expect([body, validate({ body })]).toEqual([body, true]);
    for (const body of bad) expect([body, validate({ body })]).toEqual([body, false]);
  });

  test("3.1 keeps its own keywords, true and false among schemas", async () => {
    const kept = JSON.parse(
      '{"type":["string","null"],"const":"a","if":{"minLength":1},"then":true,"else":false,"$comment":"c","examples":["a"]}',
    );
    const schema = { ...kept, $dynamicRef: "#x" };
    const { body, valid } = await convert(schema, "3.1.0");
    expect(body).toEqual(kept);
    expect([valid("a"), valid("b")]).toEqual([true, false]);
    expect((await convert({ type: "object", properties: { a: true, b: false } }, "3.1.0")).valid({ b: 1 })).toBe(false);
  });

  test("example becomes examples, and discriminators are dropped", async () => {
    const { body } = await convert({ type: "string", example: "e", discriminator: { propertyName: "x" } });
    expect(body).toEqual({ type: "string", examples: ["e"] });
  });

  test("properties called like keywords and like members of every object stay properties", async () => {
    const properties = {
      type: { type: "string" },
      $ref: { type: "string" },
      constructor: { type: "integer" },
      toString: { type: "string" },
    };
    const { valid } = await convert({
      type: "object",
      properties,
      required: ["constructor"],
      additionalProperties: false,
    });
    expect([
      valid({ constructor: 1, $ref: "a", type: "t" }),
      valid({ constructor: "x" }),
      valid({ $ref: 1, constructor: 1 }),
    ]).toEqual([true, false, false]);
  });
});

describe("schemas of answers", () => {
  async function statuses(responses: object): Promise<(status: number) => boolean> {
    const { outputSchema } = await describeOne({
      openapi: "3.0.0",
      paths: { "/x": { get: { operationId: "op", responses } } },
    });
    const validate = new Ajv2020({ strict: false }).compile(outputSchema as object);
    return (status) => validate({ status, headers: { a: "b" }, body: {} });
  }

  test("each status fits exactly one branch, ranges and default included", async () => {
    const fits = await statuses({
      200: { description: "" },
      201: { description: "" },
      "2XX": { description: "" },
      "4xx": { description: "" },
      default: { description: "" },
    });
    expect([200, 201, 204, 404, 500].map(fits)).toEqual([true, true, true, true, true]);
    const without = await statuses({ 200: { description: "" }, 404: { description: "" } });
    expect([200, 404, 500].map(without)).toEqual([true, true, false]);
  });

  test("several are oneOf, one is itself, none is anything", async () => {
    const output = async (responses: unknown) =>
      (await describeOne({ openapi: "3.0.0", paths: { "/x": { get: { operationId: "op", responses } } } }))
        .outputSchema as Any;
    expect((await output({ 200: {}, 404: {} })).oneOf).toHaveLength(2);
    expect(await output({ 200: { description: "D" } })).toMatchObject({
      description: "D",
      required: ["status", "headers"],
    });
    expect(await output(undefined)).toMatchObject({ properties: { status: { type: "integer" } } });
    expect(await output("nonsense")).toMatchObject({ properties: { status: { type: "integer" } } });
  });

  test("bodies are described by media type", async () => {
    const { outputSchema } = await describeOne({
      openapi: "3.0.0",
      paths: {
        "/x": {
          get: {
            operationId: "op",
            responses: {
              200: {
                content: {
                  "application/pdf": {},
                  "text/plain": {},
                  "application/json": { schema: { type: "integer" } },
                },
              },
            },
          },
        },
      },
    });
    expect((outputSchema as { properties: Any }).properties.body).toMatchObject({
      anyOf: [{ type: "integer" }, { type: "string" }, { required: ["base64"] }],
    });
  });
});

describe("input slots", () => {
  const slots = async (operation: object): Promise<Any> =>
    (await describeOne({ openapi: "3.0.0", paths: { "/x": { post: { operationId: "op", ...operation } } } }))
      .inputSchema as unknown as Any;
  const parameter = (place: string, required: boolean) => ({
    parameters: [{ name: "p", in: place, required, schema: { type: "string" } }],
  });

  test.each<readonly [object, readonly string[], readonly string[]]>([
    [{}, [], []],
    [parameter("query", false), ["query"], []],
    [parameter("query", true), ["query"], ["query"]],
    [parameter("header", true), ["headers"], ["headers"]],
    [parameter("cookie", true), ["cookies"], ["cookies"]],
    [parameter("path", true), [], []],
    [parameter("formData", true), [], []],
    [{ requestBody: { content: { "application/json": {} } } }, ["body"], []],
    [{ requestBody: { required: true, content: { "application/json": {} } } }, ["body"], ["body"]],
    [
      { requestBody: { required: true, content: { "application/json": {}, "text/plain": {} } } },
      ["body", "contentType"],
      ["body"],
    ],
    [{ requestBody: { required: true } }, [], []],
  ])("%j has the slots %j and requires %j", async (operation, properties, required) => {
    const schema = await slots(operation);
    expect(Object.keys(schema.properties ?? {})).toEqual(properties);
    expect(schema.required ?? []).toEqual(required);
    expect(schema.additionalProperties).toBe(false);
  });

  test("a parameter keeps its description and deprecation beside its schema", async () => {
    const schema = await slots({
      parameters: [
        {
          name: "p",
          in: "query",
          description: "D",
          deprecated: true,
          schema: { type: "string", description: "inner" },
        },
      ],
    });
    expect((schema as unknown as { properties: { query: { properties: Any } } }).properties.query.properties.p).toEqual(
      {
        type: "string",
        description: "D",
        deprecated: true,
      },
    );
  });
});

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
