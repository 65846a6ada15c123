/** What operations of the document share: named schemas, headers, parameters and error answers. Only what is used is written. */
import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { catalogue } from "../../errors/catalogue.ts";
import type { FailureKind } from "../../errors/failure.ts";
import { exampleOf } from "./example.ts";
import type { JsonObject } from "./json-object.ts";
import { mapValues, type Named, type SchemaObject, schemaObject, schemaReference } from "./schema.ts";
import { errorAnswers, errorSchemas, headerObjects, parameterObjects } from "./shared-objects.ts";

export class Components {
  readonly #schemas: Record<string, SchemaObject> = {};
  readonly #headers = new Set<string>();
  readonly #parameters = new Set<string>();
  readonly #responses = new Set<number>();

  schema(schema: z.ZodType, io: "input" | "output"): SchemaObject {
    const made = schemaObject(schema, io);
    for (const [id, one] of Object.entries(made.named)) {
      const known = this.#schemas[id];
      if (known !== undefined && !isDeepStrictEqual(known, one)) throw new Error(`Two schemas have the id "${id}"`);
      this.#schemas[id] = one;
    }
    return made.schema;
  }

  /** Follows one reference. */
  deref(schema: SchemaObject): SchemaObject {
    return schema.$ref === undefined ? schema : (this.#schemas[schema.$ref.slice(schemaReference.length)] ?? {});
  }

  example(schema: SchemaObject): unknown {
    return exampleOf(schema, this.#schemas as Named);
  }

  headers(...names: readonly (keyof typeof headerObjects)[]): JsonObject {
    for (const name of names) this.#headers.add(name);
    return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  }

  parameter(name: keyof typeof parameterObjects): JsonObject {
    this.#parameters.add(name);
    return { $ref: `#/components/parameters/${name}` };
  }

  /** Error answers by status, for these kinds. */
  errors(kinds: Iterable<FailureKind>): Record<string, JsonObject> {
    const statuses = [...new Set([...kinds].map((kind) => catalogue[kind].rest))].sort((a, b) => a - b);
    return Object.fromEntries(
      statuses.map((status) => {
        this.#responses.add(status);
        return [status, { $ref: `#/components/responses/${errorAnswers[status]?.name}` }];
      }),
    );
  }

  object(): JsonObject {
    const responses = [...this.#responses].sort((a, b) => a - b).map((status) => this.#errorResponse(status));
    const schemas = { ...this.#schemas, ...errorSchemas };
    return {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A key of SERVICE_API_KEYS" },
      },
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: Object.fromEntries([...this.#headers].sort().map((name) => [name, headerObjects[name]])),
      parameters: Object.fromEntries([...this.#parameters].sort().map((name) => [name, parameterObjects[name]])),
      responses: Object.fromEntries(responses),
    };
  }

  #errorResponse(status: number): readonly [string, JsonObject] {
    const answer = errorAnswers[status];
    if (answer === undefined) throw new Error(`There is no answer for status ${status}`);
    const schema = { $ref: `${schemaReference}${status === 429 ? "RateLimitError" : "Error"}` };
    const { name, description, examples, headers } = answer;
    return [
      name,
      {
        description,
        headers: this.headers("X-Request-Id", ...headers),
        content: { "application/json": { schema, examples: mapValues(examples, (value) => ({ value })) } },
      },
    ];
  }
}
