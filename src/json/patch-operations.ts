/** The shape of JSON Patch operations, checked before anything is applied. Members the RFC does not know are ignored. */
import { Failure } from "../errors/failure.ts";
import { parsePointer } from "./pointer.ts";
import { namesPrototype, requireSafeJson } from "./safety.ts";

const patchKinds = ["add", "remove", "replace", "move", "copy", "test"] as const;
export type PatchKind = (typeof patchKinds)[number];

interface Place {
  /** Position in the patch, from 0. */
  readonly index: number;
  readonly path: string;
  readonly tokens: readonly string[];
}

export type PatchOperation =
  | (Place & { readonly op: "add" | "replace" | "test"; readonly value: unknown })
  | (Place & { readonly op: "remove" })
  | (Place & { readonly op: "move"; readonly from: readonly string[] })
  | (Place & { readonly op: "copy"; readonly from: readonly string[] });

/** Paths are shown in errors up to here. */
const pathShownCharactersMax = 200;

/** @throws Failure invalid_request naming the first operation at fault. */
export function readOperations(operations: unknown, operationsMax: number): readonly PatchOperation[] {
  if (!Array.isArray(operations)) {
    throw new Failure("invalid_request", "The patch must be an array of JSON Patch operations");
  }
  if (operations.length > operationsMax) {
    throw new Failure("invalid_request", `The patch has ${operations.length} operations, more than ${operationsMax}`);
  }
  return operations.map(readOperation);
}

export function refuseOperation(
  operation: { readonly index: number; readonly op: string; readonly path: string },
  reason: string,
): never {
  const path = operation.path.toWellFormed();
  const shown = path.length > pathShownCharactersMax ? `${path.slice(0, pathShownCharactersMax)}…` : path;
  const description = `Cannot apply operation ${operation.index} (${operation.op} "${shown}"): ${reason}`;
  throw new Failure("invalid_request", description, { fields: [{ field: `patch[${operation.index}]`, description }] });
}

function readOperation(given: unknown, index: number): PatchOperation {
  if (typeof given !== "object" || given === null || Array.isArray(given)) malformed(index, "must be an object");
  const { op, path, from, value } = given as Readonly<Record<string, unknown>>;
  if (!isKind(op)) malformed(index, `needs "op": one of ${patchKinds.join(", ")}`);
  if (typeof path !== "string") malformed(index, `needs "path": a JSON Pointer`);
  const place = { index, path, tokens: tokensOf({ index, op, path }, path, "path") };
  switch (op) {
    case "remove":
      return { ...place, op };
    case "move":
    case "copy":
      if (typeof from !== "string") malformed(index, `needs "from": a JSON Pointer`);
      return { ...place, op, from: tokensOf({ index, op, path }, from, "from") };
    default:
      if (value === undefined) malformed(index, `needs "value"`);
      requireSafeJson(value, `The value of operation ${index}`);
      return { ...place, op, value };
  }
}

function tokensOf(
  operation: { index: number; op: PatchKind; path: string },
  text: string,
  member: "path" | "from",
): readonly string[] {
  const tokens = parsePointer(text);
  if (tokens === undefined) refuseOperation(operation, `"${member}" is not a JSON Pointer`);
  if (namesPrototype(tokens)) refuseOperation(operation, `"${member}" names a prototype`);
  if (!text.isWellFormed()) refuseOperation(operation, `"${member}" is not well-formed Unicode`);
  return tokens;
}

function isKind(op: unknown): op is PatchKind {
  return patchKinds.some((kind) => kind === op);
}

function malformed(index: number, reason: string): never {
  const description = `Operation ${index} of the patch ${reason}`;
  throw new Failure("invalid_request", description, { fields: [{ field: `patch[${index}]`, description }] });
}
