/**
 * What a foreign schema may be before anything is made of it: plain data, not too large, not too deep, and not too large
 * either once each `$ref` is replaced by what it names. A schema of thirty definitions that each refer twice to the next is
 * tiny as text and a thousand million checks when run.
 */
import { schemaCharactersMax, schemaDepthMax, schemaSubschemasMax, schemaUnfoldedMax } from "../limits.ts";
import { measure } from "./safety.ts";
import { isSchemaObject, resolveReference, type SchemaObject, subschemas } from "./schema-walk.ts";

/** Why the schema cannot be used; undefined when nothing speaks against it. */
export function schemaFault(schema: unknown): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (!isSchemaObject(schema)) return "the schema is neither an object nor a boolean";
  const { weight, depth } = measure(schema, schemaCharactersMax);
  if (weight > schemaCharactersMax) return "the schema is too large";
  if (depth > schemaDepthMax) return "the schema nests too deep";
  if (schema.$async !== undefined) return "the schema is asynchronous, which is not supported";
  return unfoldsTooFar(schema) ? "the schema is too large once its references are followed" : undefined;
}

function unfoldsTooFar(schema: SchemaObject): boolean {
  try {
    return unfoldedSize(schema, schema, new Map()) > schemaUnfoldedMax;
  } catch (error) {
    // A chain of references too long for the stack is too long for the validator as well.
    if (error instanceof RangeError) return true;
    throw error;
  }
}

/**
 * Subschemas one value could be checked against, counting a referred one each time it is referred to. A circle counts once: it
 * has to consume some of the value, or fails when run.
 */
function unfoldedSize(schema: unknown, root: SchemaObject, known: Map<object, number>): number {
  if (!isSchemaObject(schema)) return 1;
  const before = known.get(schema);
  if (before !== undefined) return before;
  known.set(schema, 1);
  let size = 1;
  for (const { schema: inner } of subschemas(schema)) size += unfoldedSize(inner, root, known);
  const target = resolveReference(schema, root);
  if (target !== undefined) size += unfoldedSize(target, root, known);
  // Kept finite: doubling goes past the largest number long before it goes past the largest schema.
  size = Math.min(size, schemaUnfoldedMax * 2);
  known.set(schema, size);
  return size;
}

/** For who compiles on the event loop: why that would take too long there; undefined when it does not. */
export function subschemasFault(root: unknown): string | undefined {
  if (!isSchemaObject(root)) return undefined;
  const seen = new Set<SchemaObject>([root]);
  for (const schema of seen) {
    for (const inner of [...subschemas(schema).map((held) => held.schema), resolveReference(schema, root)]) {
      if (isSchemaObject(inner)) seen.add(inner);
    }
    if (seen.size > schemaSubschemasMax) return "the schema has too many subschemas";
  }
  return undefined;
}
