/**
 * Schemas of either OpenAPI dialect to JSON Schema 2020-12. Invariants:
 * 1. Every schema that comes out compiles: a keyword is copied only in a shape JSON Schema allows, unknown ones are dropped.
 * 2. Nothing is expanded: each `$ref` becomes `#/$defs/<name>`, its target is converted once, and cycles stay cycles.
 * 3. A reference that leads nowhere, outside the document, or only to itself becomes `{}` with a `$comment` saying so.
 */
import { fromDialect30 } from "./dialect-30.ts";
import type { MutableSchema, Schema } from "./plan.ts";
import { isTree, own, type Tree } from "./read-document.ts";
import type { References } from "./references.ts";

/** multipart: strings with format binary become files, see `fileSchema`. */
export type SchemaUse = "json" | "multipart";

type Keyword = (value: unknown, context: Context) => unknown;

interface Context {
  readonly use: SchemaUse;
  readonly converter: SchemaConverter;
}

export const binarySchema: Schema = {
  type: "object",
  description: "Bytes, as base64",
  properties: { base64: { type: "string", contentEncoding: "base64" }, mediaType: { type: "string" } },
  required: ["base64"],
  additionalProperties: false,
};

const fileSchema: Schema = {
  type: "object",
  description: "A file: its bytes as base64",
  properties: {
    filename: { type: "string" },
    mediaType: { type: "string" },
    base64: { type: "string", contentEncoding: "base64" },
  },
  required: ["base64"],
  additionalProperties: false,
};

const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

const number: Keyword = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);
const positive: Keyword = (value) =>
  typeof value === "number" && value > 0 && Number.isFinite(value) ? value : undefined;
const count: Keyword = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined);
const flag: Keyword = (value) => (typeof value === "boolean" ? value : undefined);
const text: Keyword = (value) => (typeof value === "string" ? value : undefined);
const anything: Keyword = (value) => value;
const schema: Keyword = (value, { converter, use }) => (isSchema(value) ? converter.convert(value, use) : undefined);
const schemaList: Keyword = (value, { converter, use }) => {
  if (!Array.isArray(value)) return undefined;
  const schemas = value.filter(isSchema);
  return schemas.length > 0 ? schemas.map((each) => converter.convert(each, use)) : undefined;
};
const schemaMap: Keyword = (value, { converter, use }) => {
  if (!isTree(value)) return undefined;
  const entries = Object.entries(value).filter(([, each]) => isSchema(each));
  return Object.fromEntries(entries.map(([name, each]) => [name, converter.convert(each as Schema, use)]));
};
const names = (value: unknown): string[] | undefined =>
  Array.isArray(value) ? [...new Set(value.filter((each) => typeof each === "string"))] : undefined;

const keywords: Readonly<Record<string, Keyword>> = {
  title: text,
  description: text,
  default: anything,
  const: anything,
  enum: (value) => (Array.isArray(value) && value.length > 0 ? value : undefined),
  examples: (value) => (Array.isArray(value) ? value : undefined),
  deprecated: flag,
  readOnly: flag,
  writeOnly: flag,
  $comment: text,
  format: text,
  contentEncoding: text,
  contentMediaType: text,
  pattern: (value) => (typeof value === "string" ? portablePattern(value) : undefined),
  multipleOf: positive,
  maximum: number,
  minimum: number,
  exclusiveMaximum: number,
  exclusiveMinimum: number,
  maxLength: count,
  minLength: count,
  maxItems: count,
  minItems: count,
  maxProperties: count,
  minProperties: count,
  maxContains: count,
  minContains: count,
  uniqueItems: flag,
  items: (value, context) => (Array.isArray(value) ? undefined : schema(value, context)),
  additionalProperties: schema,
  unevaluatedItems: schema,
  unevaluatedProperties: schema,
  propertyNames: schema,
  contains: schema,
  not: schema,
  if: schema,
  // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword, in a table that nobody awaits
  then: schema,
  else: schema,
  allOf: schemaList,
  anyOf: schemaList,
  oneOf: schemaList,
  prefixItems: schemaList,
  properties: schemaMap,
  dependentSchemas: schemaMap,
  patternProperties: (value, context) => {
    const converted = schemaMap(value, context);
    if (!isTree(converted)) return undefined;
    return Object.fromEntries(Object.entries(converted).filter(([pattern]) => portablePattern(pattern) === pattern));
  },
  dependentRequired: (value) =>
    isTree(value)
      ? Object.fromEntries(Object.entries(value).map(([name, list]) => [name, names(list) ?? []]))
      : undefined,
};

