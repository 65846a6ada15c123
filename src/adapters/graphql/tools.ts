/** The fields of the root types as tools: their ids, and what lists and searches show of them. Runs in the schema worker. */
import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
} from "graphql";
import { documentOperationsMax } from "../../limits.ts";
import type { ToolSummary } from "../../ports/adapter.ts";
import type { OperationKind } from "./plan.ts";
import { unusable } from "./unusable.ts";

export type Field = GraphQLField<unknown, unknown>;

export interface Tool {
  readonly id: string;
  readonly operation: OperationKind;
  readonly field: Field;
}

/** Names of parameters that a search looks at. */
const parameterNamesMax = 200;
const summaryCharactersMax = 120;

/** A tool's id is its field's name; of a query and a mutation with one name the mutation gets `_mutation` behind it. */
export function toolsOf(schema: GraphQLSchema): Map<string, Tool> {
  const tools = new Map<string, Tool>();
  for (const field of fieldsOf(schema.getQueryType()))
    tools.set(field.name, { id: field.name, operation: "query", field });
  for (const field of fieldsOf(schema.getMutationType())) {
    let id = field.name;
    while (tools.has(id)) id = `${id}_mutation`;
    tools.set(id, { id, operation: "mutation", field });
  }
  if (tools.size > documentOperationsMax)
    throw unusable(`it has more than ${documentOperationsMax} queries and mutations`);
  return tools;
}

export function fieldsOf(type: GraphQLObjectType | null | undefined): readonly Field[] {
  return type ? Object.values(type.getFields()) : [];
}

export function summariseTool({ id, operation, field }: Tool): ToolSummary {
  const described = field.description?.trim() ?? "";
  const deprecated = field.deprecationReason;
  const parts = [
    described,
    deprecated === null || deprecated === undefined ? "" : `Deprecated: ${deprecated}`,
    `GraphQL ${operation} of type ${String(field.type)}`,
  ];
  return {
    id,
    name: field.name,
    summary: firstSentence(described),
    description: parts.filter((part) => part !== "").join("\n\n"),
    parameterNames: parameterNames(field),
  };
}

function firstSentence(text: string): string {
  const line = text.split("\n", 1)[0]!.trim();
  const sentence = /^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return sentence.length <= summaryCharactersMax
    ? sentence
    : `${sentence.slice(0, summaryCharactersMax).toWellFormed()}…`;
}

/** Arguments, and the fields of those that are input objects. */
function parameterNames(field: Field): string[] {
  const names = new Set(field.args.map((arg) => arg.name));
  for (const arg of field.args) {
    const type = getNamedType(arg.type);
    if (!isInputObjectType(type)) continue;
    for (const name of Object.keys(type.getFields())) names.add(name);
  }
  return [...names].slice(0, parameterNamesMax);
}
