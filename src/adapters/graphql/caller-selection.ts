/**
 * `__select`: a selection a caller wrote, parsed and validated before any of it is sent. It is one selection and nothing else: no
 * second operation, no named fragments, no variables, no directives. Aliases, arguments with literal values and inline
 * fragments are fine. What is sent is printed from the syntax tree, never the caller's text. Runs in the schema worker.
 */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  Kind,
  parse,
  print,
  type SelectionNode,
  type SelectionSetNode,
  specifiedRules,
  validate,
  visit,
} from "graphql";
import { Failure } from "../../errors/failure.ts";
import { graphqlSelectCharactersMax, graphqlSelectDepthMax, graphqlSelectFieldsMax } from "../../limits.ts";
import { selectParameter } from "./plan.ts";
import type { Tool } from "./tools.ts";
import { shortened } from "./unusable.ts";

/** Faults of one selection named in the refusal. */
const faultsMax = 3;

/** GraphQL text with its braces. @throws Failure invalid_request naming what is wrong. */
export function callerSelection(schema: GraphQLSchema, tool: Tool, text: string): string {
  if (!isCompositeType(getNamedType(tool.field.type))) throw refused("the result has no fields to select from");
  if (text.length > graphqlSelectCharactersMax) {
    throw refused(`it is longer than ${graphqlSelectCharactersMax} characters`);
  }
  const selectionSet = parseSelection(text);
  requirePlain(selectionSet);
  const faults = selectionFaults(schema, tool, selectionSet);
  if (faults.length > 0) throw refused(shortened(faults.join(" ")));
  return print(selectionSet);
}

/** Sentences; empty when the selection fits the tool's type. */
export function selectionFaults(schema: GraphQLSchema, tool: Tool, selectionSet: SelectionSetNode): readonly string[] {
  const errors = validate(schema, wholeOperation(tool, selectionSet), specifiedRules, { maxErrors: faultsMax });
  return errors.map(({ message }) => message);
}

/** As it will be sent when every argument is given. */
function wholeOperation({ operation, field }: Tool, selectionSet: SelectionSetNode): DocumentNode {
  const variables = field.args.map(({ name, type }) => `$${name}: ${String(type)}`).join(" ");
  const values = field.args.map(({ name }) => `${name}: $${name}`).join(" ");
  const given = (list: string) => (list === "" ? "" : `(${list})`);
  const text = `${operation} ${given(variables)} { ${field.name}${given(values)} }`;
  const document = parse(text, { noLocation: true });
  const [definition] = document.definitions;
  if (definition?.kind !== Kind.OPERATION_DEFINITION) throw new Error(`"${text}" is no operation`);
  const [root] = definition.selectionSet.selections;
  const selections = [{ ...root, selectionSet } as SelectionNode];
  return { ...document, definitions: [{ ...definition, selectionSet: { ...definition.selectionSet, selections } }] };
}

function parseSelection(text: string): SelectionSetNode {
  // Behind a line break, so that a comment at the end does not swallow the brace.
  const document = parseText(/^[\s,]*\{/.test(text) ? text : `{\n${text}\n}`);
  const [definition] = document.definitions;
  if (document.definitions.length !== 1 || definition?.kind !== Kind.OPERATION_DEFINITION) {
    throw refused("it must be one selection, without other operations or fragments");
  }
  const { operation, name, variableDefinitions, directives, selectionSet } = definition;
  const isBare = operation === "query" && !name && !variableDefinitions?.length && !directives?.length;
  if (!isBare) throw refused("it must be a selection, not an operation");
  return selectionSet;
}

function parseText(text: string): DocumentNode {
  try {
    return parse(text, { noLocation: true });
  } catch (error) {
    if (error instanceof GraphQLError) throw refused(shortened(error.message));
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
}

/** Level by level, so that depth is bounded before anything recurses into it. */
function requirePlain(top: SelectionSetNode): void {
  let level: readonly SelectionSetNode[] = [top];
  let fields = 0;
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > graphqlSelectDepthMax) throw tooDeep();
    const selections = level.flatMap((set) => set.selections);
    if (level.some((set) => set.selections.length === 0)) throw refused("it has an empty pair of braces");
    fields += selections.length;
    if (fields > graphqlSelectFieldsMax) throw refused(`it selects more than ${graphqlSelectFieldsMax} fields`);
    level = selections.flatMap((selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) throw refused("named fragments cannot be used; write them inline");
      if (selection.directives?.length) throw refused("directives cannot be used");
      return selection.selectionSet ? [selection.selectionSet] : [];
    });
  }
  visit(top, {
    Variable() {
      throw refused("variables cannot be used; write values");
    },
  });
}

function tooDeep(): Failure {
  return refused(`it nests deeper than ${graphqlSelectDepthMax} levels`);
}

function refused(reason: string): Failure {
  const sentence = `Parameters do not fit: /${selectParameter} cannot be used: ${reason.replace(/\.$/, "")}`;
  return new Failure("invalid_request", sentence, { fields: [{ field: selectParameter, description: reason }] });
}
