/** One schema at one level of detail, as declarations of TypeScript types. `types-from-schema.ts` says what may be relied on. */
import { escapedJson, foreignJson, propertyName } from "./foreign-text.ts";
import { schemaComment } from "./schema-comment.ts";
import { isObject, resolveReference, type SchemaObject, typeName } from "./schema-references.ts";
import {
  arrayOf,
  atom,
  intersection,
  leftOutType,
  optionalItem,
  recordOf,
  type TypeExpression,
  union,
  unknownType,
} from "./type-expression.ts";

/** JSON text of one literal type. */
const literalCharactersMax = 200;
/** What a type costs at least, so that endless nothing costs something too. */
const typeCharacters = 4;

/** How much of a schema is shown. Depth counts from the root, through references. */
export interface Detail {
  readonly depthMax: number;
  /** Properties of one object, members of one union, items of one tuple. */
  readonly membersMax: number;
  /** Literals of one enum. */
  readonly literalsMax: number;
  readonly descriptionCharactersMax: number;
}

export interface TypeWriterOptions {
  readonly root: unknown;
  readonly name: string;
  /** Type names that are taken. */
  readonly names: ReadonlySet<string>;
  /** Definitions that are declared already: pointer → type name. */
  readonly known: ReadonlyMap<string, string>;
  readonly detail: Detail;
  /** Writing stops soon after this many characters, so that a huge schema costs no more than its bound. */
  readonly charactersMax: number;
}

interface Place {
  readonly depth: number;
  readonly indent: string;
}

export class TypeWriter {
  /** Definitions declared so far, those of the options included. */
  readonly known: Map<string, string>;
  readonly #options: TypeWriterOptions;
  readonly #names: Set<string>;
  readonly #pending = new Map<string, { readonly name: string; readonly schema: unknown; depth: number }>();
  #characters = 0;

  constructor(options: TypeWriterOptions) {
    this.#options = options;
    this.#names = new Set(options.names);
    this.known = new Map(options.known).set("", options.name);
  }

  /** Undefined when the text would be longer than `charactersMax`. */
  write(): string | undefined {
    const texts = [this.#declaration(this.#options.name, this.#options.root, 0)];
    for (const [pointer, { name, schema, depth }] of this.#pending) {
      this.#pending.delete(pointer);
      texts.push(this.#declaration(name, schema, depth));
    }
    this.known.delete("");
    return this.#full ? undefined : texts.join("\n");
  }

  get #full(): boolean {
    return this.#characters > this.#options.charactersMax;
  }

  #declaration(name: string, schema: unknown, depth: number): string {
    const comment = this.#comment(schema, "");
    return `${comment}${this.#count(`type ${name} = `)}${this.#type(schema, { depth, indent: "" }).text};\n`;
  }

  #type(schema: unknown, place: Place): TypeExpression {
    this.#characters += typeCharacters;
    if (schema === false) return atom("never");
    if (!isObject(schema) || this.#full) return unknownType;
    const type = intersection([
      ...this.#reference(schema, place),
      ...this.#ownType(schema, place),
      ...this.#alternatives(schema.oneOf, place),
      ...this.#alternatives(schema.anyOf, place),
      ...this.#each(schema.allOf, place),
    ]);
    return schema.nullable === true ? union([type, atom("null")]) : type;
  }

