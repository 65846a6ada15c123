/**
 * Outbound requests of one purpose, counted and traced. The span says where a request went by host and port, never by path or query:
 * targets have keys in both. A target learns its place in the trace by the header `traceparent`, and nothing else; callers' own
 * headers of that name are left as they are, and a redirect to another origin loses it like every other header.
 */
import { isFailure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher, Fetcher, OutboundAnswer, OutboundRequest } from "../ports/fetcher.ts";
import type { Tracing } from "../ports/tracing.ts";
import type { OutboundPurpose } from "./metrics.ts";
import type { OutcomeMeter } from "./outcome-meter.ts";

export interface ObservedFetcherOptions {
  readonly fetcher: Fetcher & CredentialedFetcher;
  readonly purpose: OutboundPurpose | ((request: OutboundRequest) => OutboundPurpose);
  readonly meter: OutcomeMeter;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
}

/** Whom it is sent to was set up by an operator, for calls on behalf of callers. Not where documents and packages happen to be. */
const toldPlace: ReadonlySet<OutboundPurpose> = new Set(["tool", "registry"]);

export function observeFetcher(options: ObservedFetcherOptions): Fetcher & CredentialedFetcher {
  const { fetcher } = options;
  return {
    fetch: (request) => observe(options, request, (told) => fetcher.fetch(told)),
    fetchAs: (request, credentials) => observe(options, request, (told) => fetcher.fetchAs(told, credentials)),
    approve: (url) => fetcher.approve(url),
    close: () => fetcher.close(),
  };
}

async function observe(
  { purpose: given, meter, tracing, clock }: ObservedFetcherOptions,
  request: OutboundRequest,
  send: (request: OutboundRequest) => Promise<OutboundAnswer>,
): Promise<OutboundAnswer> {
  const purpose = typeof given === "string" ? given : given(request);
  const begun = clock.monotonic();
  // A module asks from its own process: which call that is for, nobody here knows.
  const parent = purpose === "module" ? undefined : tracing?.current();
  const span = parent && tracing?.start(request.method, "client", attributesOf(request, purpose), parent);
  const told =
    span && tracing && toldPlace.has(purpose) ? withPlace(request, tracing.traceparent(span.place)) : request;
  try {
    const answer = await send(told);
    meter.add(purpose, `${Math.floor(answer.status / 100)}xx`, clock.monotonic() - begun);
    span?.set({ "http.response.status_code": answer.status });
    span?.end(answer.status >= 400 ? String(answer.status) : undefined);
    return answer;
  } catch (error) {
    const kind = isFailure(error) ? error.kind : "internal";
    meter.add(purpose, kind, clock.monotonic() - begun);
    span?.end(kind);
    throw error;
  }
}

function attributesOf({ method, url }: OutboundRequest, purpose: OutboundPurpose) {
  const target = URL.parse(url);
  return {
    "http.request.method": method,
    "server.address": target?.hostname,
    "server.port": target === null ? undefined : Number(target.port || (target.protocol === "https:" ? 443 : 80)),
    "url.scheme": target?.protocol.slice(0, -1),
    "troupe.outbound.purpose": purpose,
  };
}

function withPlace(request: OutboundRequest, traceparent: string): OutboundRequest {
  const isGiven = Object.keys(request.headers).some((name) => name.toLowerCase() === "traceparent");
  return isGiven ? request : { ...request, headers: { ...request.headers, traceparent } };
}
