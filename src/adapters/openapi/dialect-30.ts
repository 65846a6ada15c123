/** What OpenAPI 3.0 says differently from JSON Schema 2020-12, once its keywords have been copied. */
import type { MutableSchema, Schema } from "./plan.ts";
import type { Tree } from "./read-document.ts";

/** nullable and boolean exclusive bounds; `example` and `discriminator` are handled by the keyword table. */
export function fromDialect30(value: Tree, result: MutableSchema): Schema {
  for (const [exclusive, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (value[exclusive] !== true || result[bound] === undefined) continue;
    result[exclusive] = result[bound];
    delete result[bound];
  }
  return value.nullable === true ? nullable(result) : result;
}

function nullable(result: MutableSchema): Schema {
  const composed = ["allOf", "anyOf", "oneOf", "not", "const", "if"].some((key) => key in result);
  if (composed) return { anyOf: [result, { type: "null" }] };
  const listed = result.enum;
  if (Array.isArray(listed) && !listed.includes(null)) result.enum = [...listed, null];
  const type = result.type;
  if (type === undefined) return result;
  result.type = [...new Set([...(Array.isArray(type) ? type : [type]), "null"])];
  return result;
}
