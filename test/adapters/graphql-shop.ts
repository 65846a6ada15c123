/** A real GraphQL server on 127.0.0.1: graphql-js over node:http, with a schema that has something of everything. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buildSchema, execute, NoSchemaIntrospectionCustomRule, parse, specifiedRules, validate } from "graphql";

export const shopSdl = `
"A shop on 127.0.0.1"
schema { query: Query mutation: Mutation subscription: Subscription }
scalar DateTime @specifiedBy(url: "https://example.com/date-time")
scalar Any
enum Color { RED GREEN BLUE @deprecated(reason: "Sold out") }
interface Node { id: ID! }
"Who buys"
type User implements Node {
  id: ID!
  "As they are called"
  name: String!
  email: String
  born: DateTime
  color: Color
  scores: [Float!]!
  orders(first: Int): OrderConnection!
  friends: [User!]!
  avatar(size: Int!): String
  shadow: String @deprecated
}
type Order implements Node { id: ID! total: Float! buyer: User! items: [Item!]! note: String }
type OrderConnection { edges: [OrderEdge!]! totalCount: Int! }
type OrderEdge { cursor: String! node: Order! }
union Item = Book | Toy
type Book { title: String! pages: Int! weight: Int! maker: User }
type Toy { name: String! weight: String! maker: User }
input Point { x: Float! y: Float! = 0 }
input Filter { name: String colors: [Color!] and: [Filter!] not: Filter near: Point }
input NewUser { name: String! email: String color: Color = RED tags: [String!]! = ["new"] point: Point extra: Any }
input UserBy @oneOf { id: ID email: String }
type Query {
  "Finds one user. By id."
  user(id: ID!): User
  userBy(by: UserBy!): User
  users(filter: Filter, limit: Int = 10): [User!]!
  orders(first: Int!): OrderConnection!
  node(id: ID!): Node
  items: [Item!]!
  add(a: Int!, b: Int! = 5): Int!
  echo(value: Any, at: DateTime, flag: Boolean, list: [[Int]], color: Color, id: ID): Any
  broken: String!
  brokenUsers: [User]
  version: String @deprecated(reason: "Ask the box")
  clash(a: Int): String
}
type Mutation { createUser(input: NewUser!): User! clash(b: Int): String explode: String! }
type Subscription { ticks: Int! clocks: Int! }
`;

const ada = {
  __typename: "User",
  id: "1",
  name: "Ada",
  email: null,
  born: "1815-12-10",
  color: "RED",
  scores: [1, 2.5],
  friends: () => [bob],
};
const bob = {
  __typename: "User",
  id: "2",
  name: "Bob",
  email: "b@example.com",
  color: "GREEN",
  scores: [],
  friends: [],
};
const book = { __typename: "Book", title: "Sketch", pages: 66, weight: 3, maker: ada };
const toy = { __typename: "Toy", name: "Top", weight: "light", maker: bob };
const order = { __typename: "Order", id: "o1", total: 9.5, buyer: ada, items: [book, toy] };
const connection = { totalCount: 1, edges: [{ cursor: "c", node: order }] };
const users = [
  { ...ada, orders: connection, avatar: ({ size }: { size: number }) => `ada@${size}` },
  { ...bob, orders: connection },
];

function fail(message: string): never {
  throw new Error(message);
}

const root = {
  user: ({ id }: { id: string }) => users.find((user) => user.id === id) ?? null,
  userBy: ({ by }: { by: { id?: string; email?: string } }) =>
    users.find((user) => user.id === by.id || user.email === by.email),
  users: ({ filter, limit }: { filter?: { name?: string }; limit: number }) =>
    users.filter((user) => filter?.name === undefined || user.name === filter.name).slice(0, limit),
  orders: () => connection,
  node: ({ id }: { id: string }) => (id === "o1" ? order : users[0]),
  items: [book, toy],
  add: ({ a, b }: { a: number; b: number }) => a + b,
  echo: (args: object) => args,
  broken: () => fail("It is broken"),
  brokenUsers: () => [users[0], { ...bob, name: () => fail("No name") }],
  version: "1",
  clash: ({ a, b }: { a?: number; b?: number }) => (b === undefined ? `query ${a}` : `mutation ${b}`),
  createUser: ({ input }: { input: object }) => ({ ...users[0], ...input, id: "9", email: JSON.stringify(input) }),
  explode: () => fail("Boom"),
};

export interface Posted {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: {
    readonly query: string;
    readonly operationName: string;
    readonly variables?: Record<string, unknown>;
  };
}

export interface Shop {
  readonly endpoint: string;
  readonly posted: Posted[];
  last(): Posted;
  /** Answers in the place of GraphQL; null: GraphQL again. */
  respond: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  introspection: boolean;
  mediaType: string;
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const schema = buildSchema(shopSdl);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    if (request.method === "POST") shop.posted.push({ headers: request.headers, body: JSON.parse(text) });
    if (shop.respond) return shop.respond(request, response);
    const { query, variables, operationName } = JSON.parse(text);
    const document = parse(query);
    const rules = shop.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
    const errors = validate(schema, document, rules);
    const answer =
      errors.length > 0
        ? { errors }
        : await execute({ schema, document, rootValue: root, variableValues: variables, operationName });
    response.writeHead(errors.length > 0 ? 400 : 200, { "content-type": shop.mediaType });
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const shop: Shop = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`,
    posted: [],
    last: () => shop.posted.at(-1) ?? fail("Nothing was posted"),
    respond: null,
    introspection: true,
    mediaType: "application/graphql-response+json; charset=utf-8",
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return shop;
}
