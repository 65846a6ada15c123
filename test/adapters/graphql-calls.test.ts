/** Tools of a real GraphQL server: what they look like, what is posted, and what comes back. */

import { buildSchema, parse, validate as validateDocument } from "graphql";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { schemaProblem, validate } from "../../src/json/schema.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { type Discovered, discovered, openTestGraphql } from "./graphql-bench.ts";
import { openShop, type Shop, shopSdl } from "./graphql-shop.ts";

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
beforeEach(() => {
  shop.posted.length = 0;
});

describe("the definition", () => {
  test("has a tool for each query and mutation, and says that subscriptions are left out", () => {
    const { title, description, tools } = service.definition;
    expect(title).toBe(new URL(shop.endpoint).host);
    expect(description).toBe("A shop on 127.0.0.1\n\nLeft out: 2 subscriptions");
    expect(tools.map((tool) => tool.id)).toEqual(
      "user userBy users orders node items add echo broken brokenUsers version clash createUser clash_mutation explode".split(
        " ",
      ),
    );
  });

  test("describes a tool for lists and searches", () => {
    const byId = new Map(service.definition.tools.map((tool) => [tool.id, tool]));
    expect(byId.get("user")).toEqual({
      id: "user",
      name: "user",
      summary: "Finds one user.",
      description: "Finds one user. By id.\n\nGraphQL query of type User",
      parameterNames: ["id"],
    });
    expect(byId.get("version")?.description).toBe("Deprecated: Ask the box\n\nGraphQL query of type String");
    expect(byId.get("createUser")?.parameterNames).toEqual([
      "input",
      "name",
      "email",
      "color",
      "tags",
      "point",
      "extra",
    ]);
    expect(byId.get("clash_mutation")?.name).toBe("clash");
  });

  test("is the same from the schema definition language, apart from the endpoint", async () => {
    const { tools } = await adapter.define({ text: shopSdl });
    expect(tools).toEqual(service.definition.tools);
  });
});

describe("schemas", () => {
  test("every tool has schemas that can be compiled", async () => {
    for (const { id } of service.definition.tools) {
      const { inputSchema, outputSchema } = await adapter.describe(service.plan, id);
      expect([id, schemaProblem(inputSchema), schemaProblem(outputSchema)]).toEqual([id, undefined, undefined]);
    }
  });

  test("of parameters tell required from optional, null from absent, and name defaults", async () => {
    const { inputSchema } = await adapter.describe(service.plan, "createUser");
    expect(inputSchema).toMatchObject({
      required: ["input"],
      additionalProperties: false,
      properties: { input: { $ref: "#/$defs/NewUser" }, __select: { type: "string" } },
      $defs: {
        NewUser: {
          required: ["name"],
          properties: {
            color: { enum: ["RED", "GREEN", "BLUE", null], default: "RED" },
            tags: { type: "array", items: { type: "string" }, default: ["new"] },
            point: { anyOf: [{ $ref: "#/$defs/Point" }, { type: "null" }] },
          },
        },
        Point: { required: ["x"] },
      },
    });
  });

  test("of scalars hold no selection parameter", async () => {
    const { inputSchema, outputSchema } = await adapter.describe(service.plan, "add");
    expect(inputSchema).toMatchObject({
      properties: { a: { type: "integer", minimum: -2147483648, maximum: 2147483647 }, b: { default: 5 } },
      required: ["a"],
    });
    expect(JSON.stringify(inputSchema)).not.toContain("__select");
    expect(outputSchema).toMatchObject({ properties: { data: { type: ["integer", "null"] } } });
  });

  test.each<readonly [string, unknown, boolean]>([
    ["user", { id: 7 }, true],
    ["user", { id: 7.5 }, false],
    ["user", {}, false],
    ["user", { id: null }, false],
    ["user", { id: "1", more: 1 }, false],
    ["users", {}, true],
    ["users", { filter: null }, true],
    ["users", { filter: { and: [{ not: { colors: ["RED"] } }] } }, true],
    ["users", { filter: { and: [null] } }, false],
    ["users", { filter: { colors: ["PINK"] } }, false],
    ["users", { filter: { unknown: 1 } }, false],
    ["users", { limit: 2 ** 31 }, false],
    ["add", { a: 1, b: null }, false],
    ["userBy", { by: { id: "1" } }, true],
    ["userBy", { by: { id: "1", email: "e" } }, false],
    ["userBy", { by: { id: null } }, false],
    ["userBy", { by: {} }, false],
    ["echo", { list: [[1, null], null] }, true],
    ["echo", { list: [1] }, false],
    ["echo", { value: { any: ["thing", 1] } }, true],
  ])("of tool %s take %j: %s", async (toolId, parameters, fits) => {
    const { inputSchema } = await adapter.describe(service.plan, toolId);
    expect(validate(inputSchema, parameters).length === 0).toBe(fits);
  });

  test("of an unknown tool are not found", async () => {
    for (const id of ["nope", "__proto__", "constructor", "ticks"])
      await expect(adapter.describe(service.plan, id)).rejects.toMatchObject({ kind: "not_found" });
  });
});

