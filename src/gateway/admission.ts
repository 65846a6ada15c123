/** What every request of the REST face passes before a handler sees it: Host, Origin, key, and whether the server still takes calls. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../errors/failure.ts";
import { headersMax } from "../limits.ts";
import type { Authentication, OriginRules } from "../operations/authentication.ts";
import type { Caller } from "../operations/operation.ts";
import { allowBrowser } from "./cross-origin.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Set by admission; routes that are open, and refused requests, have none. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** No key is asked for. */
    readonly open?: boolean;
    /** Constant answer for probes: served under any Host and while closing. */
    readonly probe?: boolean;
  }
}

export interface AdmissionRules {
  readonly authentication: Authentication;
  readonly origins: OriginRules;
  readonly closing: boolean;
}

/** Throws Failure. */
export function admit(rules: AdmissionRules, request: FastifyRequest, reply: FastifyReply): void {
  const { headers, rawHeaders, httpVersionMinor } = request.raw;
  const { config } = request.routeOptions;
  if (rawHeaders.length > headersMax * 2) throw new Failure("too_large", `More than ${headersMax} request headers`);
  if (headers.host === undefined && httpVersionMinor > 0) {
    throw new Failure("invalid_request", "The Host header is required");
  }
  rules.origins.check(config?.probe === true ? undefined : headers.host, headers.origin);
  if (headers.origin !== undefined && rules.origins.allowsCrossOrigin(headers.origin))
    allowBrowser(reply, headers.origin);
  if (rules.closing && config?.probe !== true) throw new Failure("unavailable", "The server is shutting down");
  // Browsers send no key with the OPTIONS that asks whether they may send one.
  if (config?.open === true || request.method === "OPTIONS") return;
  request.caller = rules.authentication.authenticate(headers.authorization);
}