/** Keywords that OpenAPI 3.0 allows beside `$ref` in practice; there the rest is ignored by its own rules. */
const besideReference = new Set(["title", "description", "deprecated", "readOnly", "writeOnly"]);

export class SchemaConverter {
  /** Finished definitions by name. */
  readonly definitions: Record<string, Schema> = {};
  private readonly references: References;
  private readonly dialect: "3.0" | "3.1";
  private readonly nameOf = new Map<string, string>();
  private readonly targets = new Map<string, MutableSchema>();
  private readonly namesTaken = new Set<string>();
  private readonly owed: { readonly name: string; readonly value: unknown; readonly use: SchemaUse }[] = [];

  constructor(references: References, dialect: "3.0" | "3.1") {
    this.references = references;
    this.dialect = dialect;
  }

  convert(value: unknown, use: SchemaUse = "json"): Schema {
    if (typeof value === "boolean") return value;
    if (!isTree(value)) return {};
    const ref = own(value, "$ref");
    if (typeof ref === "string") return this.reference(ref, value, use);
    if (use === "multipart" && isBinary(value)) return withDescription(fileSchema, value);
    return this.plain(value, use);
  }

  /** Converts what references have named, until nothing is owed. Call once everything has been converted. */
  finish(): void {
    for (let next = this.owed.pop(); next; next = this.owed.pop()) {
      this.definitions[next.name] = this.convert(next.value, next.use);
    }
  }

  private plain(value: Tree, use: SchemaUse): Schema {
    const result: MutableSchema = {};
    const context: Context = { use, converter: this };
    const type = this.type(value);
    if (type !== undefined) result.type = type;
    for (const key of Object.keys(value)) {
      const keyword = Object.hasOwn(keywords, key) ? keywords[key] : undefined;
      const converted = keyword?.(value[key], context);
      if (converted !== undefined) result[key] = converted;
    }
    this.tuple(value, result, context);
    this.required(value, result);
    if (!("examples" in result) && Object.hasOwn(value, "example")) result.examples = [value.example];
    return this.dialect === "3.0" ? fromDialect30(value, result) : result;
  }

  private type(value: Tree): unknown {
    const given = own(value, "type");
    const listed = Array.isArray(given) ? given : [given];
    const known = [
      ...new Set(listed.map((each) => (each === "file" ? "string" : each)).filter((each) => types.has(each as string))),
    ];
    if (known.length === 0) return undefined;
    return known.length === 1 ? known[0] : known;
  }

  /** `items` as a list, from before 2020-12. */
  private tuple(value: Tree, result: MutableSchema, context: Context): void {
    const items = own(value, "items");
    if (!Array.isArray(items) || "prefixItems" in result) return;
    const prefix = schemaList(items, context);
    if (prefix !== undefined) result.prefixItems = prefix;
  }

  /**
   * One definition serves requests and answers, so a property that exists in one direction only is never required.
   * (`required` of a 3.0 readOnly property binds answers only; the other way round for writeOnly.)
   */
  private required(value: Tree, result: MutableSchema): void {
    const listed = names(own(value, "required"));
    if (!listed) return;
    const properties = own(value, "properties");
    const both = listed.filter((name) => {
      const property = this.references.resolve(own(properties, name));
      return own(property, "readOnly") !== true && own(property, "writeOnly") !== true;
    });
    if (both.length > 0) result.required = both;
  }

  private reference(ref: string, value: Tree, use: SchemaUse): Schema {
    const target = this.target(ref, use);
    const siblings = this.siblings(value, use);
    if (target.$ref === undefined || Object.keys(siblings).length === 0) return this.orNull(target, value);
    return this.orNull({ ...target, ...siblings }, value);
  }

