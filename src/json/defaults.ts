/**
 * A schema's defaults put into a value, for hydration; they are never stored. Only what certainly applies counts: `properties`
 * and `items`, also through `$ref` and `allOf`, never from a branch of `anyOf` or `oneOf`. An absent object is not made up to
 * hold defaults, unless it has a default itself.
 */
import { cloneJson, setMember } from "./clone.ts";
import { isSchemaObject, resolveReference, type SchemaObject } from "./schema-walk.ts";

/** A filled copy. */
export function fillDefaults<Value>(schema: unknown, value: Value): Value {
  const copy = cloneJson(value);
  if (isSchemaObject(schema)) fill(schema, schema, copy, new Set());
  return copy;
}

function fill(root: SchemaObject, schema: unknown, value: unknown, following: ReadonlySet<object>): void {
  if (!isSchemaObject(schema) || typeof value !== "object" || value === null || following.has(schema)) return;
  const here = new Set([...following, schema]);
  for (const part of [resolveReference(schema, root), ...(Array.isArray(schema.allOf) ? schema.allOf : [])])
    fill(root, part, value, here);
  if (Array.isArray(value)) fillItems(root, schema, value);
  else fillKeys(root, schema, value as Record<string, unknown>);
}

function fillKeys(root: SchemaObject, schema: SchemaObject, value: Record<string, unknown>): void {
  for (const [key, property] of Object.entries(isSchemaObject(schema.properties) ? schema.properties : {})) {
    if (!Object.hasOwn(value, key)) {
      const found = defaultOf(root, property);
      if (found === undefined) continue;
      setMember(value, key, cloneJson(found));
    }
    fill(root, property, value[key], new Set());
  }
}

function fillItems(root: SchemaObject, schema: SchemaObject, value: readonly unknown[]): void {
  const tuple = Array.isArray(schema.prefixItems)
    ? schema.prefixItems
    : Array.isArray(schema.items)
      ? schema.items
      : [];
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  value.forEach((item, index) => {
    fill(root, index < tuple.length ? tuple[index] : rest, item, new Set());
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
