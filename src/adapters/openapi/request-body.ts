/** A body value to bytes or text of its media type. */
import { randomUUID } from "node:crypto";
import { Failure } from "../../errors/failure.ts";
import { bodyKind, isMediaType } from "./media-types.ts";
import type { BodyContent, PropertyEncoding } from "./plan.ts";
import { isTree, type Tree } from "./read-document.ts";
import { formPairs, plain } from "./styles.ts";

export interface EncodedBody {
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

/** Throws Failure invalid_request when the value cannot be sent as this type. */
export function encodeBody(content: BodyContent, value: unknown): EncodedBody {
  const { mediaType } = content;
  switch (bodyKind(mediaType)) {
    case "json":
      return { contentType: mediaType, body: JSON.stringify(value) };
    case "form":
      return { contentType: mediaType, body: encodeForm(content, object(mediaType, value)) };
    case "multipart":
      return encodeMultipart(content, object(mediaType, value));
    case "text":
      if (typeof value !== "string") throw unfit(mediaType, "must be text");
      return { contentType: mediaType, body: value };
    case "binary":
      return encodeBinary(mediaType, value);
  }
}

function encodeForm({ encoding }: BodyContent, value: Tree): string {
  return Object.entries(value)
    .flatMap(([name, property]) => formPairs(name, formStyle(encoding, name, property), property))
    .join("&");
}

const formDefault = { style: "form", explode: true, allowReserved: false } as const;

function formStyle(encodings: BodyContent["encoding"], name: string, property: unknown) {
  const encoding = encodingOf(encodings, name);
  if (encoding?.style)
    return { style: encoding.style, explode: encoding.explode, allowReserved: encoding.allowReserved };
  // Without a style an object is one value of its own content type, JSON unless the document says otherwise.
  return isTree(property) ? { ...formDefault, style: "content" as const } : formDefault;
}

function encodeBinary(mediaType: string, value: unknown): EncodedBody {
  if (!isTree(value) || typeof value.base64 !== "string") throw unfit(mediaType, 'must be {"base64": "…"}');
  const chosen = value.mediaType;
  if (chosen !== undefined && (typeof chosen !== "string" || !isMediaType(chosen)))
    throw unfit(mediaType, 'has a "mediaType" that is none');
  return { contentType: typeof chosen === "string" ? chosen : mediaType, body: bytes(mediaType, value.base64) };
}

function encodeMultipart({ mediaType, encoding }: BodyContent, value: Tree): EncodedBody {
  const boundary = `part-${randomUUID()}`;
  const chunks: Buffer[] = [];
  for (const [name, property] of Object.entries(value)) {
    for (const item of Array.isArray(property) ? property : [property]) {
      if (item === null || item === undefined) continue;
      const part = encodePart(mediaType, encodingOf(encoding, name), item);
      chunks.push(
        Buffer.from(`--${boundary}\r\n${partHeaders(mediaType, name, part)}\r\n\r\n`),
        part.body,
        Buffer.from("\r\n"),
      );
    }
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return { contentType: `${mediaType.split(";", 1)[0]}; boundary=${boundary}`, body: Buffer.concat(chunks) };
}

interface Part {
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

function encodePart(mediaType: string, encoding: PropertyEncoding | undefined, item: unknown): Part {
  const declared = encoding?.contentType ?? undefined;
  if (isFile(item)) {
    const chosen = item.mediaType ?? (declared?.includes("*") ? undefined : declared) ?? "application/octet-stream";
    if (!isMediaType(chosen)) throw unfit(mediaType, `holds a file whose media type "${chosen.slice(0, 80)}" is none`);
    return { filename: item.filename ?? "file", contentType: chosen, body: bytes(mediaType, item.base64) };
  }
  const contentType = declared ?? (typeof item === "object" ? "application/json" : undefined);
  return { filename: undefined, contentType, body: Buffer.from(plain(item)) };
}

function isFile(item: unknown): item is { filename?: string; mediaType?: string; base64: string } {
  return (
    isTree(item) &&
    typeof item.base64 === "string" &&
    Object.keys(item).every(
      (key) => (key === "filename" || key === "mediaType" || key === "base64") && typeof item[key] === "string",
    )
  );
}

function partHeaders(mediaType: string, name: string, part: Part): string {
  const disposition = mediaType.startsWith("multipart/form-data") ? "form-data" : "attachment";
  const filename = part.filename === undefined ? "" : `; filename="${quoted(part.filename)}"`;
  const type = part.contentType === undefined ? "" : `\r\nContent-Type: ${part.contentType}`;
  return `Content-Disposition: ${disposition}; name="${quoted(name)}"${filename}${type}`;
}

/** As browsers do it: what would end the quotes or the line is percent-encoded. */
function quoted(text: string): string {
  return text.toWellFormed().replaceAll(/[\r\n"]/g, (character) => encodeURIComponent(character));
}

function bytes(mediaType: string, base64: string): Buffer {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) throw unfit(mediaType, 'has a "base64" that is not base64');
  return Buffer.from(base64, "base64");
}

function encodingOf(encodings: BodyContent["encoding"], name: string): PropertyEncoding | undefined {
  return Object.hasOwn(encodings, name) ? encodings[name] : undefined;
}

function object(mediaType: string, value: unknown): Tree {
  if (!isTree(value)) throw unfit(mediaType, "must be an object");
  return value;
}

function unfit(mediaType: string, why: string): Failure {
  return new Failure("invalid_request", `Parameters do not fit: /body sent as "${mediaType}" ${why}`);
}
