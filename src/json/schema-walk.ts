/** Where schemas stand inside a schema, so that a property named "required" is never taken for the keyword. */
import { arrayIndex, parsePointer } from "./pointer.ts";

export type SchemaObject = Readonly<Record<string, unknown>>;

/** one: a schema. many: an array of them. named: an object of them. either: a schema or an array of them. */
const places: ReadonlyMap<string, "one" | "many" | "named" | "either"> = new Map([
  ["$defs", "named"],
  ["definitions", "named"],
  ["properties", "named"],
  ["patternProperties", "named"],
  ["dependentSchemas", "named"],
  ["dependencies", "named"],
  ["additionalProperties", "one"],
  ["unevaluatedProperties", "one"],
  ["propertyNames", "one"],
  ["items", "either"],
  ["additionalItems", "one"],
  ["unevaluatedItems", "one"],
  ["prefixItems", "many"],
  ["contains", "one"],
  ["contentSchema", "one"],
  ["allOf", "many"],
  ["anyOf", "many"],
  ["oneOf", "many"],
  ["not", "one"],
  ["if", "one"],
  ["then", "one"],
  ["else", "one"],
]);

export function isSchemaObject(schema: unknown): schema is SchemaObject {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema);
}

/** The schemas directly inside one, each with the keyword that holds it. */
export function subschemas(schema: SchemaObject): readonly { readonly keyword: string; readonly schema: unknown }[] {
  return [...places].flatMap(([keyword, place]) => {
    const held = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (held === undefined) return [];
    if (place === "named")
      return isSchemaObject(held) ? Object.values(held).map((inner) => ({ keyword, schema: inner })) : [];
    if (Array.isArray(held)) return held.map((inner) => ({ keyword, schema: inner as unknown }));
    return [{ keyword, schema: held }];
  });
}

/** A copy in which each subschema of the keywords `changed` names is replaced by what `change` makes of it. */
export function mapSubschemas(
  schema: SchemaObject,
  change: (inner: unknown, keyword: string) => unknown,
): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...schema };
  for (const [keyword, place] of places) {
    const held = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (held === undefined) continue;
    if (place === "named") {
      if (isSchemaObject(held))
        copy[keyword] = Object.fromEntries(Object.entries(held).map(([name, inner]) => [name, change(inner, keyword)]));
    } else {
      copy[keyword] = Array.isArray(held) ? held.map((inner) => change(inner, keyword)) : change(held, keyword);
    }
  }
  return copy;
}

/** What a local `$ref` (`#`, `#/…`, `#anchor`) names; undefined when there is none or it names nothing here. */
export function resolveReference(schema: SchemaObject, root: SchemaObject): unknown {
  const reference = schema.$ref;
  if (typeof reference !== "string" || !reference.startsWith("#")) return undefined;
  const fragment = decodeFragment(reference.slice(1));
  if (fragment === undefined) return undefined;
  const tokens = parsePointer(fragment);
  return tokens === undefined ? findAnchor(root, fragment) : at(root, tokens);
}

function decodeFragment(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function at(root: unknown, tokens: readonly string[]): unknown {
  let value = root;
  for (const token of tokens) {
    if (Array.isArray(value)) value = value[arrayIndex(token) ?? -1];
    else if (isSchemaObject(value) && Object.hasOwn(value, token)) value = value[token];
    else return undefined;
  }
  return value;
}

function findAnchor(root: SchemaObject, name: string): unknown {
  const known = anchorsOf.get(root);
  if (known !== undefined) return known.get(name);
  const anchors = new Map<string, SchemaObject>();
  collectAnchors(root, anchors);
  anchorsOf.set(root, anchors);
  return anchors.get(name);
}

/** Looked for once in each document: many references may name anchors, and many may name none that is there. */
const anchorsOf = new WeakMap<SchemaObject, ReadonlyMap<string, SchemaObject>>();

/** The first of a name counts. */
function collectAnchors(schema: unknown, anchors: Map<string, SchemaObject>): void {
  if (!isSchemaObject(schema)) return;
  const { $anchor, $dynamicAnchor, $id } = schema;
  const named = typeof $id === "string" && $id.startsWith("#") ? $id.slice(1) : undefined;
  for (const name of [$anchor, $dynamicAnchor, named]) {
    if (typeof name === "string" && !anchors.has(name)) anchors.set(name, schema);
  }
  for (const { schema: inner } of subschemas(schema)) collectAnchors(inner, anchors);
}
