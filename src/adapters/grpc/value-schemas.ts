/** JSON Schemas of single values in ProtoJSON: scalars, and Google's well-known types. Runs in the descriptor worker. */
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { Direction, Schema } from "./message-schema.ts";

export function scalarSchema(type: ScalarType, direction: Direction): Schema {
  switch (type) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64", pattern: "^[A-Za-z0-9+/_-]*={0,2}$" };
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { anyOf: [{ type: "number" }, { enum: ["NaN", "Infinity", "-Infinity"] }] };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", minimum: 0, maximum: 2 ** 32 - 1 };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return longSchema("^-?[0-9]{1,19}$", Number.MIN_SAFE_INTEGER, direction);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return longSchema("^[0-9]{1,20}$", 0, direction);
  }
}

/** A number beyond what JavaScript can hold exactly has been rounded before anyone could object, so it is refused. */
function longSchema(pattern: string, minimum: number, direction: Direction): Schema {
  if (direction === "answer") return { type: "string", pattern };
  return { type: ["string", "integer"], pattern, minimum, maximum: Number.MAX_SAFE_INTEGER };
}

/** Undefined for a type whose JSON follows from its fields. */
export function wellKnownSchema(type: DescMessage | DescEnum, direction: Direction): Schema | undefined {
  if (type.kind === "enum") return type.typeName === "google.protobuf.NullValue" ? { type: "null" } : undefined;
  switch (type.typeName) {
    case "google.protobuf.Timestamp":
      return { type: "string", format: "date-time" };
    case "google.protobuf.Duration":
      return { type: "string", pattern: "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$", description: 'Seconds, such as "1.5s"' };
    case "google.protobuf.FieldMask":
      return { type: "string", description: 'Names of fields, such as "title,author.name"' };
    case "google.protobuf.Struct":
      return { type: "object", description: "Any JSON object" };
    case "google.protobuf.ListValue":
      return { type: "array", description: "Any JSON array" };
    case "google.protobuf.Value":
      return { description: "Any JSON value" };
    case "google.protobuf.Any":
      return {
        type: "object",
        description: 'A message of any type; "@type" is such as "type.googleapis.com/package.Message"',
        properties: { "@type": { type: "string" } },
        ...(direction === "request" ? { required: ["@type"] } : {}),
      };
    default:
      return isWrapperDesc(type) ? scalarSchema(type.fields[0].scalar, direction) : undefined;
  }
}
