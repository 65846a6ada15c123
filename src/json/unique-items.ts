/**
 * `uniqueItems` in one pass. The library compares every pair, and 40,000 objects, small enough for a request, would be
 * 800 million comparisons. Equality is that of JSON Schema: numbers by value, objects whatever the order of their keys.
 */
import type { FuncKeywordDefinition } from "ajv";

export const uniqueItems: FuncKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  errors: false,
  error: { message: "must NOT have duplicate items" },
  validate: (wanted: boolean, items: readonly unknown[]): boolean => !wanted || allDifferent(items),
};

function allDifferent(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = canonical(item);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/** JSON with sorted keys; `-0` is written `0`, as equality wants. */
export function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}
