/**
 * How much work a schema makes of a value, counted before it is done. A schema that refers to itself twice for the same part of a value
 * doubles with every level: thirty levels of `{"a": …}` would take a thousand million steps, which no bound on the schema alone can tell.
 *
 * Counted is what every walk of this folder and the validator may do at most: as if no branch were decided early. Pairs of schema and value
 * are counted once and added as often as they occur, so counting is never more work than `schemaEffortMax`.
 */
import { schemaEffortMax } from "../limits.ts";
import { isSchemaObject, resolveReference, type SchemaObject } from "./schema-walk.ts";

/** Why the schema cannot be applied to this value; undefined when nothing speaks against it. */
export function effortFault(schema: unknown, value: unknown): string | undefined {
  if (!isSchemaObject(schema)) return undefined;
  if (holdsInnerId(schema)) return "the schema has an $id inside, which changes what references mean";
  try {
    new Count(schema).of(schema, value);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    if (error instanceof RangeError) return endless;
    throw error;
  }
}

class Fault extends Error {}

const endless = "the schema refers to itself without end";

/** What all scalars are counted as: only schemas for the same place apply to them. */
const scalar: object = {};

/** A container against a schema is several steps, and one for each member; a scalar is one. */
const containerEffort = 10;

const inPlace = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"] as const;

class Count {
  readonly #root: SchemaObject;
  /** `counting`: it is among those that led here. */
  readonly #known = new Map<object, Map<object, number | "counting">>();
  #counted = 0;

  constructor(root: SchemaObject) {
    this.#root = root;
  }

  of(schema: unknown, given: unknown): number {
    if (!isSchemaObject(schema)) return 0;
    const value = typeof given === "object" && given !== null ? given : scalar;
    const known = this.#known.get(schema) ?? new Map<object, number | "counting">();
    this.#known.set(schema, known);
    const before = known.get(value);
    if (before === "counting") throw new Fault(endless);
    if (before !== undefined) return before;
    known.set(value, "counting");
    const own = ownEffort(schema, value);
    this.#counted += own;
    const effort = own + this.#samePlace(schema, value) + this.#members(schema, value);
    if (Math.max(effort, this.#counted) > schemaEffortMax)
      throw new Fault("the schema makes too much work of the value");
    known.set(value, effort);
    return effort;
  }

  #samePlace(schema: SchemaObject, value: object): number {
    let effort = 0;
    for (const keyword of inPlace) effort += this.#each(listOf(schema[keyword]), value);
    for (const keyword of ["dependentSchemas", "dependencies"]) effort += this.#each(valuesOf(schema[keyword]), value);
    for (const $ref of [schema.$ref, schema.$dynamicRef, schema.$recursiveRef]) {
      if (typeof $ref === "string") effort += this.of(this.#target($ref), value);
    }
    return effort;
  }

  #members(schema: SchemaObject, value: object): number {
    if (value === scalar) return 0;
    if (Array.isArray(value)) return this.#items(schema, value);
    const { properties, additionalProperties, unevaluatedProperties, propertyNames } = schema;
    const declared = isSchemaObject(properties) ? properties : {};
    const patterns = valuesOf(schema.patternProperties);
    const names = this.of(propertyNames, scalar);
    // Whether a part of the schema names a key is asked of every part.
    const parts = unevaluatedProperties === undefined ? 0 : this.#samePlace(schema, scalar);
    let effort = 0;
    for (const [key, member] of Object.entries(value)) {
      const isDeclared = Object.hasOwn(declared, key);
      effort += names + parts + this.#each(patterns, member) + this.of(unevaluatedProperties, member);
      effort += this.of(isDeclared ? declared[key] : additionalProperties, member);
    }
    return effort;
  }

  #items(schema: SchemaObject, value: readonly unknown[]): number {
    const { items, prefixItems, additionalItems, unevaluatedItems, contains } = schema;
    const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const rest = Array.isArray(items) ? additionalItems : items;
    let effort = 0;
    for (const [at, item] of value.entries()) {
      effort += this.of(at < tuple.length ? tuple[at] : rest, item);
      effort += this.of(unevaluatedItems, item) + this.of(contains, item);
    }
    return effort;
  }

  #each(schemas: readonly unknown[], value: unknown): number {
    let effort = 0;
    for (const schema of schemas) effort += this.of(schema, value);
    return effort;
  }

  /** By its own `$id` a document is the same document. */
  #target($ref: string): unknown {
    const { $id } = this.#root;
    const local =
      typeof $id === "string" && $ref.startsWith($id) ? `#${$ref.slice($id.length).replace(/^#/, "")}` : $ref;
    if (!local.startsWith("#")) throw new Fault("the schema refers to another document");
    return resolveReference({ $ref: local }, this.#root);
  }
}

/** A text under `$id` anywhere but at the top, other than the anchors of draft-07. */
function holdsInnerId(root: SchemaObject): boolean {
  const pending: object[] = [root];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const $id = next !== root && Object.hasOwn(next, "$id") ? (next as SchemaObject).$id : undefined;
    if (typeof $id === "string" && !$id.startsWith("#")) return true;
    for (const held of Array.isArray(next) ? next : Object.values(next)) {
      if (typeof held === "object" && held !== null) pending.push(held);
    }
  }
  return false;
}

function ownEffort(schema: SchemaObject, value: object): number {
  const listed = sizeOf(schema.enum) + sizeOf(schema.required);
  if (value === scalar) return 1 + listed;
  const members = sizeOf(value) * (1 + valuesOf(schema.patternProperties).length);
  return containerEffort + members + listed * (schema.enum === undefined ? 1 : 2);
}

function sizeOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isSchemaObject(value) ? Object.keys(value).length : 0;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function valuesOf(value: unknown): readonly unknown[] {
  return isSchemaObject(value) ? Object.values(value) : [];
}
