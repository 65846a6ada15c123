/** A field at fault as the caller wrote it: the server names fields as the proto files do (`timeout_ms`), requests here are in camelCase. */
import type { DescMessage } from "@bufbuild/protobuf";

/** What is no field of the request (a key inside a Struct, say) keeps its name. */
export function localPath(path: string, request: DescMessage | undefined): string {
  const [, name = "", index = "", rest] = /^([^.[]*)(\[[0-9]+\])?(?:\.(.*))?$/s.exec(path) ?? [];
  const field = request?.fields.find((known) => known.name === name);
  if (field === undefined) return path;
  const place = field.localName + index;
  return rest === undefined ? place : `${place}.${localPath(rest, field.message)}`;
}
