/** `__select`: what callers may write, and that nothing else ever leaves. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { graphqlSelectCharactersMax, graphqlSelectDepthMax, graphqlSelectFieldsMax } from "../../src/limits.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { type Discovered, discovered, openTestGraphql } from "./graphql-bench.ts";
import { openShop, type Shop } from "./graphql-shop.ts";

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

describe("a selection that fits", () => {
  test.each<readonly [string, string, unknown]>([
    ["fields", "id name", { id: "1", name: "Ada" }],
    ["fields with commas", "id, name", { id: "1", name: "Ada" }],
    ["its own braces", " { id } ", { id: "1" }],
    ["a comment at its end", "id # } evil", { id: "1" }],
    ["aliases", "a: id b: id", { a: "1", b: "1" }],
    ["arguments", "avatar(size: 3)", { avatar: "ada@3" }],
    ["related objects", "friends { name friends { name } }", { friends: [{ name: "Bob", friends: [] }] }],
    [
      "a connection",
      "orders(first: 1) { edges { node { total } } }",
      { orders: { edges: [{ node: { total: 9.5 } }] } },
    ],
    ["fragments", "__typename ... on User { id } ... { name }", { __typename: "User", id: "1", name: "Ada" }],
    ["deprecated fields", "shadow", { shadow: null }],
    ["a keyword as a name", "query: id", { query: "1" }],
  ])("may have %s", async (_, select, data) => {
    expect(await service.call("user", { id: 1, __select: select })).toEqual({ data, errors: [] });
  });

  test("is sent as printed from its syntax tree, and parsed once", async () => {
    for (let round = 0; round < 2; round += 1) {
      await service.call("user", { id: 1, __select: "id,,,# comment\n name" });
      expect(shop.last().body.query).toBe("query user($id: ID!) { user(id: $id) {\n  id\n  name\n} }");
    }
  });
});

describe("a selection that is refused, naming why, before anything is sent", () => {
  const nested = (depth: number) => `${"friends { ".repeat(depth - 1)}id${" }".repeat(depth - 1)}`;

  test.each<readonly [string, string, RegExp]>([
    ["nothing", "", /empty pair of braces$/],
    ["nothing but a comment", "# id", /empty pair of braces$/],
    ["an open brace", "{", /Syntax Error/],
    ["a brace too many", "id }", /Syntax Error/],
    ["a broken string", 'avatar(size: "', /Syntax Error/],
    ["a control character", "id \u0000", /Syntax Error/],
    ["an unknown field", "nope", /Cannot query field "nope" on type "User"/],
    ["a field of a leaf", "id { x }", /must not have a selection/],
    ["an object without fields", "friends", /must have a selection of subfields/],
    ["an object with empty braces", "friends {}", /empty pair of braces$/],
    ["a missing argument", "avatar", /"Int!" is required/],
    ["an argument of another type", 'avatar(size: "x")', /Int cannot represent/],
    ["an unknown argument", "id(x: 1)", /Unknown argument "x"/],
    ["another type", "... on Order { id }", /can never be of type "Order"/],
    ["an unknown type", "... on Nope { id }", /Unknown type "Nope"/],
    ["two things of one name", "a: id a: name", /conflict/],
    ["a second operation", "id } query Evil { version", /must be one selection/],
    ["a mutation behind it", "id } mutation { explode", /must be one selection/],
    ["a mutation in braces behind it", "{ id } mutation { explode }", /must be one selection/],
    ["a fragment behind it", "id } fragment F on User { id", /must be one selection/],
    ["a definition behind it", "id } type Evil { id: ID", /must be one selection/],
    ["an operation", "query { id }", /Cannot query field "query"/],
    ["a named fragment", "...F", /named fragments/],
    ["a directive", "id @include(if: true)", /directives/],
    ["a directive on a fragment", "... @defer { id }", /directives/],
    ["a variable of its own", "avatar(size: $x)", /variables/],
    ["a variable of the tool", "orders(first: $id) { totalCount }", /variables/],
    ["a way out of its field", "id } version x: user(id: 1) { id", /Syntax Error/],
    ["too many levels", nested(graphqlSelectDepthMax + 1), /deeper than 12 levels$/],
    ["far too many levels", nested(1_000), /deeper than 12 levels$/],
    ["lists without end", `avatar(size: ${"[".repeat(8_000)}`, /deeper than 12 levels$|Syntax Error/],
    [
      "too many fields",
      Array(graphqlSelectFieldsMax + 1)
        .fill("id")
        .join(" "),
      /more than 500 fields$/,
    ],
    ["too many characters", `id ${" ".repeat(graphqlSelectCharactersMax)}`, /more than 16384 characters/],
  ])("%s", async (_, select, message) => {
    const refused = { kind: "invalid_request", message: expect.stringMatching(message) };
    await expect(service.call("user", { id: 1, __select: select })).rejects.toMatchObject(refused);
    expect(shop.posted).toEqual([]);
  });

  test("a selection that is no text", async () => {
    for (const select of [null, 1, ["id"], { id: true }])
      await expect(service.call("user", { id: 1, __select: select })).rejects.toMatchObject({
        kind: "invalid_request",
      });
  });

  test("a selection of a result that has no fields", async () => {
    await expect(service.call("add", { a: 1, __select: "id" })).rejects.toMatchObject({ kind: "invalid_request" });
  });
});

test("a selection as deep and as wide as allowed is sent", async () => {
  const deep = `${"friends { ".repeat(graphqlSelectDepthMax - 1)}id${" }".repeat(graphqlSelectDepthMax - 1)}`;
  expect(await service.call("user", { id: 2, __select: deep })).toEqual({ data: { friends: [] }, errors: [] });
  const wide = Array.from({ length: graphqlSelectFieldsMax }, (_, at) => `a${at}: id`).join(" ");
  expect(Object.keys(((await service.call("user", { id: 1, __select: wide })) as { data: object }).data)).toHaveLength(
    graphqlSelectFieldsMax,
  );
});