  #reference(schema: SchemaObject, { depth }: Place): TypeExpression[] {
    if (typeof schema.$ref !== "string") return [];
    const target = resolveReference(schema.$ref, this.#options.root);
    if (target === undefined) return [unknownType];
    const pending = this.#pending.get(target.pointer);
    if (pending !== undefined) pending.depth = Math.min(pending.depth, depth + 1);
    const known = this.known.get(target.pointer);
    if (known !== undefined) return [atom(this.#count(known))];
    if (depth >= this.#options.detail.depthMax) return [leftOutType];
    const name = typeName(target.pointer, this.#names);
    this.#names.add(name);
    this.known.set(target.pointer, name);
    this.#pending.set(target.pointer, { name, schema: target.schema, depth: depth + 1 });
    return [atom(this.#count(name))];
  }

  #ownType(schema: SchemaObject, place: Place): TypeExpression[] {
    if ("const" in schema) return [this.#literals([schema.const])];
    if (Array.isArray(schema.enum)) return [this.#literals(schema.enum)];
    const types = typesOf(schema);
    return types.length === 0 ? [] : [union(types.map((type) => this.#simpleType(type, schema, place)))];
  }

  #simpleType(type: unknown, schema: SchemaObject, place: Place): TypeExpression {
    const deep = place.depth >= this.#options.detail.depthMax;
    switch (type) {
      case "string":
      case "number":
      case "boolean":
      case "null":
        return atom(type);
      case "integer":
        return atom("number");
      case "array":
        return deep ? arrayOf(leftOutType) : this.#array(schema, deeper(place));
      case "object":
        return deep ? recordOf(leftOutType) : this.#object(schema, place);
      default:
        return unknownType;
    }
  }

  #array(schema: SchemaObject, place: Place): TypeExpression {
    const fixed = [schema.prefixItems, schema.items].find((items) => Array.isArray(items));
    if (fixed === undefined) return arrayOf(this.#type(schema.items, place));
    const minItems = typeof schema.minItems === "number" ? schema.minItems : 0;
    const shown = fixed.slice(0, this.#options.detail.membersMax);
    const items = shown.map((item, index) => {
      const type = this.#type(item, place);
      return index < minItems ? type.text : optionalItem(type);
    });
    const rest = fixed === schema.items ? schema.additionalItems : schema.items;
    if (shown.length < fixed.length) items.push(`...${arrayOf(leftOutType).text}`);
    else if (rest !== false) items.push(`...${arrayOf(this.#type(rest, place)).text}`);
    return atom(`[${items.join(", ")}]`);
  }

  #object(schema: SchemaObject, place: Place): TypeExpression {
    const members = this.#members(schema, { depth: place.depth + 1, indent: `${place.indent}  ` });
    const others = this.#otherNames(schema, deeper(place));
    if (members.length > 0) return intersection([atom(`{\n${members.join("\n")}\n${place.indent}}`), ...others]);
    return others[0] ?? (schema.additionalProperties === false ? atom("{}") : recordOf(unknownType));
  }

  #members(schema: SchemaObject, place: Place): string[] {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const { names, required } = namesOf(schema, properties, this.#options.detail.membersMax);
    const shown = names.slice(0, this.#options.detail.membersMax);
    const members = shown.map((name) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : true;
      const comment = this.#comment(property, place.indent);
      const head = this.#count(`${place.indent}${propertyName(name)}${required.has(name) ? "" : "?"}: `);
      return `${comment}${head}${this.#type(property, place).text};`;
    });
    const hidden = names.length - shown.length;
    return hidden === 0 ? members : [...members, `${place.indent}// ${hidden} more left out`];
  }

  /** Properties without a name of their own: `additionalProperties` with a schema, and `patternProperties`. */
  #otherNames(schema: SchemaObject, place: Place): TypeExpression[] {
    const others = isObject(schema.patternProperties) ? Object.values(schema.patternProperties) : [];
    if (isObject(schema.additionalProperties)) others.push(schema.additionalProperties);
    return others.length === 0 ? [] : [recordOf(union(this.#each(others, place)))];
  }

  #alternatives(schemas: unknown, place: Place): TypeExpression[] {
    const types = this.#each(schemas, place);
    return types.length === 0 ? [] : [union(types)];
  }

  /** Members of oneOf, anyOf and allOf are not counted as deeper, but their nesting must end as well. */
  #each(schemas: unknown, place: Place): TypeExpression[] {
    if (!Array.isArray(schemas) || schemas.length === 0) return [];
    const { depthMax, membersMax } = this.#options.detail;
    if (place.depth > depthMax) return [leftOutType];
    const shown = schemas
      .slice(0, membersMax)
      .map((schema) => this.#type(schema, { ...place, depth: place.depth + 0.5 }));
    return shown.length === schemas.length ? shown : [...shown, leftOutType];
  }

  #literals(values: readonly unknown[]): TypeExpression {
    const { literalsMax } = this.#options.detail;
    const shown = values.slice(0, literalsMax).map((value) => atom(this.#count(literalType(value))));
    return union(shown.length === values.length ? shown : [...shown, leftOutType]);
  }

  #comment(schema: unknown, indent: string): string {
    if (!isObject(schema) || this.#full) return "";
    const text = schemaComment(schema, this.#options.detail.descriptionCharactersMax);
    return text === "" ? "" : this.#count(`${indent}/** ${text} */\n`);
  }

  #count(text: string): string {
    this.#characters += text.length;
    return text;
  }
}

function deeper({ depth, indent }: Place): Place {
  return { depth: depth + 1, indent };
}

/** The declared types, or the one that the other keywords imply. */
function typesOf(schema: SchemaObject): readonly unknown[] {
  if (Array.isArray(schema.type)) return schema.type;
  if (schema.type !== undefined) return [schema.type];
  if (isObject(schema.properties) || isObject(schema.additionalProperties) || isObject(schema.patternProperties)) {
    return ["object"];
  }
  return schema.items !== undefined || schema.prefixItems !== undefined ? ["array"] : [];
}

/** In the document's order; where the object is too wide to show, required names come first so that they survive. */
function namesOf(schema: SchemaObject, properties: SchemaObject, membersMax: number) {
  const listed = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
  const required = new Set<string>(listed);
  const declared = Object.keys(properties);
  const wide = new Set([...declared, ...required]).size > membersMax;
  const names = [...new Set(wide ? [...required, ...declared] : [...declared, ...required])];
  return { names, required };
}

function literalType(value: unknown): string {
  const json = foreignJson(value);
  if (json !== undefined && json.length <= literalCharactersMax) return escapedJson(json);
  if (Array.isArray(value)) return "unknown[]";
  return typeof value === "string" ? "string" : "unknown";
}
