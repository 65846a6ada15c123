/**
 * The JSON Schema of a tool's result with its default selection. Nothing below `data` is required: a caller's own selection
 * may leave out, rename and add. Runs in the schema worker.
 */
import {
  type GraphQLNamedType,
  type GraphQLOutputType,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
} from "graphql";
import { graphqlDescriptionCharactersMax } from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";
import type { SelectedField, Selection } from "./default-selection.ts";

type Schema = Record<string, unknown>;

export function outputSchema(type: GraphQLOutputType, selection: Selection | null): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      // Null when the field failed, whatever its type promises.
      data: nullable(schemaOf(getNullableType(type), selection)),
      errors: {
        type: "array",
        description: "Errors the target reports, in its words; empty when there are none",
        items: {
          type: "object",
          properties: {
            message: { type: "string" },
            path: { type: "array", items: { type: ["string", "integer"] } },
            extensions: { type: "object" },
          },
          required: ["message"],
        },
      },
      extensions: { type: "object", description: "What the target adds to its answer, such as costs" },
    },
    required: ["data", "errors"],
  };
}

function schemaOf(type: GraphQLOutputType, selection: Selection | null): Schema {
  if (isNonNullType(type)) return nonNull(type.ofType as GraphQLOutputType, selection);
  return nullable(nonNull(type, selection));
}

function nonNull(type: GraphQLOutputType, selection: Selection | null): Schema {
  if (isListType(type)) return { type: "array", items: schemaOf(type.ofType, selection) };
  return selection === null ? leaf(type as GraphQLNamedType) : object(selection);
}

function leaf(type: GraphQLNamedType): Schema {
  if (isEnumType(type)) return { type: "string", enum: type.getValues().map(({ name }) => name) };
  switch (type.name) {
    case "Int":
      return { type: "integer" };
    case "Float":
      return { type: "number" };
    case "String":
    case "ID":
      return { type: "string" };
    case "Boolean":
      return { type: "boolean" };
    default:
      return { description: `Scalar ${type.name}` };
  }
}

function object({ typename, fields, fragments }: Selection): Schema {
  const properties = new Map<string, Schema>();
  if (typename) properties.set("__typename", { type: "string" });
  for (const field of [...fields, ...fragments.flatMap((fragment) => fragment.fields)]) {
    if (!properties.has(field.name)) properties.set(field.name, property(field));
  }
  return { type: "object", properties: Object.fromEntries(properties) };
}

function property({ type, selection, description }: SelectedField): Schema {
  const schema = schemaOf(type, selection);
  if (description === "") return schema;
  return { ...schema, description: description.slice(0, graphqlDescriptionCharactersMax).toWellFormed() };
}

/** A scalar of unknown shape holds null already. */
export function nullable(schema: Schema): Schema {
  if (schema.$ref !== undefined) return { anyOf: [schema, { type: "null" }] };
  if (schema.type === undefined) return schema;
  const types = [schema.type].flat();
  if (types.includes("null")) return schema;
  const widened = { ...schema, type: [...types, "null"] };
  return Array.isArray(schema.enum) ? { ...widened, enum: [...schema.enum, null] } : widened;
}
