/**
 * A schema's defaults put into a value, for hydration; they are never stored. Only what certainly applies counts: `properties`
 * and `items`, also through `$ref` and `allOf`, never from a branch of `anyOf` or `oneOf`. An absent object is not made up to
 * hold defaults, unless it has a default itself.
 */
import { Failure } from "../errors/failure.ts";
import { settingsWeightMax } from "../limits.ts";
import { cloneJson, setMember } from "./clone.ts";
import { measure } from "./safety.ts";
import { isSchemaObject, resolveReference, type SchemaObject } from "./schema-walk.ts";

/** A filled copy. Throws Failure invalid_request when the defaults would be too large: one of them may apply to each of many items. */
export function fillDefaults<Value>(schema: unknown, value: Value): Value {
  const copy = cloneJson(value);
  if (isSchemaObject(schema)) fill({ root: schema, weightLeft: settingsWeightMax }, schema, copy, new Set());
  return copy;
}

interface Filling {
  readonly root: SchemaObject;
  /** Of what defaults may add. */
  weightLeft: number;
}

function fill(filling: Filling, schema: unknown, value: unknown, following: ReadonlySet<object>): void {
  if (!isSchemaObject(schema) || typeof value !== "object" || value === null || following.has(schema)) return;
  const here = new Set([...following, schema]);
  for (const part of [resolveReference(schema, filling.root), ...(Array.isArray(schema.allOf) ? schema.allOf : [])])
    fill(filling, part, value, here);
  if (Array.isArray(value)) fillItems(filling, schema, value);
  else fillKeys(filling, schema, value as Record<string, unknown>);
}

function fillKeys(filling: Filling, schema: SchemaObject, value: Record<string, unknown>): void {
  for (const [key, property] of Object.entries(isSchemaObject(schema.properties) ? schema.properties : {})) {
    if (!Object.hasOwn(value, key)) {
      const found = defaultOf(filling.root, property);
      if (found === undefined) continue;
      filling.weightLeft -= measure(found, filling.weightLeft).weight;
      if (filling.weightLeft < 0)
        throw new Failure("invalid_request", "The defaults of the schema are too large together");
      setMember(value, key, cloneJson(found));
    }
    fill(filling, property, value[key], new Set());
  }
}

function fillItems(filling: Filling, schema: SchemaObject, value: readonly unknown[]): void {
  const tuple = Array.isArray(schema.prefixItems)
    ? schema.prefixItems
    : Array.isArray(schema.items)
      ? schema.items
      : [];
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  value.forEach((item, index) => {
    fill(filling, index < tuple.length ? tuple[index] : rest, item, new Set());
  });
}

function defaultOf(root: SchemaObject, schema: unknown): unknown {
  const seen = new Set<object>();
  let at = schema;
  while (isSchemaObject(at) && !seen.has(at)) {
    if (at.default !== undefined) return at.default;
    seen.add(at);
    at = resolveReference(at, root);
  }
  return undefined;
}
