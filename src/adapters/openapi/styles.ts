/** How values are written into paths, queries, headers and cookies (OpenAPI 3.0.4 and 3.1, after RFC 6570). Pure. */
import { Failure } from "../../errors/failure.ts";
import type { ParameterPlan } from "./plan.ts";

type Encode = (text: string) => string;

export interface FormStyle {
  readonly style: ParameterPlan["style"];
  readonly explode: boolean;
  readonly allowReserved: boolean;
}

/** Everything but RFC 3986 unreserved characters. */
function percentEncode(text: string): string {
  return encodeURIComponent(wellFormed(text)).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** allowReserved, without what would end a value or the query itself: `# & + [ ]` and `%`. */
function encodeReserved(text: string): string {
  return encodeURIComponent(wellFormed(text)).replaceAll(/%(3A|2F|3F|40|24|2C|3B|3D)/g, (escaped) =>
    decodeURIComponent(escaped),
  );
}

/** A lone surrogate has no UTF-8 form. */
function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** One value for a `{name}` of a path. */
export function pathValue(parameter: ParameterPlan, value: unknown): string {
  const { name, style, explode } = parameter;
  if (style === "content") return percentEncode(jsonOrText(value));
  const label = percentEncode(name);
  if (style === "matrix") return matrix(label, explode, value);
  const prefix = style === "label" ? "." : "";
  const separator = style === "label" && explode ? "." : ",";
  return prefix + flatten(value, explode, separator, percentEncode);
}

function matrix(name: string, explode: boolean, value: unknown): string {
  const pair = (key: string, text: string) => (text === "" ? `;${key}` : `;${key}=${text}`);
  if (Array.isArray(value) && explode)
    return items(value)
      .map((item) => pair(name, percentEncode(item)))
      .join("");
  if (isObject(value) && explode)
    return members(value)
      .map(([key, item]) => pair(percentEncode(key), percentEncode(item)))
      .join("");
  return pair(name, flatten(value, false, ",", percentEncode));
}

/** Arrays and objects joined; a primitive as it is. */
function flatten(value: unknown, explode: boolean, separator: string, encode: Encode): string {
  if (Array.isArray(value)) return items(value).map(encode).join(separator);
  if (!isObject(value)) return encode(plain(value));
  const pairs = members(value).map(([key, item]) => [encode(key), encode(item)] as const);
  return pairs.map(([key, item]) => (explode ? `${key}=${item}` : `${key}${separator}${item}`)).join(separator);
}

/** `name=value` pairs of a query or form; null and empty lists add none. */
export function formPairs(name: string, { style, explode, allowReserved }: FormStyle, value: unknown): string[] {
  const encode: Encode = allowReserved ? encodeReserved : percentEncode;
  const key = percentEncode(name);
  if (value === null || value === undefined) return [];
  if (style === "content") return [`${key}=${encode(jsonOrText(value))}`];
  if (style === "deepObject" && typeof value === "object") return deepPairs(name, value, encode);
  if (Array.isArray(value)) {
    const listed = items(value).map(encode);
    if (listed.length === 0) return [];
    return explode ? listed.map((item) => `${key}=${item}`) : [`${key}=${listed.join(delimiters[style] ?? ",")}`];
  }
  if (!isObject(value)) return [`${key}=${encode(plain(value))}`];
  const pairs = members(value).map(([member, item]) => [percentEncode(member), encode(item)] as const);
  if (pairs.length === 0) return [];
  return explode ? pairs.map((pair) => pair.join("=")) : [`${key}=${pairs.flat().join(delimiters[style] ?? ",")}`];
}

const delimiters: Readonly<Partial<Record<ParameterPlan["style"], string>>> = {
  spaceDelimited: "%20",
  pipeDelimited: "%7C",
};

/** `filter[a][b]=1`, list entries by index: OpenAPI leaves deeper levels open, and servers that read brackets read these. */
function deepPairs(prefix: string, value: object, encode: Encode): string[] {
  return Object.entries(value).flatMap(([key, item]) => {
    const path = `${prefix}[${key}]`;
    if (item === null || item === undefined) return [];
    return typeof item === "object" ? deepPairs(path, item, encode) : [`${percentEncode(path)}=${encode(plain(item))}`];
  });
}

export function headerValue(parameter: ParameterPlan, value: unknown): string {
  if (parameter.style === "content") return asciiJson(value);
  return flatten(value, parameter.explode, ",", (text) => text);
}

/** `name=value` pairs of the Cookie header. */
export function cookiePairs(parameter: ParameterPlan, value: unknown): string[] {
  return formPairs(parameter.name, { style: parameter.style, explode: parameter.explode, allowReserved: false }, value);
}

function items(list: readonly unknown[]): string[] {
  return list.filter((item) => item !== null && item !== undefined).map(plain);
}

function members(value: object): [string, string][] {
  return Object.entries(value)
    .filter(([, item]) => item !== null && item !== undefined)
    .map(([key, item]) => [key, plain(item)]);
}

/** Nested values have no form of their own in these styles, so they go as JSON. */
export function plain(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value);
}

function jsonOrText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The path with its values in place. A value may not be empty, and no segment may come out as `.` or `..`: both would reach
 * another operation than the one that was checked.
 */
export function expandPath(template: string, values: ReadonlyMap<string, string>): string {
  const expanded = template.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new Failure("invalid_request", `Path parameter "${name}" is missing`);
    return value;
  });
  const path = expanded.split("?", 1)[0]!;
  if (template.includes("{") && path.split("/").some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) {
    throw new Failure("invalid_request", 'Path values may not make a path segment "." or ".."');
  }
  return expanded;
}
