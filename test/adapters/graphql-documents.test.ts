/** Definition documents in all their forms, and those made to hurt: each is read, or refused with a reason, in bounded time. */
import { buildSchema, introspectionFromSchema } from "graphql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { schemaProblem, validate } from "../../src/json/schema.ts";
import {
  documentBytesMax,
  documentOperationsMax,
  documentParseMs,
  graphqlInputSchemaCharactersMax,
} from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { defined, measureLongestTurn } from "./adapter-bench.ts";
import { openTestGraphql } from "./graphql-bench.ts";
import { shopSdl } from "./graphql-shop.ts";

let adapter: Adapter;

beforeAll(async () => {
  adapter = await openTestGraphql();
});
afterAll(async () => {
  await adapter.close();
});

const introspection = introspectionFromSchema(buildSchema(shopSdl));
const endpoint = "https://shop.example.com/graphql";
const toolIds = async (text: string, url?: string) =>
  (await adapter.define({ text, url })).tools.map((tool) => tool.id);
const requiredConfig = async (text: string, url?: string) =>
  ((await adapter.define({ text, url })).configSchema as { required?: string[] }).required;

describe("a document", () => {
  test.each<readonly [string, string, boolean]>([
    ["what discovery makes", JSON.stringify({ endpoint, introspection }), true],
    [
      "an endpoint with an answer to introspection",
      JSON.stringify({ endpoint, introspection: { data: introspection } }),
      true,
    ],
    ["an endpoint with SDL", JSON.stringify({ endpoint, sdl: shopSdl }), true],
    ["an answer to introspection", JSON.stringify({ data: introspection, errors: [] }), false],
    ["a bare introspection result", JSON.stringify(introspection), false],
    ["SDL", shopSdl, false],
    ["SDL behind a byte order mark and a comment", `\uFEFF# A shop\n${shopSdl}`, false],
    ["SDL that begins with a description", `"""A shop""" ${shopSdl.slice(shopSdl.indexOf("schema"))}`, false],
  ])("may be %s", async (_, text, hasEndpoint) => {
    expect(await toolIds(text)).toHaveLength(15);
    expect(await requiredConfig(text)).toEqual(hasEndpoint ? undefined : ["endpoint"]);
  });

  test("with an endpoint only has no tools until the service is synced", async () => {
    const definition = await adapter.define({ text: JSON.stringify({ endpoint }) });
    expect(definition).toMatchObject({
      title: "shop.example.com",
      description: "Not read yet: sync the service to get its tools",
      tools: [],
    });
  });

  test("may name an endpoint relative to where it came from", async () => {
    expect(await requiredConfig('{"endpoint":"/graphql"}', "https://shop.example.com/schema.json")).toBeUndefined();
    await expect(adapter.define({ text: '{"endpoint":"/graphql"}' })).rejects.toMatchObject({
      kind: "invalid_request",
    });
  });

  test("may hold directives of others, and extend itself", async () => {
    const text = `
      extend schema @link(url: "https://specs.example.com/federation", import: ["@key"])
      directive @auth(role: [Role!]!) on FIELD_DEFINITION
      enum Role { A }
      type Query @shareable { a(x: Int @constraint(min: 1)): T @auth(role: [A]) }
      type T @key(fields: "id") { id: ID! }
      extend type Query { b: String }`;
    expect(await toolIds(text)).toEqual(["a", "b"]);
  });

  test("may have faults that change nothing for a caller", async () => {
    const text = `
      interface Named { name: String! } type T implements Named { name: String }
      type Query { a(x: Int = "one", y: Int! = null @deprecated): T b(z: Int! @deprecated): Int }`;
    expect(await toolIds(text)).toEqual(["a", "b"]);
  });

  test("gives the same definition every time", async () => {
    const text = JSON.stringify({ endpoint, introspection });
    expect(await adapter.define({ text })).toEqual(await adapter.define({ text }));
  });
});

