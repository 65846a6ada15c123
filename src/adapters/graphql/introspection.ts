/**
 * A foreign introspection result, copied into a clean one: every part that is read has the shape it should have, names are
 * there once, and wrapped types are not too deep. The library itself trusts what it is given: of two types with one name it takes
 * the last, and a description that is a number ends in a crash.
 */
import { type IntrospectionQuery, parseConstValue } from "graphql";
import { graphqlListDepthMax } from "../../limits.ts";
import { unusable } from "./unusable.ts";

type Tree = Readonly<Record<string, unknown>>;
type Copy = Record<string, unknown>;

const kinds = new Set(["SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM", "INPUT_OBJECT"]);

/** @throws Failure invalid_request naming the type at fault. */
export function cleanIntrospection(schema: Tree): IntrospectionQuery {
  const types = named(schema.types, "the schema", (type, name) => cleanType(type, name));
  const copy: Copy = {
    description: text(schema.description),
    types,
    queryType: reference(schema.queryType, "the query type"),
    mutationType: reference(schema.mutationType, "the mutation type"),
    subscriptionType: reference(schema.subscriptionType, "the subscription type"),
    // Directives are for the target's own tools; nothing here needs them.
    directives: [],
  };
  return { __schema: copy } as unknown as IntrospectionQuery;
}

function cleanType(type: Tree, name: string): Copy {
  const kind = type.kind;
  if (typeof kind !== "string" || !kinds.has(kind)) throw unusable(`type "${name}" is of no known kind`);
  const copy: Copy = { kind, name, description: text(type.description) };
  switch (kind) {
    case "SCALAR":
      copy.specifiedByURL = text(type.specifiedByURL);
      break;
    case "ENUM":
      copy.enumValues = named(type.enumValues, `type "${name}"`, describe);
      break;
    case "UNION":
      copy.possibleTypes = references(type.possibleTypes, name);
      break;
    case "INPUT_OBJECT":
      copy.inputFields = named(type.inputFields, `type "${name}"`, cleanInput);
      copy.isOneOf = type.isOneOf === true;
      break;
    default:
      copy.fields = named(type.fields, `type "${name}"`, cleanField);
      // Servers of the first years leave these out.
      copy.interfaces = references(type.interfaces ?? [], name);
  }
  return copy;
}

function cleanField(field: Tree, name: string): Copy {
  const args = named(field.args ?? [], `field "${name}"`, cleanInput);
  return { ...describe(field), args, type: cleanReference(field.type, name, 0) };
}

function cleanInput(input: Tree, name: string): Copy {
  return {
    ...describe(input),
    type: cleanReference(input.type, name, 0),
    defaultValue: cleanDefault(input.defaultValue),
  };
}

function describe(part: Tree): Copy {
  const isDeprecated = part.isDeprecated === true;
  return {
    description: text(part.description),
    isDeprecated,
    deprecationReason: isDeprecated ? (text(part.deprecationReason) ?? "No longer supported") : null,
  };
}

/** That there is a default matters, since it makes an argument optional; a default nobody can read is written as null. */
function cleanDefault(value: unknown): string | null {
  if (typeof value !== "string") return null;
  try {
    parseConstValue(value, { noLocation: true });
    return value;
  } catch {
    return "null";
  }
}

function cleanReference(type: unknown, where: string, depth: number): Copy {
  if (!isTree(type)) throw unusable(`"${where}" has no type, or its type is wrapped deeper than introspection tells`);
  if (type.kind !== "LIST" && type.kind !== "NON_NULL") return reference(type, `"${where}"`)!;
  // Each list may be marked as never null.
  if (depth >= graphqlListDepthMax * 2) throw unusable(`"${where}" has a type wrapped too deep`);
  return { kind: type.kind, ofType: cleanReference(type.ofType, where, depth + 1) };
}

function reference(type: unknown, where: string): Copy | null {
  if (type === null || type === undefined) return null;
  if (!isTree(type) || typeof type.name !== "string") throw unusable(`${where} names no type`);
  return { kind: typeof type.kind === "string" ? type.kind : "OBJECT", name: type.name };
}

function references(types: unknown, where: string): Copy[] {
  if (!Array.isArray(types)) throw unusable(`type "${where}" does not list the types it belongs with`);
  return types.map((type) => reference(type ?? {}, `type "${where}"`)!);
}

function named(parts: unknown, where: string, clean: (part: Tree, name: string) => Copy): Copy[] {
  if (!Array.isArray(parts)) throw unusable(`${where} does not list its parts`);
  const seen = new Set<string>();
  return parts.map((part: unknown) => {
    if (!isTree(part) || typeof part.name !== "string") throw unusable(`${where} has a part without a name`);
    const { name } = part;
    if (seen.has(name)) throw unusable(`${where} has "${name.slice(0, 80)}" twice`);
    seen.add(name);
    return { ...clean(part, name), name };
  });
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value.toWellFormed() : null;
}

export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
