/**
 * A made-up document with as many operations as asked for, about a kilobyte each: parameters, a body and an answer of their own,
 * which share definitions and refer to each other in circles, as large real ones do.
 */
const string = { type: "string" } as const;
const prose =
  "Reads or changes one record; what it may not see it answers as absent, and what is absent it does not create. ";

/** OpenAPI 3.1, as text. `operations` is rounded up to a multiple of four. */
export function manyOperations(operations: number): string {
  const resources = Math.ceil(operations / 4);
  const paths: Record<string, object> = {};
  const schemas: Record<string, object> = { Fault: fault, Link: link };
  for (let number = 0; number < resources; number += 1) {
    const name = `Resource${number}`;
    schemas[name] = resource(name, number, resources);
    schemas[`${name}Page`] = page(name);
    paths[`/areas/{areaId}/${name.toLowerCase()}`] = {
      get: { ...operation(`list${name}`, `${name}Page`), parameters: listParameters },
      post: { ...operation(`create${name}`, name), requestBody: body(name), parameters: [areaId] },
    };
    paths[`/areas/{areaId}/${name.toLowerCase()}/{id}`] = {
      parameters: [areaId, { name: "id", in: "path", required: true, schema: { ...string, format: "uuid" } }],
      get: operation(`get${name}`, name),
      put: { ...operation(`replace${name}`, name), requestBody: body(name) },
    };
  }
  return JSON.stringify({
    openapi: "3.1.0",
    info: { title: "Many operations", version: "1.0.0" },
    servers: [{ url: "https://api.example.test" }],
    paths,
    components: { schemas, securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } } },
    security: [{ key: [] }],
  });
}

const reference = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: object): object => ({ "application/json": { schema } });

const areaId = { name: "areaId", in: "path", required: true, schema: { ...string, minLength: 1 } };
const listParameters = [
  areaId,
  { name: "limit", in: "query", description: "Records on one page", schema: { type: "integer", minimum: 1 } },
  { name: "after", in: "query", description: "From the page before", schema: string },
  { name: "order", in: "query", schema: { type: "array", items: { enum: ["name", "created", "changed"] } } },
];
const fault = {
  type: "object",
  properties: { code: string, message: string, causes: { type: "array", items: reference("Fault") } },
};
const link = { type: "object", properties: { rel: string, href: { ...string, format: "uri" } }, required: ["href"] };

function operation(operationId: string, answer: string): object {
  return {
    operationId,
    summary: `What ${operationId} does`,
    description: prose.repeat(3),
    responses: {
      "200": { description: "Done", content: json(reference(answer)) },
      "404": { description: "Absent", content: json(reference("Fault")) },
    },
  };
}

function body(name: string): object {
  return { required: true, content: json(reference(name)) };
}

/** Refers to three others, so that all of them form one circle. */
function resource(name: string, number: number, resources: number): object {
  const other = (step: number): object => reference(`Resource${(number + step) % resources}`);
  return {
    type: "object",
    description: prose,
    properties: {
      id: { ...string, format: "uuid", readOnly: true },
      name: { ...string, maxLength: 200, pattern: "^[^\\s].*$", description: prose },
      state: { enum: ["new", "active", "closed"], description: `Of the ${name}` },
      weight: { type: "number", minimum: 0, exclusiveMaximum: 1_000 },
      labels: { type: "object", additionalProperties: string },
      links: { type: "array", items: reference("Link") },
      parent: { oneOf: [other(1), { type: "null" }] },
      parts: { type: "array", items: other(7) },
      origin: other(31),
    },
    required: ["id", "name"],
  };
}

function page(name: string): object {
  return {
    type: "object",
    properties: { items: { type: "array", items: reference(name) }, next: { type: ["string", "null"] } },
  };
}