/** The introspection of a small schema with one part of it replaced. */
function lying(change: (schema: Lie) => void): string {
  const lie = JSON.parse(
    JSON.stringify(
      introspectionFromSchema(
        buildSchema("enum E { A } union U = T input I { a: Int } type T { a: E } type Query { q(i: I): U }"),
      ),
    ),
  ).__schema as Lie;
  change(lie);
  return JSON.stringify({ __schema: lie });
}
interface LieType {
  kind: unknown;
  name: unknown;
  [part: string]: unknown;
  fields: { name: unknown; type: unknown; args: unknown; [part: string]: unknown }[];
}
interface Lie {
  types: LieType[];
  [part: string]: unknown;
}
const typeOf = (lie: Lie, name: string) => lie.types.find((type) => type.name === name)!;
const wrapped = (depth: number) => {
  let type: unknown = { kind: "SCALAR", name: "Int" };
  for (let at = 0; at < depth; at += 1) type = { kind: "LIST", ofType: type };
  return type;
};

describe("documents that are refused", () => {
  test.each<readonly [string, () => string, RegExp]>([
    ["nothing", () => " ", /it is empty$/],
    ["a web page", () => "<!doctype html><p>Not here", /neither JSON nor schema definition language$/],
    ["a sentence", () => "hello", /Syntax Error/],
    ["a list", () => "[1]", /not an object$/],
    ["broken JSON", () => '{"endpoint":', /not valid JSON$/],
    ["a query as SDL", () => "query { a }", /holds a query/],
    ["an anonymous query", () => "{ a }", /not valid JSON$/],
    ["JSON of another kind", () => '{"openapi":"3.0.0"}', /is no introspection result either$/],
    ["an answer that is only errors", () => '{"errors":[{"message":"no"}]}', /is no introspection result either$/],
    ["null for data", () => '{"data":null}', /no object "__schema"$/],
    ["SDL that is a number", () => '{"sdl":1}', /"sdl" is not text$/],
    ["an endpoint that is no URL", () => '{"endpoint":"shop"}', /absolute http or https URL$/],
    ["an endpoint of another protocol", () => '{"endpoint":"file:///etc/passwd"}', /http or https URL$/],
    ["an endpoint with a password", () => '{"endpoint":"https://u:hunter2@example.com/"}', /user name or password$/],
    ["more bytes than allowed", () => `# ${"x".repeat(documentBytesMax)}`, /larger than \d+ bytes$/],
    ["no query type", () => "type Mutation { a: Int }", /Query root type must be provided/],
    ["an unknown type in SDL", () => "type Query { a: Nope }", /Unknown type(: |\s)"Nope"/],
    ["a type twice in SDL", () => "type Query { a: Int } type Query { b: Int }", /only one type named "Query"/],
    ["a field twice in SDL", () => "type Query { a: Int a: Int }", /can only be defined once/],
    ["an input type as output", () => "input I { a: Int } type Query { a: I }", /Output Type|output type/],
    ["an output type as input", () => "type Query { a(b: Query): Int }", /Input Type|input type/],
    [
      "inputs that need each other",
      () => "input A { b: B! } input B { a: A! } type Query { q(a: A): Int }",
      /finite value/,
    ],
    ["a reserved name", () => "type Query { __proto__: Int }", /must not begin with "__"/],
    ["a reserved argument", () => "type Query { a(__select: Int): Int }", /must not begin with "__"/],
    [
      "a reserved input field",
      () => "input I { __proto__: Int } type Query { a(b: I): Int }",
      /must not begin with "__"/,
    ],
    ["lists in lists in SDL", () => `type Query { a: ${"[".repeat(40)}Int${"]".repeat(40)} }`, /wrapped too deep$/],
    ["lists in lists without end", () => `type Query { a: ${"[".repeat(100_000)}`, /nested too deeply$/],
    ["introspection of no shape", () => '{"__schema":{"types":7}}', /does not list its parts$/],
    ["types that are null", () => '{"__schema":{"types":[null]}}', /without a name$/],
    [
      "an unknown type",
      () => lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!.type as object, { name: "Nope" })),
      /unknown type: Nope/,
    ],
    [
      "a kind that does not exist",
      () => lying((lie) => Object.assign(typeOf(lie, "T"), { kind: "MONSTER" })),
      /is of no known kind$/,
    ],
    ["a kind that is another", () => lying((lie) => Object.assign(typeOf(lie, "T"), { kind: "SCALAR" })), /./],
    ["a type twice", () => lying((lie) => lie.types.push(typeOf(lie, "T"))), /has "T" twice$/],
    [
      "a field twice",
      () => lying((lie) => typeOf(lie, "T").fields.push(typeOf(lie, "T").fields[0]!)),
      /has "a" twice$/,
    ],
    ["a name that is a number", () => lying((lie) => Object.assign(typeOf(lie, "T"), { name: 1 })), /without a name$/],
    [
      "a name that is a query",
      () => lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!, { name: "a } evil {" })),
      /Names must only contain|Expected name/i,
    ],
    [
      "a field without a type",
      () => lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!, { type: null })),
      /has no type/,
    ],
    [
      "a type that is cut off",
      () => lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!, { type: { kind: "LIST", ofType: null } })),
      /wrapped deeper than introspection tells$/,
    ],
    [
      "a type wrapped too deep",
      () => lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!, { type: wrapped(40) })),
      /wrapped too deep$/,
    ],
    [
      "a type wrapped without end",
      () =>
        lying((lie) => Object.assign(typeOf(lie, "T").fields[0]!, { type: "deep" })).replace(
          '"deep"',
          `${'{"kind":"LIST","ofType":'.repeat(200_000)}null${"}".repeat(200_000)}`,
        ),
      /wrapped too deep$/,
    ],
    [
      "non-null of non-null",
      () =>
        lying((lie) =>
          Object.assign(typeOf(lie, "T").fields[0]!, {
            type: { kind: "NON_NULL", ofType: { kind: "NON_NULL", ofType: { kind: "SCALAR", name: "Int" } } },
          }),
        ),
      /./,
    ],
    [
      "a union of nothing",
      () => lying((lie) => Object.assign(typeOf(lie, "U"), { possibleTypes: [] })),
      /one or more member types/,
    ],
    [
      "a union of itself",
      () => lying((lie) => Object.assign(typeOf(lie, "U"), { possibleTypes: [{ kind: "UNION", name: "U" }] })),
      /./,
    ],
    ["a root that is an enum", () => lying((lie) => Object.assign(lie, { queryType: { name: "E" } })), /./],
    ["a root that is null", () => lying((lie) => Object.assign(lie, { queryType: null })), /Query root type/],
    [
      "more operations than allowed",
      () => `type Query { ${Array.from({ length: documentOperationsMax + 1 }, (_, at) => `f${at}: Int`).join("\n")} }`,
      /more than 50000 queries and mutations$/,
    ],
  ])("%s", async (_, make, message) => {
    const longestTurn = measureLongestTurn();
    const failed = await adapter.define({ text: make() }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: "invalid_request", message: expect.stringMatching(message) });
    expect((failed as Error).message).not.toContain("hunter2");
    expect((failed as Error).message.length).toBeLessThan(600);
    expect(longestTurn()).toBeLessThan(2_000);
  });
});

