/** Parameters of one operation: which there are, how each is written, and the schema of each slot. */
import { isCookieName, isHeaderName, isReservedHeader } from "../header-rules.ts";
import { bodyKind } from "./media-types.ts";
import type { MutableSchema, ParameterPlace, ParameterPlan, ParameterStyle, Schema } from "./plan.ts";
import { isTree, own, ownText, type Tree } from "./read-document.ts";
import type { References } from "./references.ts";
import type { SchemaConverter } from "./schema-conversion.ts";
import { keyPlace } from "./security.ts";

export interface Slot {
  readonly schema: Schema;
  readonly required: boolean;
}

export interface OperationParameters {
  readonly plans: readonly ParameterPlan[];
  /** Security schemes that the operation lists as parameters. */
  readonly keys: readonly string[];
  readonly slots: Readonly<Partial<Record<ParameterPlace, Slot>>>;
}

export interface ParameterReader {
  readonly references: References;
  readonly converter: SchemaConverter;
  /** Where credentials go, see `keyPlaces`. */
  readonly keys: ReadonlyMap<string, string>;
}

const places: Readonly<Record<string, ParameterPlace>> = {
  path: "path",
  query: "query",
  header: "headers",
  cookie: "cookies",
};

const styles: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  headers: ["simple"],
  cookies: ["form"],
};

/** `shared` are those of the path item; the operation's own go before them, by name and place. */
export function readParameters(
  path: string,
  shared: unknown,
  own_: unknown,
  reader: ParameterReader,
): OperationParameters {
  const found = new Map<string, Tree>();
  for (const list of [shared, own_]) {
    if (!Array.isArray(list)) continue;
    for (const each of list) {
      const parameter = reader.references.resolve(each);
      if (parameter) found.set(`${ownText(parameter, "in")} ${ownText(parameter, "name")}`, parameter);
    }
  }
  const inPath = templateNames(path);
  for (const name of inPath) {
    if (!found.has(`path ${name}`)) found.set(`path ${name}`, { name, in: "path", schema: { type: "string" } });
  }
  const keyOf = (parameter: Tree) => reader.keys.get(keyPlace(ownText(parameter, "in"), ownText(parameter, "name")));
  const usable = [...found.values()].filter(
    (parameter) => keyOf(parameter) === undefined && isUsable(parameter, inPath),
  );
  const keys = [...found.values()].map(keyOf).filter((id) => id !== undefined);
  return { plans: usable.map(planOf), keys, slots: slotsOf(usable, reader.converter) };
}

function templateNames(path: string): string[] {
  return [...new Set([...path.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1]!))];
}

function isUsable(parameter: Tree, inPath: readonly string[]): boolean {
  const name = ownText(parameter, "name");
  if (name === "" || name === "__proto__") return false;
  switch (ownText(parameter, "in")) {
    case "path":
      return inPath.includes(name);
    case "query":
      return true;
    case "header":
      // Accept and Content-Type are the adapter's, as OpenAPI says.
      return isHeaderName(name) && !isReservedHeader(name) && name.toLowerCase() !== "accept";
    case "cookie":
      return isCookieName(name);
    default:
      return false;
  }
}

function planOf(parameter: Tree): ParameterPlan {
  const place = places[ownText(parameter, "in")]!;
  const allowed = styles[place];
  const wanted = ownText(parameter, "style") as ParameterStyle;
  const style = contentOf(parameter) ? "content" : allowed.includes(wanted) ? wanted : allowed[0]!;
  const explode = own(parameter, "explode");
  return {
    name: ownText(parameter, "name"),
    place,
    style,
    explode: typeof explode === "boolean" ? explode : style === "form" || style === "deepObject",
    allowReserved: own(parameter, "allowReserved") === true,
  };
}

/** First entry of `content`, if the parameter is described that way. */
function contentOf(parameter: Tree): readonly [string, unknown] | undefined {
  const content = own(parameter, "content");
  return isTree(content) ? Object.entries(content)[0] : undefined;
}

function slotsOf(parameters: readonly Tree[], converter: SchemaConverter): Partial<Record<ParameterPlace, Slot>> {
  const slots: Partial<Record<ParameterPlace, Slot>> = {};
  for (const place of ["path", "query", "headers", "cookies"] as const) {
    const members = parameters.filter((parameter) => places[ownText(parameter, "in")] === place);
    if (members.length > 0) slots[place] = slotOf(members, converter);
  }
  return slots;
}

function slotOf(members: readonly Tree[], converter: SchemaConverter): Slot {
  const required = members
    .filter((each) => own(each, "required") === true || ownText(each, "in") === "path")
    .map((each) => ownText(each, "name"));
  const schema = {
    type: "object",
    properties: Object.fromEntries(members.map((each) => [ownText(each, "name"), parameterSchema(each, converter)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  return { schema, required: required.length > 0 };
}

function parameterSchema(parameter: Tree, converter: SchemaConverter): Schema {
  const content = contentOf(parameter);
  const schema = content ? contentSchema(content, converter) : converter.convert(own(parameter, "schema"));
  const notes: MutableSchema = {};
  if (ownText(parameter, "description") !== "") notes.description = ownText(parameter, "description");
  if (own(parameter, "deprecated") === true) notes.deprecated = true;
  if (Object.keys(notes).length === 0) return schema;
  return schema === true ? notes : schema === false ? { ...notes, not: {} } : { ...schema, ...notes };
}

function contentSchema([mediaType, content]: readonly [string, unknown], converter: SchemaConverter): Schema {
  return bodyKind(mediaType) === "json" ? converter.convert(own(content, "schema")) : { type: "string" };
}
