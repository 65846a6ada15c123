/**
 * Which Content-Type counts as JSON. Strict on purpose: whatever is not plainly one of the accepted types is refused with
 * 415, so that no odd spelling ever gets a body past validation.
 */
import { Failure } from "../errors/failure.ts";

export const jsonMediaTypes = ["application/json"] as const;

/** Throws Failure unsupported_media_type. */
export function requireMediaType(
  contentType: string | undefined,
  contentEncoding: string | undefined,
  accepted: readonly string[],
): void {
  if (contentEncoding !== undefined && contentEncoding.trim().toLowerCase() !== "identity") {
    throw new Failure("unsupported_media_type", "The body must not be compressed: Content-Encoding is not supported");
  }
  if (contentType !== undefined && accepted.includes(contentType)) return;
  const essence = contentType === undefined ? undefined : essenceOf(contentType);
  if (essence === undefined || !accepted.includes(essence)) {
    throw new Failure(
      "unsupported_media_type",
      `The Content-Type of the body must be ${accepted.map((type) => `"${type}"`).join(" or ")}`,
    );
  }
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const wellFormed = new RegExp(`^(${token}/${token})((?:[ \\t]*;[ \\t]*${token}=(?:${token}|"[^"\\\\]*"))*)$`);
const charset = /;[ \t]*charset="?([^";]*)"?/gi;

/** Type and subtype in lower case, or undefined when the value is malformed or its charset is not UTF-8. */
function essenceOf(contentType: string): string | undefined {
  const match = wellFormed.exec(contentType.trim());
  if (match?.[1] === undefined) return undefined;
  for (const [, name] of (match[2] ?? "").matchAll(charset)) {
    if (name?.trim().toLowerCase() !== "utf-8") return undefined;
  }
  return match[1].toLowerCase();
}
