/** Schemas of tools: references, dialects, answers and slots. Each table row is a way real documents differ. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Adapter, Definition, ToolSchemas } from "../../src/ports/adapter.ts";
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
