/**
 * The client-credentials exchange (API document 5.2, token lifecycle 3 to 6). The request carries the client's secret, so it
 * goes to the endpoint itself or nowhere: no redirect is followed, and the transport is judged by the address of the
 * connection before a byte is sent. Nothing the endpoint says is repeated: some repeat the secret in their errors.
 */
import { Failure } from "../errors/failure.ts";
import {
  credentialCharactersMax,
  registryExchangeMs,
  tokenAnswerBytesMax,
  tokenLifetimeDefaultMs,
  tokenLifetimeMaxMs,
} from "../limits.ts";
import type { CredentialedFetcher } from "../ports/fetcher.ts";
import type { IssuedToken, TokenRequest } from "../ports/registry-reader.ts";
import { isSafeTransport, plaintextRefusal } from "./credential-headers.ts";
import { type Members, type Refuse, readObject, refuseFor } from "./foreign-json.ts";
import { isHeaderValue } from "./header-fields.ts";
import type { PlaintextExemption } from "./plaintext-exemption.ts";
import { asUpstream } from "./upstream-failure.ts";

/** @throws Failure refused (plaintext), upstream_failed, cancelled. */
export async function exchangeToken(
  egress: CredentialedFetcher,
  exemption: PlaintextExemption,
  request: TokenRequest,
  signal: AbortSignal,
): Promise<IssuedToken> {
  const answer = await asUpstream(
    egress.fetchAs(
      {
        method: "POST",
        url: request.tokenEndpoint,
        headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
        body: formOf(request),
        redirectsMax: 0,
        bodyBytesMax: tokenAnswerBytesMax,
        timeoutMs: registryExchangeMs,
        signal,
      },
      (hop) => {
        if (!isSafeTransport(hop, exemption)) throw new Failure("refused", plaintextRefusal(hop.url));
        return {};
      },
    ),
  );
  if (answer.status < 200 || answer.status >= 300)
    throw new Failure("upstream_failed", `The token endpoint answered with status ${answer.status}`);
  return readToken(answer.body);
}

/** Encoded once, by the form's own rules; the secret is never in a header as well. */
function formOf({ clientId, clientSecret, scopes }: TokenRequest): string {
  const fields = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  return new URLSearchParams(scopes.length === 0 ? fields : { ...fields, scope: scopes.join(" ") }).toString();
}

/** Of the answer only what is used: type and scope of the token are ours to know (RFC 6749, 5.1: ignore what is not known). */
export function readToken(body: Uint8Array): IssuedToken {
  const what = "The answer of the token endpoint";
  const answer = readObject(body, what);
  const refuse = refuseFor(what);
  return {
    accessToken: readAccessToken(answer, refuse),
    lifetimeMs: readLifetime(answer.expires_in, refuse),
    refreshToken: readRefreshToken(answer.refresh_token),
  };
}

function readAccessToken({ access_token: token }: Members, refuse: Refuse): string {
  if (token === undefined) return refuse('"access_token" is missing');
  if (typeof token !== "string") return refuse('"access_token" is not a string');
  if (token === "") return refuse('"access_token" is empty');
  if (token.length > credentialCharactersMax)
    return refuse(`"access_token" is longer than ${credentialCharactersMax} characters`);
  return isHeaderValue(token) ? token : refuse('"access_token" holds characters that no header can carry');
}

/**
 * Seconds, as a number or in quotes as some servers send them. A token may be born expired: it then serves only the requests
 * that waited for it.
 */
function readLifetime(seconds: unknown, refuse: Refuse): number {
  if (seconds === undefined || seconds === null) return tokenLifetimeDefaultMs;
  const told =
    typeof seconds === "string" && /^\s*[-+]?[0-9]+(?:\.[0-9]+)?\s*$/.test(seconds) ? Number(seconds) : seconds;
  if (typeof told !== "number" || Number.isNaN(told)) return refuse('"expires_in" is not a number of seconds');
  return Math.floor(Math.min(Math.max(told * 1_000, 0), tokenLifetimeMaxMs));
}

/** Kept but never used, so a useless one is no reason to refuse a good access token. */
function readRefreshToken(token: unknown): string | null {
  return typeof token === "string" && token !== "" && token.length <= credentialCharactersMax ? token : null;
}
