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
 * All walks keep their own stack, so depth can never overflow the engine's.
 */
import { Failure } from "../errors/failure.ts";
import { jsonDepthMax } from "../limits.ts";
import { formatPointer } from "./pointer.ts";

interface Visit {
  readonly value: object;
  readonly key: string;
  readonly parent: Visit | undefined;
  readonly depth: number;
}

/**
 * @param what names the value in the error, such as `The body` or `Field "envConfig"`.
 * @throws Failure invalid_request naming the place as a JSON Pointer.
 */
export function requireSafeJson(value: unknown, what: string): void {
  const fault = scalarFault(value);
  if (fault !== undefined) refuse(what, "", fault);
  if (typeof value !== "object" || value === null) return;
  const pending: Visit[] = [{ value, key: "", parent: undefined, depth: 1 }];
  for (let visit = pending.pop(); visit !== undefined; visit = pending.pop()) {
    if (visit.depth > jsonDepthMax) throw new Failure("invalid_request", tooDeep(what));
    const forbidden = prototypeKey(visit.value);
    if (forbidden !== undefined) {
      throw new Failure("invalid_request", `${what} has the forbidden key "${forbidden}" in "${pointerTo(visit)}"`);
    }
    for (const [key, member] of Object.entries(visit.value)) {
      if (!key.isWellFormed()) refuse(what, pointerTo(visit), malformedText);
      const fault = scalarFault(member);
      if (fault !== undefined) refuse(what, pointerTo(visit) + formatPointer([key]), fault);
      if (typeof member === "object" && member !== null) {
        pending.push({ value: member, key, parent: visit, depth: visit.depth + 1 });
      }
    }
  }
}

export function tooDeep(what: string): string {
  return `${what} nests deeper than ${jsonDepthMax} levels`;
}

/** The key of rule 2 that `container` has itself, if any. */
export function prototypeKey(container: object): "__proto__" | "constructor" | undefined {
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

/** What a value weighs: characters of its strings and keys plus one for each node, and its depth (a scalar has 0). */
export function measure(value: unknown): { readonly weight: number; readonly depth: number } {
  let weight = 0;
  let deepest = 0;
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    weight += typeof next.value === "string" ? next.value.length + 1 : 1;
    if (typeof next.value !== "object" || next.value === null) continue;
    const depth = next.depth + 1;
    deepest = Math.max(deepest, depth);
    for (const [key, member] of Object.entries(next.value)) {
      weight += Array.isArray(next.value) ? 0 : key.length;
      pending.push({ value: member, depth });
    }
  }
  return { weight, depth: deepest };
}

const malformedText = "text that is not well-formed Unicode";

function scalarFault(value: unknown): string | undefined {
  if (typeof value === "string" && !value.isWellFormed()) return malformedText;
  if (typeof value === "number" && !Number.isFinite(value)) return "a number that is out of range";
  return undefined;
}

function refuse(what: string, pointer: string, fault: string): never {
  throw new Failure("invalid_request", `${what} holds ${fault}${pointer === "" ? "" : ` in "${pointer}"`}`);
}

function pointerTo(visit: Visit): string {
  const tokens: string[] = [];
  for (let at: Visit | undefined = visit; at?.parent !== undefined; at = at.parent) tokens.unshift(at.key);
  return formatPointer(tokens).toWellFormed();
}
