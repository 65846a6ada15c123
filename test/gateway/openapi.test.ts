/**
 * The OpenAPI document that a server gives of itself: held against a linter, its own examples, and the tables of the API document.
 * Whether the server does what it says is the matter of test/e2e/contract.test.ts.
 */
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catalogue } from "../../src/errors/catalogue.ts";
import { type Document, toClosedSchema } from "../e2e/answers/contract.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";

let server: Server;
let text: string;
let document: Document;
let operations: readonly { readonly path: string; readonly method: string; readonly operation: Document }[];

beforeAll(async () => {
  server = await startServer();
  text = (await server.get("/openapi.json")).text;
  document = JSON.parse(text);
  operations = Object.entries(document.paths as Record<string, Record<string, Document>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

const operationOf = (id: string): Document =>
  operations.find(({ operation }) => operation.operationId === id)?.operation ?? expect.unreachable(`no ${id}`);

async function lint(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ["recommended-strict"] });
  const problems = await lintFromString({ source, absoluteRef: "openapi.json", config });
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`);
}

describe("the linter", () => {
  it("has nothing to say", async () => {
    expect(await lint(text)).toEqual([]);
  });

  it("has something to say when something is wrong", async () => {
    const broken = structuredClone(document);
    delete broken.paths["/processes"].post.operationId;
    broken.paths["/processes/{id}"].get.parameters = [];
    const problems = await lint(JSON.stringify(broken));
    expect(problems).toContainEqual(expect.stringContaining("operation-operationId"));
    expect(problems).toContainEqual(expect.stringContaining("path-parameters-defined"));
  });
});

describe("the document", () => {
  it("is OpenAPI 3.0.0 of version 1.0.0 of the interface", () => {
    expect([document.openapi, document.info.version]).toEqual(["3.0.0", "1.0.0"]);
  });

  it("has every operation once, under a tag that is described", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids.length).toBeGreaterThan(60);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = document.tags.map(({ name }: { name: string }) => name);
    for (const { operation } of operations) expect(tags).toContain(operation.tags[0]);
    for (const { description } of document.tags) expect(description).not.toMatch(/^Operations on/);
  });

  it("describes every parameter", () => {
    const silent = operations.flatMap(({ path, operation }) =>
      operation.parameters
        .filter(({ $ref, description }: Document) => $ref === undefined && (description ?? "") === "")
        .map(({ name }: Document) => `${path} ${name}`),
    );
    expect(silent).toEqual([]);
  });

  it("describes every field of every named schema, but for ids of other records", () => {
    const silent = Object.entries(document.components.schemas as Record<string, Document>).flatMap(([name, schema]) =>
      Object.entries((schema.properties ?? {}) as Record<string, Document>)
        .filter(([, { $ref, description, allOf, enum: values }]) => !($ref ?? description ?? allOf ?? values))
        .filter(([field]) => !field.endsWith("Id"))
        .map(([field]) => `${name}.${field}`),
    );
    expect(silent).toEqual([]);
  });

  it("has examples of every body that is JSON or text, and each is valid", () => {
    const ajv = new Ajv({ strict: false });
    addFormats.default(ajv);
    const schemas = Object.entries(document.components.schemas).map(([name, schema]) => [name, toClosedSchema(schema)]);
    ajv.addSchema({ $id: "document", components: { schemas: Object.fromEntries(schemas) } });
    const found: string[] = [];
    let count = 0;
    for (const { path, method, operation } of operations) {
      if (operation.tags[0] === "server") continue;
      const bodies: [string, Document][] = [["body", operation.requestBody?.content ?? {}]];
      for (const [status, response] of Object.entries(operation.responses as Record<string, Document>)) {
        bodies.push([status, response.content ?? {}]);
      }
      for (const [where, content] of bodies) {
        for (const [mediaType, { schema, example }] of Object.entries(content as Record<string, Document>)) {
          if (schema.format === "binary") continue;
          count += 1;
          const at = `${method} ${path} ${where} ${mediaType}`;
          if (example === undefined) found.push(`${at}: none`);
          else if (!ajv.validate(toClosedSchema(schema), example)) found.push(`${at}: ${ajv.errorsText()}`);
        }
      }
    }
    expect(found).toEqual([]);
    expect(count).toBeGreaterThan(60);
  });

  it("has examples of errors whose codes belong to their statuses", () => {
    for (const { operation } of operations) {
      for (const [status, { $ref }] of Object.entries(operation.responses as Record<string, Document>)) {
        if ($ref === undefined || status === "429") continue;
        const { content } = document.components.responses[$ref.split("/").at(-1)];
        for (const { value } of Object.values(content["application/json"].examples) as Document[]) {
          expect(catalogue[value.code as keyof typeof catalogue].rest).toBe(Number(status));
        }
      }
    }
  });

  it("has requests as examples that the server finds valid", async () => {
    // Their example addresses are somewhere else, and would be asked.
    const reachingOut = ["addRegistry", "createService"];
    // What may be patched is told by the schema of the module, and the example is not for the one there is.
    const ofSomeSchema = ["patchModuleConfig", "patchModuleSecrets"];
    const left = new Set([...reachingOut, ...ofSomeSchema, "callMcp"]);
    const refused: string[] = [];
    for (const { path, method, operation } of operations) {
      if (operation.requestBody === undefined || left.has(operation.operationId)) continue;
      const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
        String(operation.parameters.find((one: Document) => one.name === name).example),
      );
      const [content] = Object.values(operation.requestBody.content) as Document[];
      const { status, body } = await server.call(method.toUpperCase(), filled, content.example);
      if ([400, 413, 415, 500].includes(status)) refused.push(`${operation.operationId} ${status} ${body.error}`);
    }
    expect(refused).toEqual([]);
  });

  it("can be installed as a service of the server it describes", async () => {
    const installed = await server.post("/services", { id: "self", url: `${server.http}/openapi.json` });
    expect(installed.text).toBe('{"id":"self"}');
    const { body } = await server.get("/tools?serviceId=self&limit=100");
    expect(body.items.map(({ id }: { id: string }) => id)).toContain("createProcess");
  });
});

type Field = readonly [name: string, type: string, presence: "always" | "sometimes"];

/** Sections 2.1 to 2.8 of the API document, field by field: type, `|null`, and whether it is always there. */
const records: Readonly<Record<string, readonly Field[]>> = {
  Registry: [
    ["id", "string", "always"],
    ["baseUrl", "string", "always"],
    ["lastSyncedAt", "date-time|null", "always"],
    ["createdAt", "date-time", "always"],
    ["updatedAt", "date-time", "always"],
    ["authType", "apiKey,oauth2|null", "always"],
    ["tokenExpiresAt", "integer|null", "always"],
  ],
  RegistryEntry: [
    ["id", "string", "always"],
    ["source", "string", "always"],
    ["name", "string", "sometimes"],
    ["description", "string", "sometimes"],
    ["kind", "string", "sometimes"],
    ["type", "adapter,environment", "sometimes"],
    ["icon", "object", "sometimes"],
  ],
  DefinitionsPage: [
    ["definitions", "array", "always"],
    ["nextCursor", "string|null", "always"],
  ],
  Process: [
    ["id", "integer", "always"],
    ["pid", "integer|null", "always"],
    ["state", "queued,running,idle,terminating", "always"],
    ["exitState", "failed,success,timeout,canceled|null", "always"],
    ["error", "string|null", "always"],
    ["createdAt", "date-time", "always"],
    ["completedAt", "date-time|null", "always"],
    ["ref", "string", "sometimes"],
  ],
  Module: [
    ["id", "string", "always"],
    ["name", "string", "always"],
    ["type", "adapter,environment", "always"],
    ["description", "string", "always"],
    ["version", "string", "always"],
    ["isBuiltin", "boolean", "always"],
    ["enabled", "boolean", "always"],
    ["missing", "boolean", "always"],
    ["hasIcon", "boolean", "always"],
    ["createdAt", "date-time", "always"],
    ["autoUpdate", "boolean", "always"],
    ["autoUpdateConstraint", "string|null", "always"],
  ],
  Configuration: [
    ["config", "object", "always"],
    ["outdated", "array", "always"],
  ],
  SecretsPresence: [
    ["present", "array", "always"],
    ["outdated", "array", "always"],
  ],
  RegistryAuth: [
    ["authType", "apiKey,oauth2|null", "always"],
    ["tokenEndpoint", "string", "sometimes"],
    ["headerName", "string|null", "always"],
    ["tokenExpiresAt", "integer|null", "always"],
    ["availableScopes", "array", "always"],
    ["configuredScopes", "array", "always"],
  ],
  RegistryAuthOutcome: [
    ["type", "apiKey,oauth2", "always"],
    ["status", "configured,error", "always"],
    ["headerName", "string", "sometimes"],
    ["tokenExpiresAt", "integer", "sometimes"],
    ["message", "string", "sometimes"],
  ],
  RateLimitError: [
    ["error", "rate_limit_exceeded", "always"],
    ["message", "string", "always"],
    ["retryAfter", "integer", "always"],
  ],
};

/** Fields that the server has beyond the API document (decisions, sections 4 to 7). */
const more: Readonly<Record<string, readonly string[]>> = { Module: ["reason", "updatedAt"] };

describe("the shapes of the API document", () => {
  const typeOf = ({ type, format, enum: values, nullable }: Document): string => {
    const name = values?.filter((value: unknown) => value !== null).join() ?? format ?? type;
    return nullable === true ? `${name}|null` : name;
  };

  for (const [name, fields] of Object.entries(records)) {
    it(`are those of ${name}`, () => {
      const { properties, required } = document.components.schemas[name];
      const expected = [...fields.map(([field]) => field), ...(more[name] ?? [])];
      expect(Object.keys(properties).sort()).toEqual(expected.sort());
      for (const [field, type, presence] of fields) {
        expect([field, typeOf(properties[field])]).toEqual([field, type]);
        expect([field, required.includes(field)]).toEqual([field, presence === "always"]);
      }
    });
  }

  const parameters: Readonly<Record<string, Readonly<Record<string, object>>>> = {
    browseDefinitions: {
      id: { type: "string", minLength: 1 },
      query: { type: "string", minLength: 1 },
      cursor: { type: "string", minLength: 1 },
      limit: { type: "integer", minimum: 1, maximum: 200, default: 50 },
      kind: { type: "string", minLength: 1 },
    },
    listModules: {
      query: { type: "string" },
      type: { enum: ["adapter", "environment"] },
      isBuiltin: { type: "boolean" },
      enabled: { type: "boolean" },
      missing: { type: "boolean" },
      cursor: { type: "string", maxLength: 2048 },
      limit: { type: "integer", minimum: 1, maximum: 100, default: 20 },
    },
    getProcess: { id: { type: "integer", minimum: 0, exclusiveMinimum: true } },
  };

  for (const [id, expected] of Object.entries(parameters)) {
    it(`are those of the parameters of ${id}`, () => {
      for (const [name, schema] of Object.entries(expected)) {
        const parameter = operationOf(id).parameters.find((one: Document) => one.name === name);
        expect(parameter.schema).toMatchObject(schema);
      }
    });
  }

  it("are those of the body of createProcess", () => {
    const { schema } = operationOf("createProcess").requestBody.content["application/json"];
    expect(schema.required).toEqual(["code"]);
    expect(schema.properties).toMatchObject({
      code: { type: "string", maxLength: 102_400 },
      ref: { type: "string", minLength: 1 },
      timeoutMs: { type: "number", minimum: 0, exclusiveMinimum: true, nullable: true },
      envConfig: { type: "object" },
      autorun: { type: "boolean", default: true },
    });
  });

  it("are those of the statuses and headers of definitions", () => {
    const { responses } = operationOf("browseDefinitions");
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["200", "400", "401", "404", "429", "500", "502"]));
    expect(Object.keys(document.components.responses.TooManyRequests.headers)).toEqual(
      expect.arrayContaining(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"]),
    );
  });
});
