/**
 * Statuses of gRPC as failures. They are thrown, not results: an answer with a status other than OK has no message. The kinds are those an
 * agent can act on; what only an operator can mend (credentials, quotas, a target that is down) is `upstream_failed`.
 */
import grpc from "@grpc/grpc-js";
import { Failure, type FailureKind } from "../../errors/failure.ts";
import { grpcStatusCharactersMax } from "../../limits.ts";
import { maskedText } from "./answer-metadata.ts";
import type { Settings } from "./settings.ts";
import type { FieldViolation } from "./status-details.ts";
import { shortened } from "./unusable.ts";

const { status } = grpc;

export const kindOfStatus: Readonly<Record<number, FailureKind>> = {
  [status.CANCELLED]: "upstream_failed",
  [status.UNKNOWN]: "upstream_failed",
  [status.INVALID_ARGUMENT]: "invalid_request",
  [status.DEADLINE_EXCEEDED]: "timeout",
  [status.NOT_FOUND]: "not_found",
  [status.ALREADY_EXISTS]: "already_exists",
  [status.PERMISSION_DENIED]: "upstream_failed",
  [status.RESOURCE_EXHAUSTED]: "upstream_failed",
  [status.FAILED_PRECONDITION]: "conflict",
  [status.ABORTED]: "conflict",
  [status.OUT_OF_RANGE]: "invalid_request",
  [status.UNIMPLEMENTED]: "upstream_failed",
  [status.INTERNAL]: "upstream_failed",
  [status.UNAVAILABLE]: "upstream_failed",
  [status.DATA_LOSS]: "upstream_failed",
  [status.UNAUTHENTICATED]: "upstream_failed",
};

export function isStatus(error: unknown): error is grpc.StatusObject {
  return typeof error === "object" && error !== null && "code" in error && "details" in error && "metadata" in error;
}

/** `NOT_FOUND: no item "7"`: the status by name and the target's own words, without what was secret in the request. */
export function statusText({ code, details }: grpc.StatusObject, secrets: Settings): string {
  const name = status[code] ?? `status ${code}`;
  const words = shortened(maskedText(details, secrets), grpcStatusCharactersMax);
  return words === "" ? name : `${name}: ${words}`;
}

export function statusFailure(
  error: grpc.StatusObject,
  { toolId, secrets, violations }: { toolId: string; secrets: Settings; violations: readonly FieldViolation[] },
): Failure {
  const fields = violations.map(({ field, description }) => ({
    field: maskedText(field, secrets),
    description: maskedText(description, secrets),
  }));
  const named = fields.map(({ field, description }) => `; "${field}": ${description}`).join("");
  const kind = kindOfStatus[error.code] ?? "upstream_failed";
  return new Failure(kind, `Tool "${toolId}" failed with ${statusText(error, secrets)}${named}`, { fields });
}
