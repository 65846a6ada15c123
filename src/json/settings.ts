/**
 * The rules of stored configuration and secrets (API document 4.10 to 4.12), whoever owns them:
 *
 * 1. A key the schema does not allow is refused, unless it was stored before; then it stays and is listed in `outdated`.
 * 2. Outdated keys are kept in the store and kept from everybody else: validation and adapters see the declared part only.
 * 3. Declared values are valid. What the schema requires is demanded only when `enforceRequired` is set (enabled services).
 * 4. Defaults are applied for validation and hydration and are never stored.
 * 5. A schema of type null allows everything: no checks, nothing outdated.
 *
 * Errors name paths and what the schema wants, never a value, so that one code serves secrets as well.
 */
import { Failure } from "../errors/failure.ts";
import { patchOperationsMax, settingsPathsCharactersMax, settingsWeightMax } from "../limits.ts";
import { cloneJson } from "./clone.ts";
import { fillDefaults } from "./defaults.ts";
import { applyPatch, type JsonObject } from "./patch.ts";
import { readOperations, refuseOperation } from "./patch-operations.ts";
import { formatPointer } from "./pointer.ts";
import { withoutRequired } from "./relax.ts";
import { measure } from "./safety.ts";
import { describeProblems, type Problem, problemFields, schemaProblem, validate } from "./schema.ts";
import { effortFault } from "./schema-effort.ts";
import { isSchemaObject } from "./schema-walk.ts";
import { childPlace, type Place, undeclaredPlaces } from "./undeclared.ts";

export type SettingsKind = "config" | "secrets";

export interface SettingsPatch {
  readonly kind: SettingsKind;
  readonly schema: unknown;
  readonly stored: JsonObject;
  /** The request's array of JSON Patch operations, unchecked. */
  readonly operations: unknown;
  readonly enforceRequired: boolean;
}

export interface PatchedSettings {
  /** To be stored. */
  readonly next: JsonObject;
  /** JSON Pointers to stored values the schema no longer defines. */
  readonly outdated: readonly string[];
}

/** @throws Failure invalid_request; nothing is to be stored then. */
export function patchSettings({ kind, schema, stored, operations, enforceRequired }: SettingsPatch): PatchedSettings {
  if (kind === "secrets") requireWritesOnly(operations);
  const next = applyPatch(stored, operations);
  if (measure(next, settingsWeightMax).weight > settingsWeightMax)
    throw new Failure("invalid_request", `The ${kind} would become too large`);
  requireShortPaths(kind, next);
  if (allowsAll(schema)) return { next, outdated: [] };
  requireUsable(kind, schema, next);
  requireNoNewKeys(kind, schema, stored, next);
  requireValid(
    kind,
    enforceRequired ? settingsProblems(schema, next) : validate(withoutRequired(schema), declaredPart(schema, next)),
  );
  return { next, outdated: outdatedPointers(schema, next) };
}

/** What speaks against enabling with these settings: required keys count, outdated ones do not. */
export function settingsProblems(schema: unknown, stored: JsonObject): readonly Problem[] {
  return allowsAll(schema) ? [] : validate(schema, withDefaults(schema, stored));
}

/** @throws Failure invalid_request naming the paths. */
export function requireValid(kind: SettingsKind, problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  const subject = kind === "config" ? "The config is invalid" : "The secrets are invalid";
  throw new Failure("invalid_request", `${subject}: ${describeProblems(problems)}`, {
    fields: problemFields(problems, kind),
  });
}

/** JSON Pointers to where the values really are, in document order. */
export function outdatedPointers(schema: unknown, stored: JsonObject): readonly string[] {
  return undeclared(schema, stored).map(({ tokens }) => formatPointer(tokens));
}

/** A copy without the outdated keys. */
export function declaredPart(schema: unknown, stored: JsonObject): JsonObject {
  const copy = cloneJson(stored);
  for (const { tokens } of undeclared(schema, copy)) {
    const parent = tokens.slice(0, -1).reduce<unknown>((value, token) => (value as JsonObject)[token], copy);
    delete (parent as Record<string, unknown>)[tokens.at(-1) ?? ""];
  }
  return copy;
}

