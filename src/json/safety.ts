/**
 * The one rule for JSON that comes from outside, whichever face it came through (REST text or protobuf Struct):
 *
 * 1. no more than `jsonDepthMax` containers inside each other;
 * 2. no key `__proto__`, and no key `constructor` whose value has a key `prototype`, at any depth: either could reach a
 *    shared prototype through a later merge;
 * 3. every string and key is well-formed Unicode: a lone surrogate cannot be written as UTF-8, so it would come back from
 *    the store as another string. NUL is ordinary text; identifiers are held to their own patterns;
 * 4. every number is finite: `1e999` is JSON, but would come back from the store as null.
 *
 * The walk stops at the depth bound, so that no value can overflow the stack.
 */
import { Failure } from "../errors/failure.ts";
import { jsonDepthMax } from "../limits.ts";
import { formatPointer } from "./pointer.ts";

/**
 * @param what names the value in the error, such as `The body` or `Field "envConfig"`.
 * @throws Failure invalid_request naming the place as a JSON Pointer.
 */
export function requireSafeJson(value: unknown, what: string): void {
  walk(value, what, []);
}

/** `path` holds the keys that lead here; its length is the number of containers around `value`. */
function walk(value: unknown, what: string, path: string[]): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) refuse(what, path, malformedText);
  } else if (typeof value === "number") {
    if (!Number.isFinite(value)) refuse(what, path, "a number that is out of range");
  } else if (typeof value === "object" && value !== null) {
    if (path.length >= jsonDepthMax) throw new Failure("invalid_request", tooDeep(what));
    if (Array.isArray(value)) walkItems(value, what, path);
    else walkMembers(value as Readonly<Record<string, unknown>>, what, path);
  }
}

function walkItems(items: readonly unknown[], what: string, path: string[]): void {
  for (let index = 0; index < items.length; index += 1) {
    path.push(String(index));
    walk(items[index], what, path);
    path.pop();
  }
}

function walkMembers(members: Readonly<Record<string, unknown>>, what: string, path: string[]): void {
  const forbidden = prototypeKey(members);
  if (forbidden !== undefined) {
    throw new Failure("invalid_request", `${what} has the forbidden key "${forbidden}" in "${shown(path)}"`);
  }
  for (const key of Object.keys(members)) {
    if (!key.isWellFormed()) refuse(what, path, malformedText);
    path.push(key);
    walk(members[key], what, path);
    path.pop();
  }
}

export function tooDeep(what: string): string {
  return `${what} nests deeper than ${jsonDepthMax} levels`;
}

/** The key of rule 2 that `container` has itself, if any. */
function prototypeKey(container: object): "__proto__" | "constructor" | undefined {
  if (Object.hasOwn(container, "__proto__")) return "__proto__";
  if (!Object.hasOwn(container, "constructor")) return undefined;
  const held = (container as Readonly<Record<string, unknown>>).constructor as unknown;
  const inside = typeof held === "object" && held !== null && Object.hasOwn(held, "prototype");
  return inside ? "constructor" : undefined;
}

/** Rule 2 for the tokens of a pointer: the place it names could be a prototype. */
export function namesPrototype(tokens: readonly string[]): boolean {
  return tokens.some(
    (token, at) => token === "__proto__" || (token === "constructor" && tokens[at + 1] === "prototype"),
  );
}

/**
 * What a value weighs: characters of its strings and keys plus one for each node, and its depth (a scalar has 0). The walk ends once the
 * weight is past `weightMax`; what it says then is a part of the whole.
 */
export function measure(
  value: unknown,
  weightMax = Number.POSITIVE_INFINITY,
): { readonly weight: number; readonly depth: number } {
  let weight = 0;
  let deepest = 0;
  // Two lists in step: containers that are still to be looked into, and how many are around each.
  const pending: object[] = [];
  const depths: number[] = [];
  const meet = (met: unknown, depth: number): void => {
    weight += typeof met === "string" ? met.length + 1 : 1;
    if (typeof met !== "object" || met === null) return;
    if (depth >= deepest) deepest = depth + 1;
    if (Array.isArray(met) && met.length === 0) return;
    pending.push(met);
    depths.push(depth);
  };
  meet(value, 0);
  for (let next = pending.pop(); next !== undefined && weight <= weightMax; next = pending.pop()) {
    const depth = (depths.pop() ?? 0) + 1;
    if (Array.isArray(next)) {
      for (let at = 0; at < next.length && weight <= weightMax; at += 1) meet(next[at], depth);
      continue;
    }
    for (const key of Object.keys(next)) {
      weight += key.length;
      meet((next as Readonly<Record<string, unknown>>)[key], depth);
      if (weight > weightMax) break;
    }
  }
  return { weight, depth: deepest };
}

const malformedText = "text that is not well-formed Unicode";

function refuse(what: string, path: readonly string[], fault: string): never {
  throw new Failure("invalid_request", `${what} holds ${fault}${path.length === 0 ? "" : ` in "${shown(path)}"`}`);
}

function shown(path: readonly string[]): string {
  return formatPointer(path).toWellFormed();
}
