/** Request bodies and answers of one operation: media types, their schemas, and what they are called on the wire. */
import { bodyKind, byPreference, concrete, essence, isMediaType } from "./media-types.ts";
import type { BodyContent, MutableSchema, PropertyEncoding, Schema } from "./plan.ts";
import { isTree, own, ownText, type Tree } from "./read-document.ts";
import type { References } from "./references.ts";
import { binarySchema, type SchemaConverter } from "./schema-conversion.ts";

export interface OperationBody {
  readonly contents: readonly BodyContent[];
  /** One for each of `contents`. */
  readonly schemas: readonly Schema[];
  readonly required: boolean;
  readonly description: string;
}

export const noBody: OperationBody = { contents: [], schemas: [], required: false, description: "" };

export function readBody(value: unknown, references: References, converter: SchemaConverter): OperationBody {
  const body = references.resolve(value);
  if (!body) return noBody;
  const content = own(body, "content");
  const listed = isTree(content) ? byPreference(Object.keys(content).filter(isMediaType)) : [];
  // A range and its most ordinary member are one and the same on the wire.
  const mediaTypes = [
    ...new Map(listed.toReversed().map((mediaType) => [concrete(mediaType), mediaType])).values(),
  ].toReversed();
  if (mediaTypes.length === 0) return noBody;
  return {
    contents: mediaTypes.map((mediaType) => ({
      mediaType: concrete(mediaType),
      encoding: readEncodings(own(content, mediaType)),
    })),
    schemas: mediaTypes.map((mediaType) => contentSchema(mediaType, own(content, mediaType), converter)),
    required: own(body, "required") === true,
    description: ownText(body, "description"),
  };
}

function contentSchema(mediaType: string, content: unknown, converter: SchemaConverter): Schema {
  const schema = own(content, "schema");
  switch (bodyKind(mediaType)) {
    case "json":
    case "form":
      return converter.convert(schema);
    case "multipart":
      return converter.convert(schema, "multipart");
    case "text":
      return textSchema(essence(mediaType), schema);
    case "binary":
      return binarySchema;
  }
}

/** XML and its like go as they are: the document's schema speaks of a value, the caller gives its text. */
function textSchema(type: string, schema: unknown): Schema {
  const description = ownText(schema, "description");
  return { type: "string", description: description === "" ? `Text of type ${type}` : description };
}

function readEncodings(content: unknown): Record<string, PropertyEncoding> {
  const encoding = own(content, "encoding");
  if (!isTree(encoding)) return {};
  return Object.fromEntries(Object.entries(encoding).map(([name, value]) => [name, readEncoding(value)]));
}

const formStyles = ["form", "spaceDelimited", "pipeDelimited", "deepObject"] as const;

function readEncoding(value: unknown): PropertyEncoding {
  const contentType = ownText(value, "contentType").split(",")[0]!.trim();
  const style = formStyles.find((each) => each === ownText(value, "style")) ?? null;
  const explode = own(value, "explode");
  const allowReserved = own(value, "allowReserved") === true;
  const styled = style !== null || typeof explode === "boolean" || allowReserved;
  return {
    contentType: isMediaType(contentType) ? contentType : null,
    // Any of the three makes the property styled; style then defaults to form.
    style: styled ? (style ?? "form") : null,
    explode: typeof explode === "boolean" ? explode : style === null || style === "form" || style === "deepObject",
    allowReserved,
  };
}

export interface OperationAnswers {
  readonly schema: Schema;
  readonly accept: string;
}

/** `oneOf` per status; ranges and `default` leave out what is listed beside them, so that one status fits one branch. */
export function readAnswers(value: unknown, references: References, converter: SchemaConverter): OperationAnswers {
  const responses = isTree(value) ? value : {};
  const codes = Object.keys(responses).filter((code) => /^[1-5](\d\d|XX)$|^default$/i.test(code));
  const accepted = new Set<string>();
  const branches = codes.map((code) => {
    const response = references.resolve(responses[code]) ?? {};
    const content = own(response, "content");
    const mediaTypes = isTree(content) ? byPreference(Object.keys(content).filter(isMediaType)) : [];
    for (const mediaType of mediaTypes) accepted.add(essence(mediaType));
    return answerSchema(statusSchema(code, codes), response, mediaTypes, { references, converter });
  });
  return { schema: answersSchema(branches), accept: acceptHeader([...accepted]) };
}

function answersSchema(branches: readonly Schema[]): Schema {
  if (branches.length === 0) return answerSchema({ type: "integer" }, {}, [], undefined);
  return branches.length === 1 ? branches[0]! : { oneOf: branches };
}

function statusSchema(code: string, codes: readonly string[]): Schema {
  if (/^\d{3}$/.test(code)) return { const: Number(code) };
  const listed = codes.filter((each) => /^\d{3}$/.test(each)).map(Number);
  const ranges = codes
    .filter((each) => /^\dXX$/i.test(each))
    .map((each) => ({ minimum: Number(each[0]) * 100, maximum: Number(each[0]) * 100 + 99 }));
  if (code.toLowerCase() !== "default") {
    const minimum = Number(code[0]) * 100;
    const inside = listed.filter((status) => status >= minimum && status < minimum + 100);
    return { type: "integer", minimum, maximum: minimum + 99, ...(inside.length > 0 ? { not: { enum: inside } } : {}) };
  }
  const others: Schema[] = [...(listed.length > 0 ? [{ enum: listed }] : []), ...ranges];
  return { type: "integer", ...(others.length > 0 ? { not: { anyOf: others } } : {}) };
}

function answerSchema(
  status: Schema,
  response: Tree,
  mediaTypes: readonly string[],
  reader: { readonly references: References; readonly converter: SchemaConverter } | undefined,
): Schema {
  const properties: MutableSchema = { status, headers: headersSchema(response, reader?.references) };
  const bodies = reader ? answerBodies(own(response, "content"), mediaTypes, reader.converter) : [];
  if (bodies.length > 0) properties.body = bodies.length === 1 ? bodies[0] : { anyOf: bodies };
  const description = ownText(response, "description");
  return {
    type: "object",
    ...(description === "" ? {} : { description }),
    properties,
    required: ["status", "headers", ...(bodies.length > 0 ? ["body"] : [])],
  };
}

function answerBodies(content: unknown, mediaTypes: readonly string[], converter: SchemaConverter): Schema[] {
  const schemas = mediaTypes.map((mediaType): Schema => {
    const kind = bodyKind(mediaType);
    if (kind === "json") return converter.convert(own(own(content, mediaType), "schema"));
    return kind === "text" || kind === "form" ? { type: "string" } : binarySchema;
  });
  return distinct(schemas);
}

function headersSchema(response: Tree, references: References | undefined): Schema {
  const declared = own(response, "headers");
  const base: MutableSchema = { type: "object", additionalProperties: { type: "string" } };
  if (!isTree(declared) || !references) return base;
  const properties = Object.keys(declared).map((name) => {
    const description = ownText(references.resolve(declared[name]), "description");
    return [name.toLowerCase(), { type: "string", ...(description === "" ? {} : { description }) }];
  });
  return { ...base, properties: Object.fromEntries(properties) };
}

function distinct(schemas: readonly Schema[]): Schema[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}

/** What the document promises, JSON first; anything else is still taken. */
function acceptHeader(mediaTypes: readonly string[]): string {
  const ordered = byPreference(mediaTypes)
    .filter((mediaType) => mediaType !== "*/*")
    .slice(0, 8);
  return ordered.length === 0 ? "application/json, */*;q=0.8" : [...ordered, "*/*;q=0.1"].join(", ");
}
