/**
 * The one client for requests that leave the server. For each hop, in this order: the URL is checked, the name resolved once,
 * every address judged, the headers made for this hop and this address, and the request sent over a connection to that
 * address. Redirects are followed by hand. One deadline and one size bound hold for the whole exchange.
 */
import type { Dispatcher } from "undici";
import { Failure, isFailure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetcher, OutboundAnswer, OutboundRequest } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import { addressRules } from "./address-judge.ts";
import { readBody } from "./body.ts";
import { connected, connectionFailure } from "./connection-faults.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { firstHopHeaders, type Headers, nextHopHeaders } from "./hop-headers.ts";
import { openPools } from "./pools.ts";
import { approvedAddresses, type Lookup, systemResolver } from "./resolver.ts";
import { parseTarget, redirectTarget } from "./target.ts";

/** What a credential is decided by: where this hop goes, and the address the connection is made to. */
export interface Hop {
  readonly url: URL;
  readonly address: string;
  /** All addresses its host has on this hop, each judged; `address` is one of them. */
  readonly addresses: readonly string[];
}

/** Headers to add on this hop only, or a thrown Failure to refuse it. Asked again for every hop: nothing is carried over. */
export type HopCredentials = (hop: Hop) => Headers;

export interface Egress extends Fetcher {
  /** As `fetch`, with headers decided hop by hop. Nothing else may attach a credential that follows redirects. */
  fetchAs(request: OutboundRequest, credentials: HopCredentials): Promise<OutboundAnswer>;
  /** The judged addresses of a URL's host, for who dials by other means. @throws Failure upstream_failed. */
  approve(url: string): Promise<readonly string[]>;
}

export interface EgressOptions {
  /** Entries of SERVICE_EGRESS_ALLOWED_CIDRS; `none` among them forbids loopback. */
  readonly allowedCidrs: readonly string[];
  readonly blockedCidrs: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly lookup?: Lookup;
}

/** @throws Failure refused naming a malformed entry. */
export function openEgress({ allowedCidrs, blockedCidrs, clock, log, lookup = systemResolver }: EgressOptions): Egress {
  const rules = addressRules({ allowedCidrs, blockedCidrs });
  const pools = openPools();
  let closed = false;

  async function exchange(request: OutboundRequest, credentials: HopCredentials): Promise<OutboundAnswer> {
    const url = parseTarget(request.url);
    const deadline = startDeadline(clock, request.timeoutMs, url.host, request.signal);
    try {
      return await follow({ request, credentials, deadline }, url);
    } finally {
      deadline.end();
    }
  }

  async function follow(work: Work, first: URL): Promise<OutboundAnswer> {
    const followable = work.request.method === "GET" || work.request.method === "HEAD";
    let url = first;
    let headers = firstHopHeaders(work.request.headers);
    for (let redirects = 0; ; redirects += 1) {
      const response = await send(work, url, headers, redirects === 0 ? work.request.body : undefined);
      const next = followable && work.request.redirectsMax > 0 ? redirectOf(response, url) : undefined;
      if (next === undefined) return await answerOf(work, url, response);
      discard(response);
      if (redirects === work.request.redirectsMax) {
        throw new Failure("upstream_failed", `"${first.host}" redirects more than ${work.request.redirectsMax} times`);
      }
      headers = nextHopHeaders(headers, url, next);
      url = next;
    }
  }

  async function send(
    work: Work,
    url: URL,
    headers: Headers,
    body: OutboundRequest["body"],
  ): Promise<Dispatcher.ResponseData> {
    const addresses = await work.deadline.race(approvedAddresses(url, lookup, rules, log));
    for (const [at, address] of addresses.entries()) {
      if (closed) throw new Failure("unavailable", "The service is stopping");
      const added = work.credentials({ url, address, addresses });
      try {
        return await pools.get(url.origin, address).request({
          method: work.request.method as Dispatcher.HttpMethod,
          path: url.pathname + url.search,
          headers: { ...headers, ...lowerCase(added) },
          body: body ?? null,
          signal: work.deadline.signal,
        });
      } catch (error) {
        if (work.deadline.signal.aborted) throw work.deadline.signal.reason;
        if (connected(error) || at === addresses.length - 1) throw connectionFailure(error, url.host);
      }
    }
    throw new Failure("upstream_failed", `Cannot reach "${url.host}": its name has no address`);
  }

  return {
    fetch: (request) => exchange(request, noCredentials),
    fetchAs: exchange,
    approve: async (url) => approvedAddresses(parseTarget(url), lookup, rules, log),
    async close() {
      closed = true;
      await pools.destroy();
    },
  };
}

interface Work {
  readonly request: OutboundRequest;
  readonly credentials: HopCredentials;
  readonly deadline: Deadline;
}

const noCredentials: HopCredentials = () => ({});

function redirectOf(response: Dispatcher.ResponseData, url: URL): URL | undefined {
  try {
    return redirectTarget(response.statusCode, one(response.headers.location), url);
  } catch (error) {
    discard(response);
    throw error;
  }
}

async function answerOf(
  { request, deadline }: Work,
  url: URL,
  response: Dispatcher.ResponseData,
): Promise<OutboundAnswer> {
  const encoding = one(response.headers["content-encoding"]);
  const bodiless = request.method === "HEAD" || response.statusCode === 204 || response.statusCode === 304;
  const encoded = {
    host: url.host,
    chunks: response.body as AsyncIterable<Uint8Array>,
    encoding: bodiless ? undefined : encoding,
    length: bodiless ? undefined : one(response.headers["content-length"]),
    bytesMax: request.bodyBytesMax,
  };
  try {
    const body = await deadline.race(readBody(encoded));
    return {
      status: response.statusCode,
      headers: answerHeaders(response.headers, !bodiless && encoding !== undefined),
      body,
      url: url.href,
    };
  } catch (error) {
    discard(response);
    if (deadline.signal.aborted) throw deadline.signal.reason;
    throw isFailure(error) ? error : connectionFailure(error, url.host);
  }
}

/** The connection goes with the rest of the body: reading on could take as long as the sender likes. */
function discard(response: Dispatcher.ResponseData): void {
  response.body.on("error", () => undefined).destroy();
}

/** After decompression the two fields that described the compressed body are not true any more. */
function answerHeaders(headers: Dispatcher.ResponseData["headers"], decoded: boolean): Headers {
  const told = Object.entries(headers).filter(
    ([name]) => !decoded || (name !== "content-encoding" && name !== "content-length"),
  );
  return Object.fromEntries(
    told.map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(name === "set-cookie" ? "\n" : ", ") : (value ?? ""),
    ]),
  );
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}

function lowerCase(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