/** What an adapter receives: the declared part with the schema's defaults. */
export function withDefaults(schema: unknown, stored: JsonObject): JsonObject {
  return usable(schema) ? fillDefaults(schema, declaredPart(schema, stored)) : declaredPart(schema, stored);
}

/** Pointers of the leaves: objects are descended, an array is one leaf, an empty object too. null and "" are values. */
export function presentPointers(stored: JsonObject): readonly string[] {
  return leaves(stored, []).map(formatPointer);
}

function leaves(value: unknown, tokens: readonly string[]): readonly (readonly string[])[] {
  const members = isSchemaObject(value) ? Object.entries(value) : [];
  if (members.length === 0) return tokens.length === 0 ? [] : [tokens];
  return members.flatMap(([key, member]) => leaves(member, [...tokens, key]));
}

/** Paths are listed one by one: a hundred thousand values below one long key would be gigabytes of them. */
function requireShortPaths(kind: SettingsKind, settings: JsonObject): void {
  let characters = 0;
  const pending: (readonly [value: object, path: number])[] = [[settings, 0]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [value, above] = next;
    for (const [key, member] of Object.entries(value)) {
      const path = above + key.length + 1;
      characters += path;
      if (typeof member === "object" && member !== null) pending.push([member, path]);
    }
    if (characters > settingsPathsCharactersMax)
      throw new Failure("invalid_request", `The ${kind} would have too many long paths`);
  }
}

/** test, copy and move read values: their outcome would tell what is stored. */
function requireWritesOnly(operations: unknown): void {
  for (const operation of readOperations(operations, patchOperationsMax)) {
    if (operation.op === "test" || operation.op === "copy" || operation.op === "move") {
      refuseOperation(operation, "secrets take only add, replace and remove");
    }
  }
}

function requireUsable(kind: SettingsKind, schema: unknown, value: JsonObject): void {
  const fault = schemaProblem(schema) ?? effortFault(schema, value);
  if (fault !== undefined) throw new Failure("invalid_request", `The ${kind} cannot be checked: ${fault}`);
}

function requireNoNewKeys(kind: SettingsKind, schema: unknown, stored: JsonObject, next: JsonObject): void {
  const left = new Map<string, number>();
  for (const { shape } of undeclaredKeys(schema, stored)) left.set(shape, (left.get(shape) ?? 0) + 1);
  const added = undeclaredKeys(schema, next).filter(({ shape }) => {
    const count = left.get(shape) ?? 0;
    left.set(shape, count - 1);
    return count <= 0;
  });
  if (added.length === 0) return;
  const problems = added
    .slice(0, 20)
    .map(({ tokens }) => ({ path: formatPointer(tokens).toWellFormed(), message: "is not allowed by the schema" }));
  throw new Failure(
    "invalid_request",
    `The ${kind} schema does not allow ${problems.map(({ path }) => `"${path}"`).join(", ")}`,
    {
      fields: problemFields(problems, kind),
    },
  );
}

/** The outdated keys and all keys inside them: under an outdated key nothing new may grow either. */
function undeclaredKeys(schema: unknown, value: JsonObject): readonly Place[] {
  return undeclared(schema, value).flatMap((place) => {
    const member = place.tokens.reduce<unknown>((at, token) => (at as JsonObject)[token], value);
    return [place, ...keysWithin(member, place)];
  });
}

function keysWithin(value: unknown, place: Place): readonly Place[] {
  if (typeof value !== "object" || value === null) return [];
  const inArray = Array.isArray(value);
  return Object.entries(value).flatMap(([key, member]) => {
    const child = childPlace(place, key, inArray);
    return inArray ? keysWithin(member, child) : [child, ...keysWithin(member, child)];
  });
}

function undeclared(schema: unknown, value: JsonObject): readonly Place[] {
  return usable(schema) && effortFault(schema, value) === undefined ? undeclaredPlaces(schema, value) : [];
}

function usable(schema: unknown): boolean {
  return !allowsAll(schema) && schemaProblem(schema) === undefined;
}

function allowsAll(schema: unknown): boolean {
  if (!isSchemaObject(schema)) return schema === true;
  const types = [schema.type].flat();
  return Object.keys(schema).length === 0 || (types.length === 1 && types[0] === "null");
}
