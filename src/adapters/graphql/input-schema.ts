/**
 * The JSON Schema of a tool's parameters: its arguments, with input objects in `$defs`. Types are written breadth first; once
 * the schema is large enough the rest of them stay open objects, which the target checks anyway. Runs in the schema worker.
 */
import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isRequiredArgument,
  isRequiredInputField,
  isScalarType,
  valueFromASTUntyped,
} from "graphql";
import { measure } from "../../json/safety.ts";
import { schemaFault } from "../../json/schema-bounds.ts";
import {
  graphqlDescriptionCharactersMax,
  graphqlInputSchemaCharactersMax,
  graphqlSelectCharactersMax,
} from "../../limits.ts";
import type { JsonSchema } from "../../ports/adapter.ts";
import { nullable } from "./output-schema.ts";
import { selectParameter } from "./plan.ts";
import type { Field } from "./tools.ts";

type Schema = Record<string, unknown>;

/** Larger defaults are the target's business; a schema is for reading. */
const defaultWeightMax = 1_000;
const defaultDepthMax = 8;

/** How many input types are written out; fewer when the schema would be too much for whoever checks with it. */
const typesTried = [Number.POSITIVE_INFINITY, 100, 30, 10, 3, 0];

/** `selection`: what is selected by default, or null where there is nothing to select. */
export function inputSchema(field: Field, selection: string | null): JsonSchema {
  for (const typesMax of typesTried) {
    const schema = inputSchemaWith(field, selection, typesMax);
    if (schemaFault(schema) === undefined) return schema;
  }
  return { type: "object" };
}

function inputSchemaWith(field: Field, selection: string | null, typesMax: number): JsonSchema {
  const queue = new Map<string, GraphQLInputObjectType>();
  const properties = new Map(field.args.map((arg) => [arg.name, inputValue(arg, queue)]));
  if (selection !== null) properties.set(selectParameter, selectSchema(selection));
  const defs = definitions(queue, typesMax, JSON.stringify([...properties]).length);
  const required = field.args.filter(isRequiredArgument).map((arg) => arg.name);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
    ...(defs.size > 0 ? { $defs: Object.fromEntries(defs) } : {}),
  };
}

function selectSchema(selection: string): Schema {
  return {
    type: "string",
    maxLength: graphqlSelectCharactersMax,
    description: `What to select of the result, as a GraphQL selection such as "id name owner { login }"; absent: ${bounded(selection)}`,
  };
}

/** The queue grows while it is read: what a type refers to comes behind it. */
function definitions(
  queue: Map<string, GraphQLInputObjectType>,
  typesMax: number,
  charactersBefore: number,
): Map<string, Schema> {
  const defs = new Map<string, Schema>();
  let characters = charactersBefore;
  for (const [name, type] of queue) {
    const whole = defs.size < typesMax && characters < graphqlInputSchemaCharactersMax;
    const schema = whole ? inputObject(type, queue) : leftOpen(name);
    characters += JSON.stringify(schema).length;
    defs.set(name, schema);
  }
  return defs;
}

function leftOpen(name: string): Schema {
  return { type: "object", description: `Input ${name}` };
}

function inputObject(type: GraphQLInputObjectType, queue: Map<string, GraphQLInputObjectType>): Schema {
  const fields = Object.values(type.getFields());
  const properties = fields.map((field): [string, Schema] => [field.name, inputValue(field, queue, type.isOneOf)]);
  const required = fields.filter(isRequiredInputField).map((field) => field.name);
  return {
    type: "object",
    ...(type.description ? { description: bounded(type.description) } : {}),
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    ...(type.isOneOf ? { minProperties: 1, maxProperties: 1 } : {}),
    additionalProperties: false,
  };
}

/** Of a `@oneOf` input exactly one field is given, and not as null. */
function inputValue(
  input: GraphQLArgument | GraphQLInputField,
  queue: Map<string, GraphQLInputObjectType>,
  oneOf = false,
): Schema {
  const schema = oneOf ? withoutNull(input.type, queue) : typeSchema(input.type, queue);
  const deprecated = input.deprecationReason ?? null;
  const description = [
    input.description ?? schema.description ?? "",
    deprecated === null ? "" : `Deprecated: ${deprecated}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
  return {
    ...schema,
    ...(description === "" ? {} : { description: bounded(description) }),
    ...(deprecated === null ? {} : { deprecated: true }),
    ...defaultOf(input),
  };
}

function defaultOf({ default: given }: GraphQLArgument | GraphQLInputField): Schema {
  if (given?.literal === undefined) return {};
  const value = valueFromASTUntyped(given.literal);
  const { weight, depth } = measure(value);
  return weight > defaultWeightMax || depth > defaultDepthMax ? {} : { default: value };
}

function typeSchema(type: GraphQLInputType, queue: Map<string, GraphQLInputObjectType>): Schema {
  return isNonNullType(type) ? withoutNull(type, queue) : nullable(withoutNull(type, queue));
}

function withoutNull(type: GraphQLInputType, queue: Map<string, GraphQLInputObjectType>): Schema {
  if (isNonNullType(type)) return withoutNull(type.ofType as GraphQLInputType, queue);
  if (isListType(type)) return { type: "array", items: typeSchema(type.ofType, queue) };
  if (!isInputObjectType(type)) return leaf(type as GraphQLNamedType);
  queue.set(type.name, type);
  return { $ref: `#/$defs/${type.name}` };
}

function leaf(type: GraphQLNamedType): Schema {
  if (isEnumType(type)) return { type: "string", enum: type.getValues().map(({ name }) => name) };
  switch (type.name) {
    case "Int":
      return { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
    case "Float":
      return { type: "number" };
    case "String":
      return { type: "string" };
    case "Boolean":
      return { type: "boolean" };
    case "ID":
      return { type: ["string", "integer"] };
    default:
      return { description: scalarDescription(type) };
  }
}

function scalarDescription(type: GraphQLNamedType): string {
  const url = isScalarType(type) && type.specifiedByURL ? `, see ${type.specifiedByURL}` : "";
  return bounded(`Scalar ${type.name}${url}${type.description ? `: ${type.description}` : ""}`);
}

function bounded(text: string): string {
  return text.length <= graphqlDescriptionCharactersMax
    ? text
    : `${text.slice(0, graphqlDescriptionCharactersMax).toWellFormed()}…`;
}
