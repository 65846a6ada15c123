/** What a media type means for bodies and answers. */
export type BodyKind = "json" | "form" | "multipart" | "text" | "binary";

/** Preference among several, best first. */
const preference: readonly BodyKind[] = ["json", "form", "multipart", "text", "binary"];

export function essence(mediaType: string): string {
  return mediaType.split(";", 1)[0]!.trim().toLowerCase();
}

export function bodyKind(mediaType: string): BodyKind {
  const type = essence(mediaType);
  if (/^(application|text)\/json5?$/.test(type) || type.endsWith("+json") || type === "*/*" || type === "application/*")
    return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
  if (type.startsWith("multipart/")) return "multipart";
  return isTextual(type) ? "text" : "binary";
}

/** The media type to put on the wire: a range stands for its most ordinary member. */
export function concrete(mediaType: string): string {
  const type = essence(mediaType);
  if (type === "*/*" || type === "application/*") return "application/json";
  if (type === "text/*") return "text/plain";
  return type.includes("*") ? "application/octet-stream" : mediaType;
}

/** Stable: equals stay in document order. Plain application/json goes before other JSON. */
export function byPreference(mediaTypes: readonly string[]): string[] {
  const rank = (mediaType: string) =>
    essence(mediaType) === "application/json" ? -1 : preference.indexOf(bodyKind(mediaType));
  return [...mediaTypes].sort((left, right) => rank(left) - rank(right));
}

/** `type/subtype` with optional parameters, no line breaks. */
export function isMediaType(text: string): boolean {
  return /^[A-Za-z0-9!#$&^_.+*-]+\/[A-Za-z0-9!#$&^_.+*-]+( *;[\t\x20-\x7e]*)?$/.test(text);
}

const textual = new Set([
  "application/xml",
  "application/javascript",
  "application/ecmascript",
  "application/x-www-form-urlencoded",
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/yaml",
  "application/x-yaml",
  "application/graphql",
  "application/toml",
  "application/sql",
]);

function isTextual(type: string): boolean {
  return type.startsWith("text/") || type.endsWith("+xml") || type.endsWith("+yaml") || textual.has(type);
}
