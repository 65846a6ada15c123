/**
 * Which keys of a stored object its schema does not allow. A key is allowed when `properties` or `patternProperties` name it,
 * or when `additionalProperties` is anything but false; through `$ref` and `allOf` every part has to allow it, of
 * `anyOf`/`oneOf` one branch that could be meant. Values below an undeclared key are not looked at: it goes as a whole.
 */
import { compilePattern, type LinearPattern } from "./pattern.ts";
import { formatPointer } from "./pointer.ts";
import { isSchemaObject, resolveReference, type SchemaObject } from "./schema-walk.ts";

export interface Place {
  /** From the root of the value. */
  readonly tokens: readonly string[];
  /** The pointer with each array index replaced by one sign, so that an element that moves keeps its shape. */
  readonly shape: string;
}

/** Escaped pointers never hold it: `~` is always followed by 0 or 1 in them. */
const elementSign = "/~*";

const top: Place = { tokens: [], shape: "" };

/** In document order, none inside another. */
export function undeclaredPlaces(schema: unknown, value: unknown): readonly Place[] {
  if (!isSchemaObject(schema)) return [];
  return outermost(walk({ root: schema, following: new Set() }, schema, value, top));
}

export function childPlace(place: Place, key: string, inArray: boolean): Place {
  return { tokens: [...place.tokens, key], shape: place.shape + (inArray ? elementSign : formatPointer([key])) };
}

interface Walk {
  readonly root: SchemaObject;
  /** Schemas being applied to the same value: a reference back to one adds nothing. */
  readonly following: ReadonlySet<object>;
}

function walk(context: Walk, schema: unknown, value: unknown, place: Place): readonly Place[] {
  if (!isSchemaObject(schema) || typeof value !== "object" || value === null || context.following.has(schema))
    return [];
  const here: Walk = { root: context.root, following: new Set([...context.following, schema]) };
  const parts = [resolveReference(schema, context.root), ...listOf(schema.allOf)];
  return [
    ...parts.flatMap((part) => walk(here, part, value, place)),
    ...[schema.anyOf, schema.oneOf].flatMap((branches) => walkBranches(here, listOf(branches), value, place)),
    ...(Array.isArray(value)
      ? walkItems(context, schema, value, place)
      : walkKeys(context, schema, value as SchemaObject, place)),
  ];
}

/** A key that every possible branch refuses is refused; one that some branch allows is not. */
function walkBranches(context: Walk, branches: readonly unknown[], value: object, place: Place): readonly Place[] {
  const possible = branches.filter((branch) => couldBeMeant(branch, value, context.root));
  const [first, ...others] = possible.map((branch) => walk(context, branch, value, place));
  if (first === undefined) return [];
  const elsewhere = others.map((places) => new Set(places.map(({ tokens }) => formatPointer(tokens))));
  return first.filter(({ tokens }) => elsewhere.every((places) => places.has(formatPointer(tokens))));
}

/** By type and by properties with a constant, which is how branches are told apart in practice. */
function couldBeMeant(branch: unknown, value: object, root: SchemaObject): boolean {
  if (!isSchemaObject(branch)) return branch === true;
  const target = resolveReference(branch, root);
  const schema = isSchemaObject(target) ? { ...target, ...branch } : branch;
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.includes(Array.isArray(value) ? "array" : "object")) return false;
  const properties = isSchemaObject(schema.properties) ? schema.properties : {};
  return Object.entries(value).every(([key, member]) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isSchemaObject(property) || typeof member === "object") return true;
    if (property.const !== undefined) return property.const === member;
    return !Array.isArray(property.enum) || property.enum.includes(member);
  });
}

function walkKeys(context: Walk, schema: SchemaObject, value: SchemaObject, place: Place): readonly Place[] {
  return Object.entries(value).flatMap(([key, member]) => {
    const child = childPlace(place, key, false);
    const declared = declarations(schema, key);
    const rest = declared.length === 0 ? [schema.additionalProperties] : declared;
    if (rest.includes(false)) return [child];
    if (schema.unevaluatedProperties === false && !names(schema, key, context.root, new Set())) return [child];
    return rest.flatMap((inner) => walk({ root: context.root, following: new Set() }, inner, member, child));
  });
}

function walkItems(context: Walk, schema: SchemaObject, value: readonly unknown[], place: Place): readonly Place[] {
  const tuple = Array.isArray(schema.prefixItems)
    ? schema.prefixItems
    : Array.isArray(schema.items)
      ? schema.items
      : [];
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  return value.flatMap((item, index) => {
    const inner = index < tuple.length ? tuple[index] : rest;
    return walk({ root: context.root, following: new Set() }, inner, item, childPlace(place, String(index), true));
  });
}

/** The schemas `properties` and `patternProperties` give a key. */
function declarations(schema: SchemaObject, key: string): readonly unknown[] {
  const { properties, patternProperties } = schema;
  const named = isSchemaObject(properties) && Object.hasOwn(properties, key) ? [properties[key]] : [];
  const matching = isSchemaObject(patternProperties)
    ? patternsOf(patternProperties).filter(([pattern]) => pattern.test(key))
    : [];
  return [...named, ...matching.map(([, inner]) => inner)];
}

/** Compiled once and not for each key. */
const patternsKnown = new WeakMap<object, readonly (readonly [LinearPattern, unknown])[]>();

function patternsOf(patternProperties: SchemaObject): readonly (readonly [LinearPattern, unknown])[] {
  const known = patternsKnown.get(patternProperties);
  if (known !== undefined) return known;
  const patterns = Object.entries(patternProperties).map(
    ([pattern, inner]) => [compilePattern(pattern), inner] as const,
  );
  patternsKnown.set(patternProperties, patterns);
  return patterns;
}

/** Whether any part of the schema says something about the key, for `unevaluatedProperties`. */
function names(schema: unknown, key: string, root: SchemaObject, seen: Set<object>): boolean {
  if (!isSchemaObject(schema) || seen.has(schema)) return false;
  seen.add(schema);
  if (declarations(schema, key).length > 0 || schema.additionalProperties !== undefined) return true;
  const dependent = isSchemaObject(schema.dependentSchemas) ? Object.values(schema.dependentSchemas) : [];
  const parts = [schema.allOf, schema.anyOf, schema.oneOf].flatMap(listOf);
  return [resolveReference(schema, root), ...parts, ...dependent, schema.if, schema.then, schema.else].some((part) =>
    names(part, key, root, seen),
  );
}

function outermost(places: readonly Place[]): readonly Place[] {
  const byPointer = new Map(places.map((place) => [formatPointer(place.tokens), place]));
  return [...byPointer.values()].filter(({ tokens }) =>
    tokens.every((_token, at) => at === 0 || !byPointer.has(formatPointer(tokens.slice(0, at)))),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
