/**
 * RFC 6902 JSON Patch on documents of ours. fast-json-patch makes the changes; what it lets through is refused here first.
 *
 * 1. The given document and operations are never changed: work happens on a deep copy, and nothing is aliased.
 * 2. All or nothing: the first operation that fails rejects the patch.
 * 3. Removing a path that does not exist, at that moment in the sequence, is ignored (API document 4.10).
 * 4. Pointers and array indices follow RFC 6901 exactly; no path, from or value can reach a prototype.
 * 5. An error names index, kind and path of the operation, never a value: secrets are patched with the same code.
 */
import jsonPatch from "fast-json-patch";
import { Failure } from "../errors/failure.ts";
import { jsonDepthMax, patchCopiedWeightMax, patchOperationsMax } from "../limits.ts";
import { cloneJson } from "./clone.ts";
import { type PatchOperation, readOperations, refuseOperation } from "./patch-operations.ts";
import { arrayIndex, formatPointer } from "./pointer.ts";
import { measure, requireSafeJson } from "./safety.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The patched copy of `document`.
 * @throws Failure invalid_request when an operation is malformed or fails, or when the result is no object or nests too deep.
 */
export function applyPatch(document: JsonObject, operations: unknown): JsonObject {
  const result = applyOperations(document, operations);
  if (typeof result !== "object" || result === null || Array.isArray(result)) {
    throw new Failure("invalid_request", "The patch would leave something that is not a JSON object");
  }
  return result as JsonObject;
}

/** The same on any JSON value, without the rule that the result is an object. */
export function applyOperations(document: unknown, operations: unknown): unknown {
  const patch = readOperations(operations, patchOperationsMax);
  const work: Work = { document: cloneJson(document), copied: 0 };
  for (const operation of patch) applyOne(work, operation);
  // Moves can nest a document, or build a prototype key out of two harmless values.
  requireSafeJson(work.document, "The patched document");
  return work.document;
}

interface Work {
  document: unknown;
  /** Weight written by copies so far: bounds both memory and time. */
  copied: number;
}

function applyOne(work: Work, operation: PatchOperation): void {
  const { tokens } = operation;
  switch (operation.op) {
    case "add":
      add(work, operation, cloneJson(operation.value));
      break;
    case "remove":
      if (valueAt(work, operation, tokens).found) remove(work, operation, tokens);
      break;
    case "replace":
      requireValue(work, operation, tokens, "the path does not exist");
      run(work, operation, { op: "replace", path: operation.path, value: cloneJson(operation.value) });
      break;
    case "test":
      requireValue(work, operation, tokens, "the path does not exist");
      run(work, operation, { op: "test", path: operation.path, value: operation.value });
      break;
    case "copy":
      copy(work, operation, requireValue(work, operation, operation.from, `"from" does not exist`));
      break;
    case "move":
      move(work, operation);
      break;
  }
}

function move(work: Work, operation: Extract<PatchOperation, { op: "move" }>): void {
  const { from, tokens } = operation;
  const value = requireValue(work, operation, from, `"from" does not exist`);
  const within = from.every((token, at) => token === tokens[at]);
  if (within && from.length === tokens.length) return;
  if (within) refuseOperation(operation, "a value cannot move into itself");
  // As two steps, so that an index into the same array is judged after the removal (RFC 6902 section 4.4).
  remove(work, operation, from);
  add(work, operation, value);
}

function copy(work: Work, operation: PatchOperation, value: unknown): void {
  const { weight, depth } = measure(value, patchCopiedWeightMax - work.copied);
  work.copied += weight;
  if (work.copied > patchCopiedWeightMax) refuseOperation(operation, "the patch copies too much");
  if (operation.tokens.length + depth > jsonDepthMax) refuseOperation(operation, "the document would nest too deep");
  add(work, operation, cloneJson(value));
}

function add(work: Work, operation: PatchOperation, value: unknown): void {
  const { tokens } = operation;
  if (tokens.length > 0) {
    const parent = valueAt(work, operation, tokens.slice(0, -1));
    if (!parent.found || typeof parent.value !== "object" || parent.value === null) {
      refuseOperation(operation, "the parent of the path does not exist");
    }
    if (Array.isArray(parent.value)) requirePlace(operation, parent.value, tokens.at(-1) ?? "");
  }
  run(work, operation, { op: "add", path: operation.path, value });
}

function requirePlace(operation: PatchOperation, array: readonly unknown[], token: string): void {
  if (token === "-") return;
  const index = arrayIndex(token);
  if (index === undefined) refuseOperation(operation, "the path has no valid array index");
  if (index > array.length) refuseOperation(operation, "the array index is beyond the end");
}

function remove(work: Work, operation: PatchOperation, tokens: readonly string[]): void {
  if (tokens.length === 0) work.document = null;
  else run(work, operation, { op: "remove", path: formatPointer(tokens) });
}

type LibraryOperation = Parameters<typeof jsonPatch.applyOperation>[1];

/** The library checks again (its `validate` mode); whatever it throws is a failing operation. */
function run(work: Work, operation: PatchOperation, step: LibraryOperation): void {
  try {
    work.document = jsonPatch.applyOperation(work.document, step, true, true, true).newDocument;
  } catch {
    refuseOperation(operation, operation.op === "test" ? "the stored value is another" : "it cannot be applied");
  }
}

function requireValue(work: Work, operation: PatchOperation, tokens: readonly string[], otherwise: string): unknown {
  const place = valueAt(work, operation, tokens);
  if (!place.found) refuseOperation(operation, otherwise);
  return place.value;
}

/** Own properties only. `01` on an array is a mistake, not an absent element. */
function valueAt(work: Work, operation: PatchOperation, tokens: readonly string[]): { found: boolean; value: unknown } {
  let value = work.document;
  for (const token of tokens) {
    if (typeof value !== "object" || value === null) return { found: false, value: undefined };
    if (Array.isArray(value)) {
      if (/^0[0-9]+$/.test(token)) refuseOperation(operation, "the path has no valid array index");
      const index = arrayIndex(token);
      if (index === undefined || index >= value.length) return { found: false, value: undefined };
      value = value[index];
    } else {
      if (!Object.hasOwn(value, token)) return { found: false, value: undefined };
      value = (value as JsonObject)[token];
    }
  }
  return { found: true, value };
}
