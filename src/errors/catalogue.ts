/** Kind of failure → status, once for each face and nowhere else. gRPC numbers are those of google.rpc.Code. */
import type { FailureKind } from "./failure.ts";

export interface Statuses {
  readonly rest: number;
  readonly grpc: number;
}

const grpc = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export const catalogue: Readonly<Record<FailureKind, Statuses>> = {
  invalid_request: { rest: 400, grpc: grpc.invalidArgument },
  invalid_cursor: { rest: 400, grpc: grpc.invalidArgument },
  cursor_expired: { rest: 400, grpc: grpc.invalidArgument },
  refused: { rest: 400, grpc: grpc.failedPrecondition },
  unauthenticated: { rest: 401, grpc: grpc.unauthenticated },
  forbidden: { rest: 403, grpc: grpc.permissionDenied },
  not_found: { rest: 404, grpc: grpc.notFound },
  conflict: { rest: 409, grpc: grpc.failedPrecondition },
  already_exists: { rest: 409, grpc: grpc.alreadyExists },
  etag_mismatch: { rest: 412, grpc: grpc.aborted },
  too_large: { rest: 413, grpc: grpc.resourceExhausted },
  rate_limit_exceeded: { rest: 429, grpc: grpc.resourceExhausted },
  queue_full: { rest: 429, grpc: grpc.resourceExhausted },
  overloaded: { rest: 429, grpc: grpc.resourceExhausted },
  method_not_allowed: { rest: 405, grpc: grpc.unimplemented },
  unsupported_media_type: { rest: 415, grpc: grpc.invalidArgument },
  cancelled: { rest: 499, grpc: grpc.cancelled },
  internal: { rest: 500, grpc: grpc.internal },
  upstream_failed: { rest: 502, grpc: grpc.unavailable },
  unavailable: { rest: 503, grpc: grpc.unavailable },
  timeout: { rest: 504, grpc: grpc.deadlineExceeded },
};
