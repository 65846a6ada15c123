/**
 * A schema without its demands for completeness: what a disabled service's settings are held to, so that they can be filled in
 * one patch at a time. `required`, `dependentRequired` and `minProperties` go. `oneOf` becomes `anyOf`, because branches told
 * apart by what they require now overlap. `not`, `if` and `contains` stay as they are: there, demanding less would refuse more.
 */
import { isSchemaObject, mapSubschemas, type SchemaObject } from "./schema-walk.ts";

const untouched = new Set(["not", "if", "contains"]);

export function withoutRequired(schema: unknown): unknown {
  if (!isSchemaObject(schema)) return schema;
  const { required, dependentRequired, minProperties, ...kept } = mapSubschemas(schema, relaxInner);
  if (Array.isArray(kept.oneOf)) {
    const { oneOf, ...others } = kept;
    return { ...others, allOf: [...(Array.isArray(others.allOf) ? others.allOf : []), { anyOf: oneOf }] };
  }
  return kept;
}

function relaxInner(inner: unknown, keyword: string): unknown {
  if (untouched.has(keyword)) return inner;
  // Draft-07 `dependencies` hold a list of required keys or a schema.
  if (keyword === "dependencies" && Array.isArray(inner)) return [];
  return withoutRequired(inner as SchemaObject);
}
