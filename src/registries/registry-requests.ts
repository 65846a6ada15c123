/**
 * One read from a registry on behalf of one registry record: credentials decided hop by hop, one repetition after a 401 with
 * a newer token, everything that is not a 2xx answer a failure, and an end to it all within a bounded time.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import { redirectsMax, registryExchangeMs, registryReadMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher, CredentialHop, OutboundAnswer } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { RegistryAccess, RegistryCredential } from "../ports/registry-reader.ts";
import { credentialHeaders } from "./credential-headers.ts";
import type { PlaintextExemption } from "./plaintext-exemption.ts";
import { type TimeLimit, timeLimit } from "./time-limit.ts";
import { asUpstream } from "./upstream-failure.ts";

export interface RegistryRequest {
  readonly url: string;
  /** Begins the sentences about it, such as `The definitions page of registry "r"`. */
  readonly what: string;
  readonly accept: string;
  readonly bodyBytesMax: number;
  /** For one exchange; a document's time when absent. */
  readonly exchangeMs?: number;
}

export interface RequestParts {
  readonly egress: CredentialedFetcher;
  readonly exemption: PlaintextExemption;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws Failure upstream_failed, cancelled; whatever the credential source refuses with. */
export async function readFromRegistry(
  parts: RequestParts,
  access: RegistryAccess,
  request: RegistryRequest,
): Promise<OutboundAnswer> {
  const { exchangeMs = registryExchangeMs, what } = request;
  const limit = timeLimit(parts.clock, exchangeMs + registryReadMs - registryExchangeMs, access.signal, what);
  const hops = hopDecisions(parts, access, what);
  const send = (credential: RegistryCredential | null): Promise<OutboundAnswer> =>
    asUpstream(
      parts.egress.fetchAs(
        {
          method: "GET",
          url: request.url,
          headers: { accept: request.accept },
          redirectsMax,
          bodyBytesMax: request.bodyBytesMax,
          timeoutMs: Math.min(exchangeMs, limit.leftMs()),
          signal: access.signal,
        },
        (hop) => hops.headers(hop, credential),
      ),
    );

  const credential = await credentialFrom(limit, access.credentials.current());
  const answer = await send(credential);
  const isRenewable = answer.status === 401 && credential?.type === "oauth2" && hops.withheld() === "";
  const renewed = isRenewable ? await credentialFrom(limit, access.credentials.renewed(credential)) : null;
  return require2xx(renewed === null ? answer : await send(renewed), what, hops.withheld());
}

interface HopDecisions {
  headers(hop: CredentialHop, credential: RegistryCredential | null): Readonly<Record<string, string>>;
  /** Why the latest hop went without the credentials there are; "" when it did not. */
  withheld(): string;
}

function hopDecisions({ exemption, log }: RequestParts, access: RegistryAccess, what: string): HopDecisions {
  const baseUrl = new URL(access.baseUrl);
  let withheld = "";
  let isLogged = false;
  return {
    headers(hop, credential) {
      const decided = credentialHeaders(hop, baseUrl, credential, exemption);
      if (decided.outcome === "refused") throw decided.failure;
      withheld = decided.outcome === "anonymous" ? decided.reason : "";
      if (withheld !== "" && !isLogged) {
        isLogged = true;
        const message = `${what} is asked for without credentials at "${hop.url.host}": its URL ${withheld}`;
        log.info("registry-auth-out-of-scope", message, { registryId: access.registryId });
      }
      return decided.outcome === "attached" ? decided.headers : {};
    },
    withheld: () => withheld,
  };
}

/** A token that may not be fetched over this transport is, seen from a page, a page that cannot be had. */
async function credentialFrom(
  limit: TimeLimit,
  work: Promise<RegistryCredential | null>,
): Promise<RegistryCredential | null> {
  try {
    return await limit.race(work);
  } catch (error) {
    if (isFailure(error) && error.kind === "refused")
      throw new Failure("upstream_failed", error.message, { cause: error });
    throw error;
  }
}

/** @param withheld why the answering server got no credentials; said only where it may be the reason. */
function require2xx(answer: OutboundAnswer, what: string, withheld = ""): OutboundAnswer {
  if (answer.status >= 200 && answer.status < 300) return answer;
  const isDenied = answer.status === 401 || answer.status === 403 || answer.status === 404;
  const hint = isDenied && withheld !== "" ? `; no credentials were sent there, because its URL ${withheld}` : "";
  throw new Failure("upstream_failed", `${what} was answered with status ${answer.status}${hint}`);
}

/** Without credentials, and asking every cache on the way to look again. */
export async function readAnonymously(
  egress: CredentialedFetcher,
  request: RegistryRequest,
  signal: AbortSignal,
): Promise<OutboundAnswer> {
  const answer = await asUpstream(
    egress.fetchAs(
      {
        method: "GET",
        url: request.url,
        headers: { accept: request.accept, "cache-control": "no-cache" },
        redirectsMax,
        bodyBytesMax: request.bodyBytesMax,
        timeoutMs: registryExchangeMs,
        signal,
      },
      () => ({}),
    ),
  );
  return require2xx(answer, request.what);
}
