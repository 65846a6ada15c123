/**
 * Text to a tree that the rest may walk without fear: plain JSON values, no `__proto__` keys, bounded depth and size with every
 * YAML alias written out, and OpenAPI 3 whatever it was before. Nothing here touches the network.
 */
import { parse } from "yaml";
import { Failure } from "../../errors/failure.ts";
import { documentBytesMax, documentCharactersMax, documentDepthMax, documentValuesMax } from "../../limits.ts";

export type Tree = { [key: string]: unknown };

export interface OpenApiDocument {
  readonly tree: Tree;
  /** Schema dialect: 3.0 has its own, later versions use JSON Schema 2020-12. */
  readonly dialect: "3.0" | "3.1";
}

/** Broken JSON is tried as YAML only below this: YAML is slow, and its message about broken JSON is the worse one. */
const brokenJsonAsYamlMax = 1024 * 1024;

export async function readDocument(text: string): Promise<OpenApiDocument> {
  if (text.length > documentBytesMax || Buffer.byteLength(text) > documentBytesMax) {
    throw unusable(`it is larger than ${documentBytesMax} bytes`);
  }
  const value = parseText(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  if (!isTree(value)) throw unusable("it is not a JSON or YAML object");
  confine(value);
  return toOpenApi3(value);
}

export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Own property or undefined: foreign keys may be called `constructor`. */
export function own(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? (value as Tree)[key] : undefined;
}

export function ownText(value: unknown, key: string): string {
  const text = own(value, key);
  return typeof text === "string" ? text : typeof text === "number" || typeof text === "boolean" ? String(text) : "";
}

function parseText(text: string): unknown {
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch (error) {
      if (text.length > brokenJsonAsYamlMax) throw unusable(`it is not valid JSON: ${reason(error)}`);
    }
  }
  try {
    // Repeated keys: the last wins, as in JSON; the library's own check is quadratic. Aliases are bounded by `confine`.
    return parse(text, {
      uniqueKeys: false,
      merge: true,
      maxAliasCount: -1,
      prettyErrors: false,
      logLevel: "error",
      version: "1.2",
    });
  } catch (error) {
    throw unusable(
      `it is neither valid JSON nor valid YAML: ${isExhausted(error) ? "nested too deeply" : reason(error)}`,
    );
  }
}

/** Walks the tree as it would be written out, so shared and cyclic aliases count each time they are used. */
function confine(root: Tree): void {
  let values = 0;
  let characters = 0;
  const stack: { value: object; depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, depth } = next;
    if (depth > documentDepthMax) throw unusable(`it is nested deeper than ${documentDepthMax} levels`);
    if (Object.hasOwn(value, "__proto__")) Reflect.deleteProperty(value, "__proto__");
    for (const key in value) {
      const child = (value as Tree)[key];
      values += 1;
      characters += key.length;
      if (typeof child === "string") characters += child.length;
      else if (typeof child === "object" && child !== null) stack.push({ value: child, depth: depth + 1 });
      else if (typeof child === "bigint" || child === undefined) (value as Tree)[key] = null;
    }
    if (values > documentValuesMax) throw unusable(`it holds more than ${documentValuesMax} values`);
    if (characters > documentCharactersMax)
      throw unusable(`it holds more than ${documentCharactersMax} characters once aliases are written out`);
  }
}

async function toOpenApi3(tree: Tree): Promise<OpenApiDocument> {
  const openapi = ownText(tree, "openapi");
  if (/^3\.0(\.|$|-)/.test(openapi) || openapi === "3") return { tree, dialect: "3.0" };
  if (/^3\.[12](\.|$|-)/.test(openapi)) return { tree, dialect: "3.1" };
  if (/^2(\.|$)/.test(ownText(tree, "swagger"))) return { tree: await upgradeFrom2(tree), dialect: "3.0" };
  if (openapi !== "") throw unusable(`its version "${openapi.slice(0, 40)}" is not 3.0, 3.1 or 3.2`);
  throw unusable('it has no field "openapi"');
}

async function upgradeFrom2(tree: Tree): Promise<Tree> {
  const schemes = own(tree, "schemes");
  // The first server is the one used, so https goes first.
  if (Array.isArray(schemes)) tree.schemes = schemes.includes("https") ? ["https"] : schemes;
  tree.swagger = "2.0";
  const { upgradeFromTwoToThree } = await import("@scalar/openapi-parser");
  try {
    const upgraded: unknown = upgradeFromTwoToThree(tree);
    if (isTree(upgraded)) return upgraded;
  } catch (error) {
    throw unusable(`it is Swagger 2.0 and cannot be read as OpenAPI 3: ${reason(error)}`);
  }
  throw unusable("it is Swagger 2.0 and cannot be read as OpenAPI 3");
}

/** The YAML parser reports an exhausted stack as an error of its own. */
function isExhausted(error: unknown): boolean {
  return error instanceof RangeError || reason(error).includes("call stack");
}

export function unusable(why: string): Failure {
  return new Failure("invalid_request", `Cannot use the document: ${why}`);
}

function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n")[0]!.slice(0, 200);
}
