/**
 * A plausible value for a JSON Schema: the document's own example, default or first enum member where it gives one, else made
 * from type and format. Only required properties are filled in. It is for reading: usually valid, never checked, bounded.
 */
import { foreignJson } from "./foreign-text.ts";
import { isObject, resolveReference, type SchemaObject } from "./schema-references.ts";

/** Nesting through references; deeper is null. */
const depthMax = 8;
/** Values in one example: a schema with thousands of required properties still gives a short text. */
const valuesMax = 60;
/** JSON text of an example taken from the document; longer ones are replaced by a made one. */
const givenCharactersMax = 600;
/** Schemas merged for one example: references that fan out end here. */
const mergesMax = 300;

export function exampleFromSchema(schema: unknown, root: unknown = schema): unknown {
  return new ExampleMaker(root).make(schema, 0);
}

class ExampleMaker {
  readonly #root: unknown;
  #values = 0;
  #merges = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  make(schema: unknown, depth: number): unknown {
    this.#values += 1;
    if (!isObject(schema)) return "value";
    if (depth > depthMax || this.#values > valuesMax) return null;
    const given = givenValue(schema);
    if (given !== undefined) return given;
    const flat = this.#flatten(schema, depth);
    return givenValue(flat) ?? this.#made(flat, depth);
  }

  /** The schema with its reference, allOf and the first useful alternative merged in, as far as an example needs it. */
  #flatten(schema: SchemaObject, depth: number): SchemaObject {
    this.#merges += 1;
    if (depth > depthMax || this.#merges > mergesMax) return {};
    const target = typeof schema.$ref === "string" ? resolveReference(schema.$ref, this.#root)?.schema : undefined;
    const alternatives = [schema.oneOf, schema.anyOf].map((schemas) => firstUseful(schemas, this.#root));
    const all = Array.isArray(schema.allOf) ? schema.allOf.slice(0, valuesMax) : [];
    const parts = [target, ...all, ...alternatives].filter(isObject).map((part) => this.#flatten(part, depth + 1));
    const { $ref: _, oneOf: __, anyOf: ___, allOf: ____, ...own } = schema;
    return [...parts, own].reduce(merged, {});
  }

  #made(schema: SchemaObject, depth: number): unknown {
    switch (typeOf(schema)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, depth);
      case "integer":
        return numberWithin(schema, true);
      case "number":
        return numberWithin(schema, false);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return stringWithin(schema);
    }
  }

  #object(schema: SchemaObject, depth: number): unknown {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
    const entries = required
      .slice(0, valuesMax)
      .filter(() => this.#values < valuesMax)
      .map((name) => [name, this.make(Object.hasOwn(properties, name) ? properties[name] : true, depth + 1)] as const);
    // fromEntries defines properties, so that "__proto__" is a name like any other.
    return Object.fromEntries(entries);
  }

  #array(schema: SchemaObject, depth: number): unknown[] {
    const fixed = [schema.prefixItems, schema.items].find((items) => Array.isArray(items)) ?? [];
    const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
    const least = Math.max(bound(schema.minItems) ?? 0, fixed.length, 1);
    const length = Math.min(least, bound(schema.maxItems) ?? least, valuesMax);
    return Array.from({ length: Math.max(0, length) }, (_, index) => this.make(fixed[index] ?? rest, depth + 1));
  }
}

/** The value the document itself proposes, small enough to show. */
function givenValue(schema: SchemaObject): unknown {
  const examples = Array.isArray(schema.examples) ? schema.examples : [];
  const values = Array.isArray(schema.enum) ? schema.enum : [];
  const candidates = [
    schema.const,
    schema.example,
    examples[0],
    schema.default,
    values.find((value) => value !== null),
    values[0],
  ];
  return candidates.find(
    (value) => value !== undefined && (foreignJson(value)?.length ?? Infinity) <= givenCharactersMax,
  );
}

/** The first alternative that is more than null. */
function firstUseful(schemas: unknown, root: unknown): unknown {
  if (!Array.isArray(schemas)) return undefined;
  const useful = schemas.find((schema) => {
    const target =
      isObject(schema) && typeof schema.$ref === "string" ? resolveReference(schema.$ref, root)?.schema : schema;
    return isObject(target) && target.type !== "null" && target.const !== null;
  });
  return useful ?? schemas[0];
}

function merged(first: SchemaObject, second: SchemaObject): SchemaObject {
  const both = { ...first, ...second };
  return {
    ...both,
    ...(isObject(first.properties) && isObject(second.properties)
      ? { properties: { ...first.properties, ...second.properties } }
      : {}),
    ...(Array.isArray(first.required) && Array.isArray(second.required)
      ? { required: [...new Set([...first.required, ...second.required])] }
      : {}),
  };
}

function typeOf(schema: SchemaObject): unknown {
  const declared = Array.isArray(schema.type)
    ? (schema.type.find((type) => type !== "null") ?? schema.type[0])
    : schema.type;
  if (declared !== undefined) return declared;
  if (isObject(schema.properties) || Array.isArray(schema.required)) return "object";
  return schema.items === undefined && schema.prefixItems === undefined ? undefined : "array";
}

function numberWithin(schema: SchemaObject, whole: boolean): number {
  const step = positive(schema.multipleOf) ?? (whole ? 1 : undefined);
  const lowest = bound(schema.minimum) ?? above(bound(schema.exclusiveMinimum), step ?? 0.5);
  const highest = bound(schema.maximum) ?? above(bound(schema.exclusiveMaximum), -(step ?? 0.5));
  const wanted = Math.min(Math.max(1, lowest ?? 1), highest ?? Number.MAX_SAFE_INTEGER);
  if (step === undefined) return wanted;
  const up = Math.ceil(wanted / step) * step;
  return highest !== undefined && up > highest ? Math.floor(wanted / step) * step : up;
}

const formatExamples: Readonly<Record<string, string>> = {
  "date-time": "2025-01-31T12:00:00Z",
  date: "2025-01-31",
  time: "12:00:00Z",
  duration: "PT1H",
  email: "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  "uri-reference": "/path",
  url: "https://example.com/",
  uuid: "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
  byte: "aGVsbG8=",
  binary: "aGVsbG8=",
  regex: "^a+$",
};

function stringWithin(schema: SchemaObject): string {
  const format = typeof schema.format === "string" ? schema.format : "";
  if (Object.hasOwn(formatExamples, format)) return formatExamples[format] as string;
  if (schema.contentEncoding === "base64") return "aGVsbG8=";
  const length = Math.min(
    Math.max("string".length, bound(schema.minLength) ?? 0),
    bound(schema.maxLength) ?? givenCharactersMax,
  );
  return "string".repeat(Math.ceil(Math.min(length, givenCharactersMax) / "string".length)).slice(0, length);
}

function bound(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function positive(value: unknown): number | undefined {
  const number = bound(value);
  return number !== undefined && number > 0 ? number : undefined;
}

function above(limit: number | undefined, step: number): number | undefined {
  return limit === undefined ? undefined : limit + step;
}
