/**
 * Which header a registry may ask its key to be sent in, and what a header can carry. A field that steers the connection, the
 * answer or the meaning of the request is never given away: a key in it would break the request or be used for something else.
 */
import { registrySlugCharactersMax } from "../limits.ts";

const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Visible at both ends, no control characters; above 0x7f one byte each. Anything else the HTTP client refuses too. */
const fieldValue = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

const reserved = new Set([
  "accept",
  "accept-charset",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "cookie2",
  "date",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "keep-alive",
  "origin",
  "pragma",
  "range",
  "referer",
  "set-cookie",
  "set-cookie2",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "via",
]);
const reservedFamilies = ["proxy-", "sec-", "x-forwarded-"];

/** Why a key cannot be sent under this name; undefined when it can. */
export function headerNameFault(name: string): string | undefined {
  if (name === "") return "the header name is blank";
  if (name.length > registrySlugCharactersMax)
    return `the header name is longer than ${registrySlugCharactersMax} characters`;
  if (!fieldName.test(name)) return "the header name holds characters that header names cannot have";
  const lower = name.toLowerCase();
  if (reserved.has(lower) || reservedFamilies.some((family) => lower.startsWith(family)))
    return `the header "${lower}" is reserved`;
  return undefined;
}

export function isHeaderValue(value: string): boolean {
  return fieldValue.test(value);
}
