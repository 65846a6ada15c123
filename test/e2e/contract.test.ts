/**
 * The answers of a running server are those its OpenAPI document describes: each operation is asked so that it succeeds and so that it
 * does not, and whatever comes back (status, headers, media type, every field) must be documented. The checker is itself put to the test:
 * take something out of the document, and it must notice.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Contract, type Document } from "./answers/contract.ts";
import { askOf, openSurroundings, type Surroundings, type Told, walkAll } from "./answers/walk.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

/** Statuses that say that it went well. */
const isSuccess = (status: number): boolean => status < 400;

/** Operations that cannot be asked in vain, or not here, and why. */
const neverFails: Readonly<Record<string, string>> = {};
const neverSucceeds: Readonly<Record<string, string>> = {};

let server: Server;
let surroundings: Surroundings;
let document: Document;
let contract: Contract;
const exchanges: Told[] = [];
const problems: string[] = [];

beforeAll(async () => {
  server = await startServer({
    settings: { SERVICE_API_KEYS: "boss:operator:boss-key,bot:agent:agent-key", SERVICE_RATE_LIMITS: "*=100000/60s" },
  });
  surroundings = await openSurroundings();
  document = (await server.get("/openapi.json")).body;
  contract = new Contract(document);
  const ask = askOf(server, "boss-key", (exchange) => {
    exchanges.push(exchange);
    problems.push(...contract.problems(exchange));
  });
  await walkAll(ask, surroundings);
}, 120_000);

afterAll(async () => {
  await surroundings.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

describe("every answer of a walk over all operations", () => {
  it("is as documented", () => {
    expect(exchanges.length).toBeGreaterThan(200);
    expect(problems).toEqual([]);
  });

  it("is never a fault of the server", () => {
    expect(exchanges.filter(({ status }) => status === 500).map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  const seenWhere = (wanted: (status: number) => boolean): Set<string> =>
    new Set([...contract.seen].filter(([, statuses]) => [...statuses].some(wanted)).map(([id]) => id));

  it("covers every operation with a success", () => {
    const succeeded = seenWhere(isSuccess);
    const missing = contract.operationIds.filter((id) => !succeeded.has(id));
    expect(missing).toEqual(Object.keys(neverSucceeds));
  });

  it("covers every operation with an error", () => {
    const failed = seenWhere((status) => !isSuccess(status));
    const missing = contract.operationIds.filter((id) => !failed.has(id));
    expect(missing).toEqual(Object.keys(neverFails));
  });
});

describe("the checker notices when", () => {
  type Change = (changed: Document) => void;
  const changes: Readonly<Record<string, Change>> = {
    "a status is not documented": ({ components, paths }) => {
      delete paths["/processes/{id}"].get.responses[404];
      delete components.responses.NotFound;
    },
    "the success of an operation is another": ({ paths }) => {
      const { responses } = paths["/registries"].post;
      responses[200] = responses[201];
      delete responses[201];
    },
    "a field of a record is not documented": ({ components }) => {
      delete components.schemas.Process.properties.pid;
    },
    "a field of a list is not documented": ({ paths }) => {
      delete paths["/modules"].get.responses[200].content["application/json"].schema.properties.hasMore;
    },
    "a field is promised that is not there": ({ components }) => {
      components.schemas.Service.properties.owner = { type: "string" };
      components.schemas.Service.required.push("owner");
    },
    "a field has another type": ({ components }) => {
      components.schemas.Registry.properties.createdAt = { type: "integer" };
    },
    "a field is said not to be null": ({ components }) => {
      components.schemas.Process.properties.completedAt.nullable = false;
    },
    "an enum lacks a value": ({ components }) => {
      components.schemas.Process.properties.exitState.enum = ["success", null];
    },
    "an error code is not documented": ({ components }) => {
      const { code } = components.schemas.Error.properties;
      code.enum = code.enum.filter((kind: string) => kind !== "cursor_expired");
    },
    "the media type is another": ({ paths }) => {
      const { responses } = paths["/processes/{id}/stdout"].get;
      responses[200].content = { "text/html": { schema: { type: "string" } } };
    },
    "a header is not documented": ({ paths }) => {
      delete paths["/services/{serviceId}/config"].get.responses[200].headers.ETag;
    },
    "a header is promised that is not there": ({ components }) => {
      components.responses.NotFound.headers.ETag = { required: true, schema: { type: "string" } };
    },
    "a header has another type": ({ components }) => {
      components.headers["X-RateLimit-Limit"].schema = { type: "integer", maximum: 1 };
    },
    "an operation is not documented": ({ paths }) => {
      delete paths["/services/{serviceId}"].delete;
    },
    "a path is not documented": ({ paths }) => {
      delete paths["/environment/docs"];
    },
    "a body is said to be empty": ({ paths }) => {
      delete paths["/tools"].get.responses[200].content;
    },
    "an empty answer is said to have a body": ({ paths }) => {
      const { responses } = paths["/registries/{id}"].delete;
      responses[204].content = { "application/json": { schema: { type: "object" } } };
    },
  };

  for (const [what, change] of Object.entries(changes)) {
    it(what, () => {
      const changed = structuredClone(document);
      change(changed);
      const other = new Contract(changed);
      expect(exchanges.some((exchange) => other.problems(exchange).length > 0)).toBe(true);
    });
  }

  it("a code does not belong to its status", () => {
    const { headers } = exchanges.find(({ status, path }) => status === 404 && path.startsWith("/processes/")) as Told;
    const text = JSON.stringify({ error: "There is no process 42", code: "conflict" });
    const exchange = { method: "GET", path: "/processes/42", status: 404, headers, text };
    expect(contract.problems(exchange)).toEqual([expect.stringContaining('"conflict" does not belong')]);
  });
});
