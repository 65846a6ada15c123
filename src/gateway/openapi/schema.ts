/**
 * zod schemas as OpenAPI 3.0 schema objects. zod writes the dialect; here it is made strict where readers differ: null in an enum has to
 * be named, `nullable` stands only beside a type, and patterns that only repeat a format are left out.
 */
import { z } from "zod";
import type { JsonObject } from "./json-object.ts";

export interface SchemaObject {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, SchemaObject>>;
  readonly required?: readonly string[];
  readonly items?: SchemaObject;
  readonly additionalProperties?: boolean | SchemaObject;
  readonly oneOf?: readonly SchemaObject[];
  readonly anyOf?: readonly SchemaObject[];
  readonly allOf?: readonly SchemaObject[];
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly description?: string;
}

export type Named = Readonly<Record<string, SchemaObject>>;

export const schemaReference = "#/components/schemas/";

/** `input`: what callers send; `output`: what they get. `named`: the schemas that carry an id, which the rest refers to. */
export function schemaObject(schema: z.ZodType, io: "input" | "output"): { schema: SchemaObject; named: Named } {
  // Inside of a property, so that a schema with an id is referred to and not written out.
  const written = z.toJSONSchema(z.object({ root: schema }), {
    target: "openapi-3.0",
    io,
    unrepresentable: "any",
  }) as unknown as { readonly properties: { readonly root: SchemaObject }; readonly definitions?: Named };
  const raw = written.definitions ?? {};
  const named = Object.fromEntries(Object.entries(raw).map(([id, one]) => [id, tidy(one, raw)]));
  return { schema: tidy(written.properties.root, raw), named };
}

function tidy(schema: SchemaObject, named: Named): SchemaObject {
  const { id: _, ...rest } = schema;
  const nullableReference = rest.nullable === true && rest.allOf?.length === 1 ? rest.allOf[0]?.$ref : undefined;
  if (nullableReference !== undefined) {
    const { allOf: _one, ...own } = rest;
    return tidy({ ...named[nameOf(nullableReference)], ...own }, named);
  }
  const only = Object.keys(rest).length === 1 && rest.allOf?.length === 1 ? rest.allOf[0] : undefined;
  if (only !== undefined) return tidy(only, named);
  const entries = Object.entries(rest).flatMap(([keyword, value]) => tidyKeyword(rest, keyword, value, named));
  return Object.fromEntries(entries) as SchemaObject;
}

function tidyKeyword(
  schema: SchemaObject,
  keyword: string,
  value: unknown,
  named: Named,
): readonly (readonly [string, unknown])[] {
  const deeper = (one: unknown): SchemaObject => tidy(one as SchemaObject, named);
  switch (keyword) {
    case "$ref":
      return [[keyword, schemaReference + nameOf(String(value))]];
    case "properties":
      return [[keyword, mapValues(value as Named, deeper)]];
    case "items":
      return [[keyword, deeper(value)]];
    case "oneOf":
    case "anyOf":
    case "allOf":
      return [[keyword, (value as readonly unknown[]).map(deeper)]];
    case "additionalProperties":
      // Answers may gain fields: their schemas stay open.
      return value === false ? [] : [[keyword, typeof value === "object" ? deeper(value) : value]];
    case "enum":
      return [[keyword, schema.nullable === true ? [...(value as readonly unknown[]), null] : value]];
    case "pattern":
      return schema.format === undefined ? [[keyword, value]] : [];
    case "minimum":
    case "maximum":
      return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? [] : [[keyword, value]];
    default:
      return [[keyword, value]];
  }
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

export function mapValues<Value, Mapped>(
  object: Readonly<Record<string, Value>>,
  map: (value: Value, name: string) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));
}

/** The schema without these properties, in each of its parts; parts with nothing left go. */
export function withoutProperties(schema: SchemaObject, names: ReadonlySet<string>): SchemaObject {
  const { properties, required, oneOf, allOf, example, ...rest } = schema;
  const left = required?.filter((name) => !names.has(name)) ?? [];
  const parts = allOf?.map((one) => withoutProperties(one, names)).filter((one) => !isEmptyObject(one));
  if (parts?.length === 1 && parts[0] !== undefined) return parts[0];
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: omit(properties, names) }),
    ...(left.length === 0 ? {} : { required: left }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map((one) => withoutProperties(one, names)) }),
    ...(parts === undefined ? {} : { allOf: parts }),
    ...(example === undefined ? {} : { example: omit(example as JsonObject, names) }),
  };
}

function isEmptyObject({ properties, ...rest }: SchemaObject): boolean {
  return properties !== undefined && Object.keys(properties).length === 0 && Object.keys(rest).join() === "type";
}

/** Of the schema, or of the first of its alternatives that has it. */
export function propertyOf(schema: SchemaObject, name: string): SchemaObject | undefined {
  const alternatives = [schema, ...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])];
  return alternatives.find((one) => one.properties?.[name] !== undefined)?.properties?.[name];
}

function omit<Value>(
  object: Readonly<Record<string, Value>>,
  names: ReadonlySet<string>,
): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)));
}
