/** Answers of the REST face: rows as JSON or text, failures as the envelope of the API document (2.9), nothing else ever. */
import type { FastifyReply } from "fastify";
import { catalogue } from "../errors/catalogue.ts";
import type { Failure } from "../errors/failure.ts";
import { expectsContinue } from "./body.ts";

export const jsonContentType = "application/json; charset=utf-8";

export function sendJson(reply: FastifyReply, status: number, value: unknown): void {
  reply.code(status).header("content-type", jsonContentType).send(JSON.stringify(value));
}

export function sendFailure(reply: FastifyReply, failure: Failure): void {
  const status = catalogue[failure.kind].rest;
  const { details } = failure;
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

function sendExhausted(reply: FastifyReply, failure: Failure): void {
  const { exhaustion } = failure.details;
  const retryAfter = Math.max(1, Math.ceil(exhaustion?.retryAfterSeconds ?? failure.details.retryAfterSeconds ?? 1));
  reply
    .header("x-ratelimit-limit", String(exhaustion?.limit ?? 0))
    .header("x-ratelimit-remaining", String(exhaustion?.remaining ?? 0))
    .header("x-ratelimit-reset", String(Math.ceil(exhaustion?.resetAt ?? Date.now() / 1000 + retryAfter)))
    .header("retry-after", String(retryAfter));
  sendJson(reply, 429, { error: "rate_limit_exceeded", message: failure.message, retryAfter });
}
