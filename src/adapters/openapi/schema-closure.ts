/** A tool's schema carries the definitions it needs, and no others. */
import type { Schema } from "./plan.ts";
import { own } from "./read-document.ts";

/** Definitions that a schema needs, and those that they need. */
export function closure(schema: Schema, definitions: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const needed: Record<string, Schema> = {};
  const stack: unknown[] = [schema];
  while (stack.length > 0) {
    const value = stack.pop();
    if (typeof value !== "object" || value === null) continue;
    const ref = own(value, "$ref");
    if (typeof ref === "string" && ref.startsWith("#/$defs/")) {
      const name = ref.slice("#/$defs/".length);
      if (!Object.hasOwn(needed, name) && Object.hasOwn(definitions, name)) {
        needed[name] = definitions[name]!;
        stack.push(needed[name]);
      }
    }
    for (const child of Object.values(value)) stack.push(child);
  }
  return needed;
}
