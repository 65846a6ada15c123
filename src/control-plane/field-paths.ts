/**
 * Fields at fault in the words of the proto files. Rows name them as the REST face does (`timeoutMs`, `kinds.0`); google.rpc.BadRequest
 * promises paths of protobuf fields (`timeout_ms`, `kinds[0]`). What is no field of the request (a key inside a Struct, the configuration
 * that a patch would leave) keeps its name.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Failure } from "../errors/failure.ts";

/** `failure` itself where nothing is to be said otherwise. */
export function withProtoPaths(failure: Failure, request: DescMessage): Failure {
  const { kind, message, details } = failure;
  if (details.fields === undefined) return failure;
  const fields = details.fields.map((fault) => ({ ...fault, field: protoPath(fault.field, request) }));
  return new Failure(kind, message, { ...details, fields });
}

export function protoPath(path: string, request: DescMessage): string {
  const [first = "", ...rest] = path.split(".");
  const outer = fieldOf(request, first) === undefined ? holderOf(request, first) : undefined;
  if (outer !== undefined) return `${outer.name}.${inside(outer.message, [first, ...rest])}`;
  return inside(request, [first, ...rest]);
}

function inside(message: DescMessage | undefined, names: readonly string[]): string {
  const [first = "", ...rest] = names;
  const field = message && fieldOf(message, first);
  if (field === undefined) return names.join(".");
  const index = /^[^[]*(.*)$/.exec(first)?.[1] ?? "";
  const isItem = field.fieldKind === "list" && index === "" && /^[0-9]+$/.test(rest[0] ?? "");
  const place = field.name + (isItem ? `[${rest[0]}]` : index);
  const deeper = isItem ? rest.slice(1) : rest;
  return deeper.length === 0 ? place : `${place}.${inside(field.message, deeper)}`;
}

/** Of `patch[0]`, the field `patch`. */
function fieldOf(message: DescMessage, name: string): DescField | undefined {
  const bare = name.replace(/\[.*$/, "");
  return message.fields.find(({ jsonName }) => jsonName === bare);
}

/** Rows are flat where REST is: what they name may be a field of one of our messages in the request (`auth.type` of SetRegistryAuth). */
function holderOf(request: DescMessage, name: string): DescField | undefined {
  return request.fields.find(
    ({ fieldKind, message }) =>
      fieldKind === "message" && message?.file.proto.package === request.file.proto.package && fieldOf(message, name),
  );
}
