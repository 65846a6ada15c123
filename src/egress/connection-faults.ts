/** What went wrong below HTTP, in words for the caller. The library's own messages stay in the log: they can quote an answer. */
import { Failure } from "../errors/failure.ts";

/** The connection never came about: nothing was sent, so another address may be tried, whatever the method. */
const neverConnected = new Set([
  "ECONNREFUSED",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "EADDRNOTAVAIL",
  "EHOSTDOWN",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refused the connection",
  ETIMEDOUT: "it did not accept a connection in time",
  UND_ERR_CONNECT_TIMEOUT: "it did not accept a connection in time",
  ENETUNREACH: "there is no route to it",
  EHOSTUNREACH: "there is no route to it",
  EADDRNOTAVAIL: "there is no route to it",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  UND_ERR_SOCKET: "it closed the connection",
  UND_ERR_HEADERS_OVERFLOW: "the header of its answer is too large",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "its answer was cut short",
  UND_ERR_INVALID_ARG: "the request is malformed",
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: "the request is malformed",
};

export function connected(error: unknown): boolean {
  return !neverConnected.has(codeOf(error));
}

export function connectionFailure(error: unknown, host: string): Failure {
  const code = codeOf(error);
  const reason = reasons[code] ?? otherReason(code);
  return new Failure("upstream_failed", `Cannot reach "${host}": ${reason}`, { cause: error });
}

function otherReason(code: string): string {
  if (code.startsWith("HPE_")) return "its answer is not HTTP";
  if (/CERT|SIGNED|ISSUER|CRL/.test(code)) return `its certificate is not trusted (${code})`;
  if (/SSL|TLS|EPROTO/.test(code)) return `no secure connection could be made (${code})`;
  return code === "" ? "the exchange failed" : `the exchange failed (${code})`;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && error.code !== undefined) return String(error.code);
  // The parser of undici does not name every fault it finds.
  return error.name === "HTTPParserError" ? "HPE_UNNAMED" : "";
}
