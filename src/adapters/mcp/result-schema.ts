/** The schema of what a call gives: content, structured content as the tool promises it, and whether the tool failed. */
import { isSchemaObject, mapSubschemas, type SchemaObject } from "../../json/schema-walk.ts";
import type { JsonSchema } from "../../ports/adapter.ts";

const content: JsonSchema = {
  type: "array",
  description: "What the tool says: texts, images, audio, resources",
  items: { type: "object", properties: { type: { type: "string" }, text: { type: "string" } }, required: ["type"] },
};

/** Tools stand inside this place of the whole, and so do their references to themselves. */
const place = "#/properties/structuredContent";

/** `promised`: the tool's own output schema, within bounds; undefined when it promises nothing. */
export function resultSchema(promised: JsonSchema | undefined): JsonSchema {
  const isError = { type: "boolean", description: "Whether the tool failed; then its content says why" };
  const whole = { type: "object", properties: { content, isError }, required: ["content", "isError"] };
  if (promised === undefined) return whole;
  if (!isSchemaObject(promised)) return { ...whole, properties: { content, structuredContent: promised, isError } };
  // Without its `$id`, under which its references would be looked for no longer.
  const { $schema, $id: _, $defs, definitions, ...own } = moved(promised);
  return {
    ...($schema === undefined ? {} : { $schema }),
    ...whole,
    properties: { content, structuredContent: own, isError },
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  };
}

/** References to shared definitions stay as they are, since those move to the top; others are pointed at the schema's new place. */
function moved(schema: SchemaObject): Record<string, unknown> {
  const copy = mapSubschemas(schema, (inner) => (isSchemaObject(inner) ? moved(inner) : inner));
  const { $ref } = copy;
  if (typeof $ref === "string" && /^#(\/|$)/.test($ref) && !/^#\/(\$defs|definitions)\//.test($ref)) {
    copy.$ref = `${place}${$ref.slice(1)}`;
  }
  return copy;
}
