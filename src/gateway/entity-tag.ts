/** ETag, If-Match and If-None-Match (RFC 9110): rows know the bare tag, headers have it in quotes. */
import { Failure } from "../errors/failure.ts";

export function toEtag(tag: unknown): string {
  return `"${String(tag)}"`;
}

/**
 * The one tag that must match; undefined when there is no condition, or `*` (the row finds out itself what does not exist).
 * Throws Failure: etag_mismatch for weak tags, which never match strongly, and invalid_request for what is not one tag.
 */
export function fromIfMatch(header: string | undefined): string | undefined {
  if (header === undefined || header.trim() === "*") return undefined;
  const match = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/.exec(header.trim());
  if (match === null) throw new Failure("invalid_request", 'If-Match must be one entity tag in quotes, or "*"');
  if (match[1] !== undefined) throw new Failure("etag_mismatch", "A weak entity tag cannot match");
  return match[2];
}

/**
 * Whether If-None-Match says that the client has this already. Compared weakly, as caches do; what is no tag matches nothing,
 * because the whole answer is never wrong.
 */
export function isHeldAlready(header: string | undefined, tag: unknown): boolean {
  if (header === undefined) return false;
  if (header.trim() === "*") return true;
  const etag = toEtag(tag);
  for (const [, listed] of header.matchAll(listedTag)) if (listed === etag) return true;
  return false;
}

/** One member of a list of tags; a comma may also stand inside of one. */
const listedTag = /(?:^|,)\s*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")(?=\s*(?:,|$))/g;