  private orNull(schema: Schema, value: Tree): Schema {
    return this.dialect === "3.0" && value.nullable === true ? { anyOf: [schema, { type: "null" }] } : schema;
  }

  /** A document refers to its few schemas many thousand times, so each spelling is looked up once. */
  private target(ref: string, use: SchemaUse): MutableSchema {
    const key = `${use} ${ref}`;
    const known = this.targets.get(key);
    if (known) return known;
    const found = this.findTarget(ref, use);
    this.targets.set(key, found);
    return found;
  }

  private findTarget(ref: string, use: SchemaUse): MutableSchema {
    const fragment = this.references.fragment(ref);
    const target = fragment === undefined ? undefined : this.references.at(fragment);
    const shown = ref.slice(0, 200);
    if (fragment === undefined) return { $comment: `Reference "${shown}" is outside the document` };
    if (!isSchema(target)) return { $comment: `Reference "${shown}" leads to no schema` };
    if (
      this.references.resolve(target) === undefined &&
      typeof target !== "boolean" &&
      this.leadsOnlyToItself(target)
    ) {
      return { $comment: `Reference "${shown}" leads only to references` };
    }
    return { $ref: `#/$defs/${this.name(fragment, target, use)}` };
  }

  private siblings(value: Tree, use: SchemaUse): MutableSchema {
    const { $ref: _, ...rest } = value;
    if (Object.keys(rest).length === 0) return {};
    const converted = this.plain(rest, use) as MutableSchema;
    if (this.dialect === "3.1") return converted;
    return Object.fromEntries(Object.entries(converted).filter(([key]) => besideReference.has(key)));
  }

  private leadsOnlyToItself(target: unknown): boolean {
    const seen = new Set<unknown>();
    let current = target;
    while (isTree(current) && typeof own(current, "$ref") === "string" && Object.keys(current).length === 1) {
      if (seen.has(current)) return true;
      seen.add(current);
      const fragment = this.references.fragment(current.$ref as string);
      current = fragment === undefined ? undefined : this.references.at(fragment);
    }
    return false;
  }

  /** Two spellings of one pointer are one definition; a name tells people where it came from. */
  private name(fragment: string, target: unknown, use: SchemaUse): string {
    const key = `${use} ${fragment}`;
    const known = this.nameOf.get(key);
    if (known !== undefined) return known;
    const parts = fragment.split("/").filter((part) => part !== "");
    const wanted = fragment.startsWith("/components/schemas/") && parts.length === 3 ? [parts[2]!] : parts;
    const cleaned =
      wanted
        .join("_")
        .replaceAll(/[^A-Za-z0-9._-]+/g, "_")
        .slice(0, 120) || "document";
    const base = use === "json" ? cleaned : `${cleaned}_${use}`;
    let name = base;
    for (let number = 2; this.namesTaken.has(name); number += 1) name = `${base}_${number}`;
    this.nameOf.set(key, name);
    this.namesTaken.add(name);
    this.owed.push({ name, value: target, use });
    return name;
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "boolean" || isTree(value);
}

function isBinary(value: Tree): boolean {
  if (own(value, "format") === "binary") return true;
  // 3.1: bytes have a media type, and no type or no encoding as text.
  return typeof own(value, "contentMediaType") === "string" && own(value, "contentEncoding") === undefined;
}

function withDescription(base: Schema, value: Tree): Schema {
  const description = own(value, "description");
  return typeof description === "string" ? { ...(base as object), description } : base;
}

/** The pattern if every JSON Schema validator can read it, repaired where only needless escapes stand in the way. */
function portablePattern(pattern: string): string | undefined {
  for (const candidate of [pattern, pattern.replaceAll(/\\([^A-Za-z0-9^$\\.*+?()[\]{}|/-])/g, "$1")]) {
    try {
      new RegExp(candidate, "u");
      return candidate;
    } catch {
      // Not JavaScript; the next candidate, or no pattern at all: a value is then accepted rather than refused wrongly.
    }
  }
  return undefined;
}