describe("a call", () => {
  test.each<readonly [string, unknown, unknown]>([
    ["user", { id: 1 }, { id: "1", name: "Ada", email: null, born: "1815-12-10", color: "RED", scores: [1, 2.5] }],
    ["user", { id: "nobody" }, null],
    ["userBy", { by: { email: "b@example.com" }, __select: "name" }, { name: "Bob" }],
    ["users", { filter: { name: "Bob" }, __select: "id" }, [{ id: "2" }]],
    ["users", { limit: 1, __select: "id" }, [{ id: "1" }]],
    ["add", { a: 1 }, 6],
    ["add", { a: 1, b: 2 }, 3],
    ["clash", { a: 1 }, "query 1"],
    ["clash_mutation", { b: 1 }, "mutation 1"],
    [
      "echo",
      { value: { a: [1, null] }, flag: false, list: [[1], null], color: "RED", id: 5, at: null },
      { value: { a: [1, null] }, flag: false, list: [[1], null], color: "RED", id: "5", at: null },
    ],
    ["echo", { value: 'quotes " and } braces $x' }, { value: 'quotes " and } braces $x' }],
    [
      "createUser",
      { input: { name: "Z", email: null }, __select: "name email" },
      { name: "Z", email: '{"name":"Z","email":null,"color":"RED","tags":["new"]}' },
    ],
  ])("of %s with %j gives %j", async (toolId, parameters, data) => {
    expect(await service.call(toolId, parameters)).toEqual({ data, errors: [] });
  });

  test("without parameters is fine where none are needed", async () => {
    expect(await service.call("version")).toEqual({ data: "1", errors: [] });
  });

  test("declares and passes only the arguments that are given", async () => {
    await service.call("users", { limit: 1, __select: "id" });
    expect(shop.last().body).toEqual({
      query: "query users($limit: Int) { users(limit: $limit) {\n  id\n} }",
      operationName: "users",
      variables: { limit: 1 },
    });
    expect(shop.last().headers).toMatchObject({
      accept: "application/graphql-response+json, application/json;q=0.9",
      "content-type": "application/json",
    });
  });

  test("with errors resolves with them, without positions in a text the caller never saw", async () => {
    expect(await service.call("broken")).toEqual({
      data: null,
      errors: [{ message: "It is broken", path: ["broken"] }],
    });
    expect(await service.call("explode")).toMatchObject({ data: null, errors: [{ message: "Boom" }] });
  });

  test("that fails in part gives the rest", async () => {
    expect(await service.call("brokenUsers", { __select: "name" })).toEqual({
      data: [{ name: "Ada" }, null],
      errors: [{ message: "No name", path: ["brokenUsers", 1, "name"] }],
    });
  });

  test("with parameters that do not fit is refused before anything is sent", async () => {
    await expect(service.call("user", { id: true })).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringContaining("/id"),
    });
    expect(shop.posted).toEqual([]);
  });

  test("reads the older media type as well", async () => {
    shop.mediaType = "application/json";
    expect(await service.call("add", { a: 2 })).toEqual({ data: 7, errors: [] });
  });
});

describe("the default selection", () => {
  const selectedBy = async (toolId: string, parameters: unknown, depth?: number) => {
    await service.call(toolId, parameters, depth === undefined ? {} : { config: { selectionDepth: depth } });
    const [, selection] = /^[^{]*\{ \w+(?:\([^)]*\))? (.*) \}$/.exec(shop.last().body.query) ?? [];
    return selection;
  };
  const user = "id name email born color scores";

  test("has all leaf fields, but none that need arguments, are deprecated, or lead back", async () => {
    expect(await selectedBy("user", { id: 1 })).toBe(`{ ${user} }`);
  });

  test("reaches the nodes of a connection at the top", async () => {
    expect(await selectedBy("orders", { first: 1 })).toBe("{ edges { cursor node { id total note } } totalCount }");
    const { data } = (await service.call("orders", { first: 1 })) as { data: unknown };
    expect(data).toEqual({ edges: [{ cursor: "c", node: { id: "o1", total: 9.5, note: null } }], totalCount: 1 });
  });

  test("tells the types of a union apart, and leaves out what cannot be merged", async () => {
    expect(await selectedBy("items", {}, 1)).toBe(
      "{ __typename ... on Book { title pages weight } ... on Toy { name } }",
    );
    expect(await service.call("items", {}, { config: { selectionDepth: 1 } })).toMatchObject({
      data: [
        { __typename: "Book", weight: 3 },
        { __typename: "Toy", name: "Top" },
      ],
      errors: [],
    });
  });

  test("of an interface has its fields, and those of its types in fragments", async () => {
    expect(await selectedBy("node", { id: "o1" }, 2)).toBe(
      `{ __typename id ... on User { name email born color scores } ... on Order { total buyer { ${user} } items { __typename ... on Book { title pages weight } ... on Toy { name } } note } }`,
    );
  });

  test("is valid and says what the output schema says, at every depth", async () => {
    const schema = buildSchema(shopSdl);
    for (const { id } of service.definition.tools.filter(
      (tool) => !["add", "echo", "userBy", "createUser"].includes(tool.id),
    )) {
      for (const depth of [1, 2, 3, 6]) {
        const parameters = { user: { id: 1 }, node: { id: "o1" }, orders: { first: 1 } }[id] ?? {};
        const result = await service.call(id, parameters, { config: { selectionDepth: depth } });
        expect(validateDocument(schema, parse(shop.last().body.query))).toEqual([]);
        const { outputSchema } = await adapter.describe(service.plan, id);
        expect([id, validate(outputSchema, result)]).toEqual([id, []]);
      }
    }
  });
});
