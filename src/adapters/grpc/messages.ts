/** ProtoJSON to bytes and back, by descriptors made at run time. Runs in the descriptor worker: both sides are foreign. */
import {
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { Failure } from "../../errors/failure.ts";
import { toolAnswerBytesMax } from "../../limits.ts";
import { openAny } from "./any-values.ts";
import { needsWrapping } from "./message-schema.ts";
import { wrappedParameter } from "./plan.ts";
import { isExhaustedStack, shortened } from "./unusable.ts";

export interface Method {
  readonly registry: FileRegistry;
  readonly method: DescMethod;
  /** Opens error texts. */
  readonly toolId: string;
}

/** Bytes of the request. Parameters have passed the tool's input schema. @throws Failure invalid_request naming the field. */
export function encodeRequest({ registry, method, toolId }: Method, parameters: unknown): Uint8Array {
  const given = (parameters ?? {}) as Readonly<Record<string, JsonValue>>;
  const json = needsWrapping(method.input) ? (given[wrappedParameter] ?? null) : given;
  try {
    return toBinary(method.input, fromJson(method.input, json, { registry }));
  } catch (error) {
    throw unfit(error, toolId);
  }
}

function unfit(error: unknown, toolId: string): unknown {
  if (!(error instanceof Error)) return error;
  // An exhausted stack says nothing about itself that would help.
  const reason = isExhaustedStack(error) ? "they are nested too deeply" : shortened(error.message);
  const cause = error.cause;
  const fields = isFieldError(cause) ? [{ field: nameOf(cause.field()), description: shortened(cause.message) }] : [];
  return new Failure("invalid_request", `Parameters of tool "${toolId}" do not fit: ${reason}`, { fields });
}

function nameOf(field: { readonly name: string; readonly jsonName?: string }): string {
  return field.jsonName ?? field.name;
}

/** JSON text of a list with one value for each message. @throws Failure upstream_failed. */
export function decodeAnswers({ registry, method, toolId }: Method, messages: readonly Uint8Array[]): string {
  const { output } = method;
  const parts: string[] = [];
  let characters = 0;
  for (const bytes of messages) {
    try {
      const message = fromBinary(output, bytes, { readUnknownFields: hasExtensions(registry) });
      const types = openAny(registry, output, message);
      parts.push(JSON.stringify(toJson(output, message, { registry: types, alwaysEmitImplicit: true })));
    } catch (error) {
      throw unreadable(error, toolId, output.typeName);
    }
    characters += parts.at(-1)!.length;
    if (characters > toolAnswerBytesMax) {
      throw new Failure(
        "upstream_failed",
        `The answer of tool "${toolId}" is larger than ${toolAnswerBytesMax} characters of JSON`,
      );
    }
  }
  return `[${parts.join(",")}]`;
}

/** Unknown fields are kept only for extensions: a target may fill an answer with nothing else. */
function hasExtensions(registry: FileRegistry): boolean {
  for (const type of registry) if (type.kind === "extension") return true;
  return false;
}

function unreadable(error: unknown, toolId: string, typeName: string): unknown {
  if (!(error instanceof Error)) return error;
  const reason = isExhaustedStack(error) ? "it is nested too deeply" : shortened(error.message);
  return new Failure("upstream_failed", `The answer of tool "${toolId}" is no readable "${typeName}": ${reason}`);
}
