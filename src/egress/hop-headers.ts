/**
 * What is sent on each hop of an exchange, as pure functions. A redirect to another origin loses everything the caller set
 * (credentials travel under any name) but the few fields that say how to answer; nothing brings them back on a later hop.
 */
export type Headers = Readonly<Record<string, string>>;

/** Fields of the connection, not of the request: they are ours to set, and are dropped when a caller gives them. */
const ours = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const keptAcrossOrigins = new Set(["accept", "accept-encoding", "accept-language", "user-agent"]);

/** Names in lower case. */
export function firstHopHeaders(given: Headers): Headers {
  const kept = Object.entries(given)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ours.has(name));
  return { "user-agent": "troupe", accept: "*/*", "accept-encoding": "gzip, br, deflate", ...Object.fromEntries(kept) };
}

export function nextHopHeaders(headers: Headers, from: URL, to: URL): Headers {
  if (from.origin === to.origin) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => keptAcrossOrigins.has(name)));
}
