/** Input schemas of tools, put together from the schemas of the rows that the tools call: what a row demands is written once. */
import { z } from "zod";
import type { JsonSchema } from "../ports/adapter.ts";
import type { RowCalls } from "./row-calls.ts";

export interface ToolField {
  /** The row that has this field. */
  readonly of: string;
  /** For a language model: what it is, in one sentence. */
  readonly description: string;
  /** What the row's own schema cannot say, such as a bound it checks in code. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export interface ToolInputSchema {
  readonly type: "object";
  readonly properties: Record<string, Record<string, unknown>>;
  readonly required?: string[];
  readonly [keyword: string]: unknown;
}

export function inputSchema(fields: Readonly<Record<string, ToolField>>, rows: RowCalls): ToolInputSchema {
  const properties: Record<string, Record<string, unknown>> = {};
  const required: string[] = [];
  for (const [name, { of, description, more }] of Object.entries(fields)) {
    const row = rowSchema(of, rows);
    const own = row.properties?.[name];
    if (own === undefined) throw new Error(`Operation "${of}" has no field "${name}"`);
    // Examples are in the description of the tool; the keyword is OpenAPI's, and some model providers refuse keywords they do not know.
    const { example: _, ...shape } = own;
    properties[name] = { ...shape, ...more, description };
    if (row.required?.includes(name)) required.push(name);
  }
  return { type: "object", properties, ...(required.length === 0 ? {} : { required }) };
}

interface RowSchema {
  readonly properties?: Readonly<Record<string, Record<string, unknown>>>;
  readonly required?: readonly string[];
}

function rowSchema(name: string, rows: RowCalls): RowSchema {
  const schema: JsonSchema = z.toJSONSchema(rows.row(name).input, {
    io: "input",
    unrepresentable: "any",
  }) as JsonSchema;
  return schema as RowSchema;
}
