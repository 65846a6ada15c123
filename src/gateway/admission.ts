/**
 * What every request of the REST face passes before a handler sees it: Host, Origin, key, rate limit, and whether the server still
 * takes calls.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../errors/failure.ts";
import { headersMax } from "../limits.ts";
import type { Authentication, OriginRules } from "../operations/authentication.ts";
import type { ClientAddress } from "../operations/client-address.ts";
import type { Caller } from "../operations/operation.ts";
import type { RateLimits, RouteLimit } from "../operations/rate-limits.ts";
import type { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { RouteMeter } from "../ports/metrics.ts";
import { tellQuota } from "./answer.ts";
import { allowBrowser } from "./cross-origin.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Set by admission; routes that are open, and refused requests, have none. */
    caller: Caller;
    /** Under which name its requests are counted: of a caller that is not known, its address. */
    countedAs: string;
    /** What it was answered with in place of an answer. */
    refusal: Failure | undefined;
  }
  interface FastifyContextConfig {
    /** No key is asked for. */
    readonly open?: boolean;
    /** Constant answer for probes: served under any Host, while closing, and as often as anybody asks. */
    readonly probe?: boolean;
    /** Asked by machines that keep watch: as often as they like, also while closing. */
    readonly unlimited?: boolean;
    /** The handler looks at no body. */
    readonly readsNoBody?: boolean;
    /** Set for each route when it is added. */
    rateLimit?: RouteLimit | undefined;
    /** `/processes/{id}`; the same. */
    template?: string;
    meter?: RouteMeter | undefined;
  }
}

export interface AdmissionRules {
  readonly authentication: Authentication;
  readonly origins: OriginRules;
  readonly clientAddress: ClientAddress;
  /** Absent: nothing is limited. */
  readonly rateLimits?: RateLimits | undefined;
  readonly untakenAnswers: UntakenAnswers;
  readonly closing: boolean;
}

/** Throws Failure. */
export function admit(rules: AdmissionRules, request: FastifyRequest, reply: FastifyReply): void {
  const { headers, socket } = request.raw;
  const { config } = request.routeOptions;
  const address = rules.clientAddress(socket.remoteAddress, headers["x-forwarded-for"] as string | undefined);
  request.countedAs = address;
  try {
    checkArrival(rules, request, reply, config?.probe === true);
  } catch (error) {
    rules.rateLimits?.elsewhere.admit(address);
    throw error;
  }
  // Fastify looks at the type of a body that nobody is going to read, and has rules of its own for it.
  if (config?.readsNoBody === true && headers["content-type"] !== undefined) delete headers["content-type"];
  const isWatched = config?.probe === true || config?.unlimited === true;
  if (rules.closing && !isWatched) throw new Failure("unavailable", "The server is shutting down");
  // Browsers send no key with the OPTIONS that asks whether they may send one.
  const isOpen = config?.open === true || request.method === "OPTIONS";
  if (!isOpen) {
    request.caller = rules.authentication.authenticate(headers.authorization, address);
    if (request.caller.isAnonymous !== true) request.countedAs = request.caller.name;
  }
  if (isWatched) return;
  if (rules.rateLimits !== undefined) {
    const limit = config?.rateLimit ?? rules.rateLimits.elsewhere;
    tellQuota(reply, limit.admit(request.countedAs));
  }
  rules.untakenAnswers.admit(request.countedAs);
}

/** Whether anybody may send this from there at all, whoever it is. */
function checkArrival(rules: AdmissionRules, request: FastifyRequest, reply: FastifyReply, isProbe: boolean): void {
  const { headers, rawHeaders, httpVersionMinor } = request.raw;
  if (rawHeaders.length > headersMax * 2) throw new Failure("too_large", `More than ${headersMax} request headers`);
  if (headers.host === undefined && httpVersionMinor > 0) {
    throw new Failure("invalid_request", "The Host header is required");
  }
  rules.origins.check(isProbe ? undefined : headers.host, headers.origin);
  if (headers.origin !== undefined && rules.origins.allowsCrossOrigin(headers.origin))
    allowBrowser(reply, headers.origin);
}
