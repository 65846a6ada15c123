/** An example of a schema: the one it brings, else the smallest that says something. Optional fields appear when they bring one. */
import { type Named, type SchemaObject, schemaReference } from "./schema.ts";

export function exampleOf(schema: SchemaObject, named: Named): unknown {
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined) return schema.default;
  if (schema.$ref !== undefined) {
    const target = named[schema.$ref.slice(schemaReference.length)];
    return target === undefined ? {} : exampleOf(target, named);
  }
  const alternative = schema.oneOf?.[0] ?? schema.anyOf?.[0] ?? schema.allOf?.[0];
  if (alternative !== undefined) return exampleOf(alternative, named);
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case "object":
      return exampleOfObject(schema, named);
    case "array":
      return schema.items === undefined ? [] : [exampleOf(schema.items, named)];
    case "string":
      return "text".slice(0, typeof schema.maxLength === "number" ? schema.maxLength : undefined);
    case "integer":
    case "number":
      return typeof schema.minimum === "number" && schema.minimum > 1 ? schema.minimum : 1;
    case "boolean":
      return true;
    default:
      return {};
  }
}

function exampleOfObject({ properties = {}, required = [] }: SchemaObject, named: Named): Record<string, unknown> {
  const told = Object.entries(properties).filter(([name, one]) => required.includes(name) || one.example !== undefined);
  return Object.fromEntries(told.map(([name, one]) => [name, exampleOf(one, named)]));
}
