/** Which header and cookie names and values may be sent at all. */

/** Set by the client or by `security.ts`, never by a parameter. */
const reserved = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "host",
  "content-length",
  "content-type",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "upgrade",
  "te",
  "trailer",
  "expect",
  "proxy-connection",
  "accept-encoding",
]);

export function isReservedHeader(name: string): boolean {
  return reserved.has(name.toLowerCase());
}

export function isHeaderName(name: string): boolean {
  return /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/.test(name);
}

export const isCookieName = isHeaderName;

/** Visible latin-1, spaces and tabs: no line breaks, no other control characters. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
