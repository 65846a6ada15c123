/**
 * The one vocabulary of refusals. A `Failure` is an expected "no": a wrong request, a state that forbids it, a target that
 * did not answer. Everything else that is thrown is a crash, and the supervisor's job.
 *
 * Kinds are a closed list; `catalogue.ts` maps each once to REST and once to gRPC. The kind doubles as the `code` of the
 * error envelope.
 */
export const failureKinds = [
  "invalid_request",
  "invalid_cursor",
  "cursor_expired",
  "refused",
  "unauthenticated",
  "forbidden",
  "not_found",
  "conflict",
  "already_exists",
  "etag_mismatch",
  "too_large",
  "rate_limit_exceeded",
  "queue_full",
  "overloaded",
  "method_not_allowed",
  "unsupported_media_type",
  "cancelled",
  "internal",
  "upstream_failed",
  "unavailable",
  "timeout",
] as const;

export type FailureKind = (typeof failureKinds)[number];

/** What a 429 must say: the capacity or quota that was exhausted, and when trying again makes sense. */
export interface Exhaustion {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds. */
  readonly resetAt: number;
  readonly retryAfterSeconds: number;
  /** For the log: whose rate limit it is, as SERVICE_RATE_LIMITS names it. Absent: something else was exhausted. */
  readonly route?: string;
}

export interface FailureDetails {
  /** Fields of the request at fault, as dotted paths, for google.rpc.BadRequest. */
  readonly fields?: readonly { readonly field: string; readonly description: string }[];
  readonly exhaustion?: Exhaustion;
  /** Seconds after which a 503 is worth trying again. */
  readonly retryAfterSeconds?: number;
  /** Methods that exist on the path, for 405. */
  readonly allow?: readonly string[];
  /** For the log only; never leaves the server. */
  readonly cause?: unknown;
}

/** The message is a sentence for the caller: capital first, no full stop, values in quotes, and never a secret. */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly details: FailureDetails;

  constructor(kind: FailureKind, message: string, details: FailureDetails = {}) {
    const { stackTraceLimit } = Error;
    // A refusal is an answer, and floods of them must cost little: only what is a fault of ours says where it came from.
    if (kind !== "internal") Error.stackTraceLimit = 0;
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "Failure";
    this.kind = kind;
    this.details = details;
  }
}

export function isFailure(value: unknown): value is Failure {
  return value instanceof Failure;
}
