/** Headers, parameters and error answers as every operation has them (API document 2.9 and 7). */
import { catalogue } from "../../errors/catalogue.ts";
import { type FailureKind, failureKinds } from "../../errors/failure.ts";
import type { JsonObject } from "./json-object.ts";
import type { SchemaObject } from "./schema.ts";

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };

export const headerObjects: Readonly<Record<string, JsonObject>> = {
  "X-Request-Id": { description: "The caller's, or a new one; the log has it too", required: true, schema: text },
  "X-RateLimit-Limit": { description: "Requests in the window", schema: count },
  "X-RateLimit-Remaining": { description: "Requests left in the window", schema: count },
  "X-RateLimit-Reset": { description: "End of the window, Unix seconds", schema: count },
  "Retry-After": {
    description: "Seconds after which trying again makes sense",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  ETag: { description: "Names this state of the resource", required: true, schema: text },
  "Cache-Control": { description: "How long the answer may be kept", required: true, schema: text },
  "Idempotency-Replayed": {
    description: "The answer is that of an earlier request under the same key",
    schema: { type: "string", enum: ["true"] },
  },
  "WWW-Authenticate": {
    description: "How to authenticate",
    required: true,
    schema: { type: "string", enum: ["Bearer"] },
  },
};

export const parameterObjects: Readonly<Record<string, JsonObject>> = {
  "X-Request-Id": {
    name: "X-Request-Id",
    in: "header",
    description: "Comes back with the answer and stands in the log; one that is not well-formed is replaced",
    schema: { type: "string", maxLength: 128 },
    example: "4f7c1f0e",
  },
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    description: "The same key with the same body gets the first answer again, for 24 h",
    schema: { type: "string", minLength: 1, maxLength: 255 },
    example: "order-4711",
  },
  "If-Match": {
    name: "If-Match",
    in: "header",
    description: "Only if the resource still has this ETag, or *",
    schema: text,
    example: "*",
  },
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    description: "ETags that the caller has; if one is current the answer is 304",
    schema: text,
    example: '"5d41402abc4b2a76"',
  },
  "Last-Event-ID": {
    name: "Last-Event-ID",
    in: "header",
    description: "Id of the last event received: the stream goes on after it",
    schema: text,
    example: "17",
  },
};

const codes = failureKinds.filter((kind) => catalogue[kind].rest !== 429 && kind !== "cancelled");

export const errorSchemas: Readonly<Record<string, SchemaObject>> = {
  Error: {
    type: "object",
    description: "Every error but 429",
    required: ["error"],
    properties: {
      error: { type: "string", description: "What was wrong, in words" },
      code: { type: "string", enum: codes, description: "What was wrong, for programs" },
    },
  },
  RateLimitError: {
    type: "object",
    description: "Every 429",
    required: ["error", "message", "retryAfter"],
    properties: {
      error: { type: "string", enum: ["rate_limit_exceeded"] },
      message: { type: "string", description: "What was exhausted" },
      retryAfter: { type: "integer", minimum: 1, description: "Seconds" },
    },
  },
};

export interface ErrorAnswer {
  readonly name: string;
  readonly description: string;
  readonly headers: readonly string[];
  readonly examples: Readonly<Record<string, unknown>>;
}

const quota = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

function answer(
  name: string,
  description: string,
  errors: Partial<Record<FailureKind, string>>,
  headers: readonly string[] = quota,
): ErrorAnswer {
  const examples = Object.entries(errors).map(([code, error]) => [code, { error, code }]);
  return { name, description, headers, examples: Object.fromEntries(examples) };
}

export const errorAnswers: Readonly<Record<number, ErrorAnswer>> = {
  400: answer("BadRequest", "The request cannot be read, is not valid, or is refused for safety", {
    invalid_request: 'Field "code" is not valid: required',
    invalid_cursor: "The cursor is not in the form it was given out in: start again from the first page",
    cursor_expired: "The cursor comes from another pagination version: start again from the first page",
    refused: "The registry does not advertise an auth method",
  }),
  401: answer(
    "Unauthenticated",
    "A bearer key is required, and missing or not known",
    { unauthenticated: "A bearer key is required" },
    ["WWW-Authenticate"],
  ),
  403: answer("Forbidden", "The key's role is not enough, or Host or Origin is not allowed", {
    forbidden: 'Key "ci" has role "agent": "deleteService" needs "operator"',
  }),
  404: answer("NotFound", "It is not there", { not_found: "There is no process 42" }),
  409: answer("Conflict", "Its state forbids it now, or it is there already", {
    conflict: "Process 42 has no output yet: it is running",
    already_exists: 'Service "petstore" exists already',
  }),
  412: answer("PreconditionFailed", "If-Match names another state", {
    etag_mismatch: "The configuration has changed since",
  }),
  413: answer("TooLarge", "The body or the headers are too large", {
    too_large: "The body is larger than 2097152 bytes",
  }),
  415: answer("UnsupportedMediaType", "The body must be plain JSON", {
    unsupported_media_type: 'The Content-Type of the body must be "application/json"',
  }),
  429: {
    name: "TooManyRequests",
    description: "A rate limit, or a queue that is full",
    headers: [...quota, "Retry-After"],
    examples: {
      rate_limit_exceeded: {
        error: "rate_limit_exceeded",
        message: "Too many requests: try again in 12 s",
        retryAfter: 12,
      },
    },
  },
  500: answer("Internal", "A fault of the server; its log has the cause", {
    internal: "Internal error; the log of the server has details under the request id",
  }),
  502: answer("UpstreamFailed", "The target did not answer as it should", {
    upstream_failed: 'Cannot read "https://registry.example.com/": the connection was refused',
  }),
  503: answer(
    "Unavailable",
    "Not now: starting, shutting down, or without something it needs",
    { unavailable: "The server is shutting down" },
    [...quota, "Retry-After"],
  ),
  504: answer("Timeout", "It did not finish in time", {
    timeout: 'Operation "invokeTool" did not finish before its deadline',
  }),
};
