/**
 * A tool and its checked parameters to what is posted. Only the arguments that were given are declared and passed, so that the
 * target applies its own defaults. Values travel as variables, never inside the text.
 */
import { type ReadyTool, selectParameter } from "./plan.ts";

export interface PostedOperation {
  readonly query: string;
  readonly operationName: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

export function operationText(
  { operation, field, arguments: all }: ReadyTool,
  parameters: Readonly<Record<string, unknown>>,
  selection: string | null,
): PostedOperation {
  const given = all.filter(([name]) => name !== selectParameter && Object.hasOwn(parameters, name));
  const declared = given.map(([name, type]) => `$${name}: ${type}`).join(", ");
  const passed = given.map(([name]) => `${name}: $${name}`).join(", ");
  const call = `${field}${inBrackets(passed)}${selection === null ? "" : ` ${selection}`}`;
  return {
    query: `${operation} ${field}${inBrackets(declared)} { ${call} }`,
    operationName: field,
    variables: Object.fromEntries(given.map(([name]) => [name, parameters[name]])),
  };
}

function inBrackets(list: string): string {
  return list === "" ? "" : `(${list})`;
}
