/**
 * The one place where credentials of a registry become headers, asked anew for every hop of every request.
 *
 * 1. Scope: only the registry's origin, and below the path of its base URL. URLs are compared parsed, so spelling does not
 *    count; a path that something behind the server could read differently (encoded slashes, backslashes, dot segments) is
 *    outside.
 * 2. Transport: https, or http to a host whose every address is exempt, judged when the connection is made: a name that also
 *    leads elsewhere is not the operator's own.
 *
 * Outside the scope a request simply goes on without credentials; inside it, a transport that would expose them ends it.
 */
import { Failure } from "../errors/failure.ts";
import type { CredentialHop } from "../ports/fetcher.ts";
import type { RegistryCredential } from "../ports/registry-reader.ts";
import { isHeaderValue } from "./header-fields.ts";
import type { PlaintextExemption } from "./plaintext-exemption.ts";

export type HopCredentials =
  | { readonly outcome: "attached"; readonly headers: Readonly<Record<string, string>> }
  /** `reason` completes "its URL …"; "" when there is nothing to attach. */
  | { readonly outcome: "anonymous"; readonly reason: string }
  | { readonly outcome: "refused"; readonly failure: Failure };

export function credentialHeaders(
  hop: CredentialHop,
  baseUrl: URL,
  credential: RegistryCredential | null,
  exemption: PlaintextExemption,
): HopCredentials {
  if (credential === null) return { outcome: "anonymous", reason: "" };
  const reason = outOfScope(hop.url, baseUrl);
  if (reason !== undefined) return { outcome: "anonymous", reason };
  if (!isSafeTransport(hop, exemption))
    return { outcome: "refused", failure: new Failure("upstream_failed", plaintextRefusal(hop.url)) };
  const [name, value] =
    credential.type === "apiKey"
      ? [credential.headerName, credential.key]
      : ["authorization", `Bearer ${credential.accessToken}`];
  if (!isHeaderValue(value)) {
    const message =
      "Cannot authenticate to the registry: the stored credential holds characters that no header can carry";
    return { outcome: "refused", failure: new Failure("upstream_failed", message) };
  }
  return { outcome: "attached", headers: { [name]: value } };
}

/** Whether nobody on the way can read what is sent on this hop. */
export function isSafeTransport({ url, address, addresses }: CredentialHop, exemption: PlaintextExemption): boolean {
  if (url.protocol === "https:") return true;
  return url.protocol === "http:" && [address, ...addresses].every((one) => exemption.covers(one));
}

export function plaintextRefusal(url: URL): string {
  return `Registry authentication requires https; credentials are not sent over plaintext http to "${url.host}"`;
}

/** Plain ones are gone once a URL is parsed; some servers also drop a parameter behind them (`..;x`). */
const dotSegment = /\/(?:\.|%2e){1,2}(?:;[^/]*)?(?:\/|$)/i;

function outOfScope(url: URL, baseUrl: URL): string | undefined {
  if (url.username !== "" || url.password !== "") return "holds a user name or password";
  if (url.origin !== baseUrl.origin) return `is not on the origin "${baseUrl.origin}"`;
  if (/%2f|%5c/i.test(url.pathname) || dotSegment.test(url.pathname))
    return "has encoded slashes, backslashes or dot segments in its path";
  const base = baseUrl.pathname.replace(/\/+$/, "");
  return url.pathname === base || url.pathname.startsWith(`${base}/`) ? undefined : `is not below "${base}/"`;
}
