/** What TypeScript cannot say about a schema, as one line for a doc comment: its description and its plain restrictions. */
import { foreignJson, foreignLine } from "./foreign-text.ts";
import type { SchemaObject } from "./schema-references.ts";

/** A pattern or default longer than this helps nobody. */
const valueCharactersMax = 80;

/** "Page size. Integer, minimum 1, maximum 100, default 20", or "" when there is nothing to say. */
export function schemaComment(schema: SchemaObject, charactersMax: number): string {
  const description = foreignLine(schema.description ?? schema.title, charactersMax);
  const facts = sentence(restrictions(schema));
  if (description === "" || facts === "") return description || facts;
  return /[.!?…:;]$/.test(description) ? `${description} ${facts}` : `${description}. ${facts}`;
}

function restrictions(schema: SchemaObject): string[] {
  const facts: string[] = [];
  if (schema.deprecated === true) facts.push("deprecated");
  if (schema.readOnly === true) facts.push("read only");
  if (schema.type === "integer") facts.push("integer");
  if (typeof schema.format === "string") facts.push(`format ${foreignLine(schema.format, valueCharactersMax)}`);
  if (typeof schema.contentEncoding === "string") facts.push(foreignLine(schema.contentEncoding, valueCharactersMax));
  for (const [keyword, words] of numericKeywords) {
    const bound = schema[keyword];
    if (typeof bound === "number") facts.push(`${words} ${bound}`);
  }
  if (schema.uniqueItems === true) facts.push("unique items");
  if (typeof schema.pattern === "string" && schema.pattern.length <= valueCharactersMax) {
    facts.push(`pattern ${foreignLine(schema.pattern, valueCharactersMax)}`);
  }
  const standard = isScalar(schema.default) ? foreignJson(schema.default) : undefined;
  if (standard !== undefined) facts.push(`default ${foreignLine(standard, valueCharactersMax)}`);
  return facts;
}

const numericKeywords = [
  ["minimum", "minimum"],
  ["exclusiveMinimum", "more than"],
  ["maximum", "maximum"],
  ["exclusiveMaximum", "less than"],
  ["multipleOf", "multiple of"],
  ["minLength", "minimum length"],
  ["maxLength", "maximum length"],
  ["minItems", "minimum items"],
  ["maxItems", "maximum items"],
] as const;

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function sentence(facts: readonly string[]): string {
  const text = facts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
