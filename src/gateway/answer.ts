/** Answers of the REST face: rows as JSON, text or bytes, failures as the envelope of the API document (2.9), nothing else ever. */
import type { FastifyReply } from "fastify";
import { catalogue } from "../errors/catalogue.ts";
import type { Failure } from "../errors/failure.ts";
import { quotaHeaders } from "../operations/rate-limits.ts";
import { expectsContinue } from "./body.ts";

export const jsonContentType = "application/json; charset=utf-8";

export function sendJson(reply: FastifyReply, status: number, value: unknown): void {
  reply.code(status).header("content-type", jsonContentType).send(JSON.stringify(value));
}

/** Images without anything in them that runs. */
const inertMediaTypes: ReadonlySet<string> = new Set(["image/png", "image/webp"]);

/**
 * Bytes that somebody else made, from our origin. Types that can hold scripts (SVG) are offered as a download and shut in a
 * sandbox, for browsers that open them all the same; as the source of an image element they still show, without scripts.
 */
export function sendBytes(reply: FastifyReply, status: number, content: Uint8Array, mediaType: string): void {
  if (!inertMediaTypes.has(mediaType)) {
    reply.header("content-disposition", "attachment").header("content-security-policy", "default-src 'none'; sandbox");
  }
  reply.code(status).header("content-type", mediaType).header("x-content-type-options", "nosniff").send(content);
}

/** In the caller's own cache only: a shared one would answer whoever has no key. */
export function allowKeeping(reply: FastifyReply, seconds: number): void {
  reply.header("cache-control", `private, max-age=${seconds}`);
}

export function sendFailure(reply: FastifyReply, failure: Failure): void {
  const status = catalogue[failure.kind].rest;
  const { details } = failure;
  reply.request.refusal = failure;
  // Answered before the client was told to go on: what it sends next would be read as another request.
  if (expectsContinue(reply.request.raw) && !reply.request.raw.readableDidRead) reply.header("connection", "close");
  if (status === 401) reply.header("www-authenticate", "Bearer");
  if (status === 405 && details.allow !== undefined) reply.header("allow", details.allow.join(", "));
  if (status === 503) reply.header("retry-after", String(details.retryAfterSeconds ?? 1));
  if (status === 429) sendExhausted(reply, failure);
  else sendJson(reply, status, failureBody(failure));
}

/** Also for what is refused below fastify, where only a socket is left to write to. */
export function failureBody(failure: Failure): { readonly error: string; readonly code: string } {
  return { error: failure.message, code: failure.kind };
}

/** On every answer that a rate limit was counted for. */
export function tellQuota(reply: FastifyReply, quota: Parameters<typeof quotaHeaders>[0]): void {
  reply.headers(quotaHeaders(quota));
}

function sendExhausted(reply: FastifyReply, failure: Failure): void {
  const { exhaustion } = failure.details;
  const retryAfter = Math.max(1, Math.ceil(exhaustion?.retryAfterSeconds ?? failure.details.retryAfterSeconds ?? 1));
  tellQuota(reply, exhaustion ?? { limit: 0, remaining: 0, resetAt: Date.now() / 1000 + retryAfter });
  reply.header("retry-after", String(retryAfter));
  sendJson(reply, 429, { error: "rate_limit_exceeded", message: failure.message, retryAfter });
}
