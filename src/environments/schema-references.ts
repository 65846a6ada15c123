/**
 * Local references of one JSON Schema: where a `$ref` leads, what the type behind it is called, and which definitions two
 * schemas have in common. Nothing outside the schema is ever looked up.
 */
import { foreignJson } from "./foreign-text.ts";

export type SchemaObject = Readonly<Record<string, unknown>>;

/** References that lead to references; longer chains and circles are `undefined`, like anything that cannot be resolved. */
const hopsMax = 16;
const nameCharactersMax = 60;
/** Comparing costs the square of this at worst. */
const definitionsComparedMax = 500;

/** Type names the surrounding text uses itself. */
const reservedNames = new Set([
  "Array",
  "Error",
  "Object",
  "Promise",
  "Record",
  "String",
  "Number",
  "Boolean",
  "Function",
]);

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Target {
  /** JSON Pointer of the definition itself, after the last hop: equal pointers are one definition. */
  readonly pointer: string;
  readonly schema: unknown;
}

/** Follows `#/…` (and `#`, the root) inside `root`. */
export function resolveReference(reference: string, root: unknown): Target | undefined {
  const seen = new Set<string>();
  let pointer = pointerOf(reference);
  while (pointer !== undefined && !seen.has(pointer) && seen.size < hopsMax) {
    seen.add(pointer);
    const schema = atPointer(root, pointer);
    if (schema === undefined) return undefined;
    if (!isAlias(schema)) return { pointer, schema };
    pointer = pointerOf(schema.$ref);
  }
  return undefined;
}

/** Only a reference to something else: describing the alias would add a name and say nothing. */
function isAlias(schema: unknown): schema is { readonly $ref: string } {
  if (!isObject(schema) || typeof schema.$ref !== "string") return false;
  return Object.keys(schema).every(
    (key) => key === "$ref" || key === "description" || key === "summary" || key === "title",
  );
}

function pointerOf(reference: string): string | undefined {
  if (reference === "#") return "";
  if (!reference.startsWith("#/")) return undefined;
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return reference.slice(1);
  }
}

function atPointer(root: unknown, pointer: string): unknown {
  let value = root;
  for (const segment of pointer.split("/").slice(1)) {
    if (typeof value !== "object" || value === null) return undefined;
    const key = segment.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** `#/$defs/pet-order.v1` → `PetOrderV1`, made different from the names already taken. */
export function typeName(pointer: string, taken: { has(name: string): boolean }): string {
  const words = pointer
    .slice(pointer.lastIndexOf("/") + 1)
    .slice(0, nameCharactersMax)
    .split(/[^A-Za-z0-9$]+/);
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("") || "Type";
  const name = /^[0-9]/.test(joined) || reservedNames.has(joined) ? `_${joined}` : joined;
  if (!taken.has(name)) return name;
  for (let number = 2; ; number += 1) {
    if (!taken.has(`${name}${number}`)) return `${name}${number}`;
  }
}

/**
 * Pointers of definitions that mean the same in both schemas: equal text, and everything they refer to is the same too.
 * None where there are too many to compare.
 */
export function sameDefinitions(first: unknown, second: unknown): ReadonlySet<string> {
  const same = new Map<string, readonly string[]>();
  for (const name of commonNames(first, second)) {
    const pointer = `/$defs/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const text = foreignJson(atPointer(first, pointer));
    if (text !== undefined && text === foreignJson(atPointer(second, pointer))) same.set(pointer, referencesIn(text));
  }
  for (let sizeBefore = -1; sizeBefore !== same.size; ) {
    sizeBefore = same.size;
    for (const [pointer, references] of same) {
      if (!references.every((reference) => same.has(reference))) same.delete(pointer);
    }
  }
  return new Set(same.keys());
}

function commonNames(first: unknown, second: unknown): string[] {
  if (!isObject(first) || !isObject(second)) return [];
  const [own, other] = [first.$defs, second.$defs];
  if (!isObject(own) || !isObject(other)) return [];
  const names = Object.keys(own).filter((name) => Object.hasOwn(other, name));
  return names.length <= definitionsComparedMax ? names : [];
}

function referencesIn(text: string): string[] {
  return [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference]) => pointerOf(reference ?? "") ?? "");
}
