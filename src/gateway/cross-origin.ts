/** What browsers of listed origins (SERVICE_CORS_ORIGINS) are told; all others get nothing, and their posts a 403. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OriginRules } from "../operations/authentication.ts";

const readableHeaders =
  "x-request-id, etag, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, idempotency-replayed";
const sendableHeaders =
  "authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id, mcp-protocol-version, x-request-id";
/** Seconds a browser may remember a preflight. */
const preflightSeconds = "600";

export function allowBrowser(reply: FastifyReply, origin: string): void {
  reply
    .header("access-control-allow-origin", origin)
    .header("access-control-expose-headers", readableHeaders)
    .header("vary", "origin");
}

export function answerOptions(
  reply: FastifyReply,
  request: FastifyRequest,
  allow: readonly string[],
  origins: OriginRules,
): void {
  const methods = allow.join(", ");
  reply.code(204).header("allow", methods);
  const { origin } = request.headers;
  if (
    origin !== undefined &&
    origins.allowsCrossOrigin(origin) &&
    request.headers["access-control-request-method"] !== undefined
  ) {
    reply
      .header("access-control-allow-methods", methods)
      .header("access-control-allow-headers", sendableHeaders)
      .header("access-control-max-age", preflightSeconds);
  }
  reply.send();
}