describe("introspection that lies harmlessly", () => {
  test.each<readonly [string, string]>([
    ["descriptions that are no text", lying((lie) => Object.assign(typeOf(lie, "T"), { description: { a: 1 } }))],
    [
      "a default nobody can read",
      lying((lie) => Object.assign((typeOf(lie, "Query").fields[0]!.args as object[])[0]!, { defaultValue: "{{{" })),
    ],
    [
      "a default without end",
      lying((lie) =>
        Object.assign((typeOf(lie, "Query").fields[0]!.args as object[])[0]!, { defaultValue: "[".repeat(100_000) }),
      ),
    ],
    ["no interfaces", lying((lie) => Object.assign(typeOf(lie, "T"), { interfaces: null }))],
    ["no directives", lying((lie) => Object.assign(lie, { directives: null }))],
    ["parts nobody asked for", lying((lie) => Object.assign(lie, { __proto__: { a: 1 }, more: wrapped(100) }))],
  ])("is read: %s", async (_, text) => {
    const { definition, plan } = await defined(adapter, text);
    expect(definition.tools.map((tool) => tool.id)).toEqual(["q"]);
    const { inputSchema } = await adapter.describe(plan, "q");
    expect(schemaProblem(inputSchema)).toBeUndefined();
  });
});

describe("large schemas", () => {
  const things = (types: number, fields: number) =>
    [
      `type Query { ${Array.from({ length: types }, (_, at) => `"Finds things." things${at}(where: W${at}): [T${at}!]!`).join("\n")} }`,
      ...Array.from({ length: types }, (_, at) =>
        [
          `"A thing" type T${at} { ${Array.from({ length: fields }, (_, field) => `"Its field" f${field}: String`).join("\n")} next: T${(at + 1) % types} }`,
          `input W${at} { and: [W${at}!] or: [W${at}!] a: W${(at * 3 + 1) % types} b: W${(at * 5 + 2) % types} c: W${(at * 7 + 3) % types} n: Int }`,
        ].join("\n"),
      ),
    ].join("\n");

  test("of 5,000 fields and filters that all refer to each other are defined, and each tool can be checked", async () => {
    const text = JSON.stringify({ endpoint, introspection: introspectionFromSchema(buildSchema(things(250, 20))) });
    const started = performance.now();
    const { definition, plan } = await defined(adapter, text);
    expect(performance.now() - started).toBeLessThan(documentParseMs);
    expect(definition.tools).toHaveLength(250);
    const { inputSchema, outputSchema } = await adapter.describe(plan, "things7");
    expect([schemaProblem(inputSchema), schemaProblem(outputSchema)]).toEqual([undefined, undefined]);
    expect(JSON.stringify(inputSchema).length).toBeLessThan(graphqlInputSchemaCharactersMax * 2);
  });

  test("whose inputs all refer to each other have the nearest written out and the rest open", async () => {
    const types = Array.from({ length: 40 }, (_, at) => at);
    const inputs = types.map(
      (at) => `input W${at} { ${types.map((other) => `w${other}: W${other}`).join(" ")} n: Int }`,
    );
    const { plan } = await defined(adapter, `type Query { q(a: Int!, where: W0): Int } ${inputs.join("\n")}`);
    const { inputSchema } = await adapter.describe(plan, "q");
    expect(schemaProblem(inputSchema)).toBeUndefined();
    const { $defs } = inputSchema as { $defs: Record<string, { properties?: object }> };
    expect($defs.W0?.properties).toHaveProperty("w39");
    expect($defs.W39).toEqual({ type: "object", description: "Input W39" });
    expect(validate(inputSchema, { a: 1, where: { w1: { n: 1 } } })).toEqual([]);
    expect(validate(inputSchema, { a: 1, where: { w1: { m: 1 }, m: 1 } })).not.toEqual([]);
  });

  test("of 100,000 fields are read or refused in time, and leave the event loop alone", async () => {
    const longestTurn = measureLongestTurn();
    const outcome = await adapter.define({ text: things(1_000, 98) }).catch((error: unknown) => error);
    if (outcome instanceof Error) expect(outcome).toMatchObject({ kind: "timeout" });
    else expect(outcome).toMatchObject({ tools: { length: 1_000 } });
    expect(longestTurn()).toBeLessThan(2_000);
  });

  test("select no more than a hundred fields by default", async () => {
    const { plan } = await defined(adapter, things(10, 1_000));
    const { outputSchema } = await adapter.describe(plan, "things1");
    const data = (outputSchema as { properties: { data: { items: { properties: object } } } }).properties.data;
    expect(Object.keys(data.items.properties)).toHaveLength(100);
  });

  test("a document that takes all its time delays no call", async () => {
    const { plan } = await defined(adapter, shopSdl);
    await adapter.describe(plan, "user");
    const slow = adapter.define({ text: things(600, 60) }).catch(() => undefined);
    const started = performance.now();
    await adapter.describe(plan, "users");
    expect(performance.now() - started).toBeLessThan(5_000);
    await slow;
  });
});
