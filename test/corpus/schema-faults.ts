/**
 * What is wrong with the schemas of a document's tools. Every schema of the plan is judged once by the metaschema, the definitions
 * that tools share included, and every reference must lead to one of them: together the same as judging each tool's whole
 * schema, without reading a shared definition once for each of ten thousand tools.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Plan } from "../../src/adapters/openapi/plan.ts";
import { isSchemaObject, type SchemaObject, subschemas } from "../../src/json/schema-walk.ts";

type Definitions = Readonly<Record<string, unknown>>;

const metaschema = new Ajv2020({ strict: false });

/** Sentences, each naming tool or definition; none when all is well. */
export function schemaFaults({ schemas, tools }: Pick<Plan, "schemas" | "tools">): readonly string[] {
  const named: readonly (readonly [string, unknown])[] = [
    ...tools.flatMap(({ id, inputSchema, outputSchema }): [string, unknown][] => [
      [`Input of tool "${id}"`, inputSchema],
      [`Output of tool "${id}"`, outputSchema],
    ]),
    ...Object.entries(schemas).map(([name, schema]): [string, unknown] => [`Definition "${name}"`, schema]),
  ];
  return named.flatMap(([name, schema]) => faultsOf(schema, schemas).map((fault) => `${name} ${fault}`));
}

/** Of a schema that is complete in itself. */
export function isJsonSchema(schema: unknown): boolean {
  return faultsOf(schema, isSchemaObject(schema) && isSchemaObject(schema.$defs) ? schema.$defs : {}).length === 0;
}

function faultsOf(schema: unknown, definitions: Definitions): readonly string[] {
  if (metaschema.validateSchema(schema as object) !== true)
    return [`is no JSON Schema: ${metaschema.errorsText(metaschema.errors, { dataVar: "" }).slice(0, 200)}`];
  const faults: string[] = [];
  const stack = [schema];
  while (stack.length > 0) {
    const next = stack.pop();
    if (!isSchemaObject(next)) continue;
    const { $ref } = next;
    if (typeof $ref === "string" && !leadsTo($ref, definitions)) faults.push(`refers to "${$ref}", which is nowhere`);
    // The metaschema says so with a format, which judges nothing.
    for (const pattern of patternsOf(next))
      if (!isPattern(pattern)) faults.push(`has the pattern "${pattern}", which is no regular expression`);
    for (const inner of subschemas(next)) stack.push(inner.schema);
  }
  return faults;
}

function leadsTo(reference: string, definitions: Definitions): boolean {
  const [, name] = /^#\/\$defs\/([^/]+)$/.exec(reference) ?? [];
  return name !== undefined && Object.hasOwn(definitions, name);
}

function patternsOf({ pattern, patternProperties }: SchemaObject): readonly string[] {
  const names = isSchemaObject(patternProperties) ? Object.keys(patternProperties) : [];
  return typeof pattern === "string" ? [pattern, ...names] : names;
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}
