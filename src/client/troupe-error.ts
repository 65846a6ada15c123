/** The one error of the client: what the server said, in its own words and codes, whichever protocol carried it. */
import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { localPath } from "./local-path.ts";

export interface TroupeErrorDetails {
  /** Fields of the request at fault, as paths in it: `timeoutMs`, `auth.clientId`, `kinds[0]`. */
  readonly fields?: readonly { readonly field: string; readonly description: string }[];
  /** After which trying again makes sense. */
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

export class TroupeError extends Error {
  /**
   * The server's own code: `not_found`, `invalid_request`, `conflict`, `rate_limit_exceeded`, … Where no server answered: `unavailable`
   * (nothing was reached), `connection_lost` (it went away in the middle: the call may have been done), `timeout`, `cancelled`.
   */
  readonly code: string;
  readonly fields: readonly { readonly field: string; readonly description: string }[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, details: TroupeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "TroupeError";
    this.code = code;
    this.fields = details.fields ?? [];
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** Whatever a call rejects with, as TroupeError. `isCancelled`: by whoever made the call. `request`: of the call. */
export function toTroupeError(reason: unknown, isCancelled: boolean, request?: DescMessage): TroupeError {
  if (reason instanceof TroupeError) return reason;
  const error = ConnectError.from(reason);
  const [badRequest] = error.findDetails(BadRequestSchema);
  return new TroupeError(reasonOf(error) ?? ownCode(error, isCancelled), error.rawMessage, {
    fields: (badRequest?.fieldViolations ?? []).map(({ field, description }) => ({
      field: localPath(field, request),
      description,
    })),
    retryAfterSeconds: retryAfterSeconds(error),
    cause: error,
  });
}

/** What the server calls it; undefined when it was not the server who said it. */
export function reasonOf(error: ConnectError): string | undefined {
  return error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "troupe")?.reason;
}

export function retryAfterSeconds(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? undefined : Number(delay.seconds) + delay.nanos / 1e9;
}

/** The connection failed before the request was on its way. */
export function neverSent(error: ConnectError): boolean {
  return systemErrors(error).some(
    ({ code, syscall }) => notReached.has(code) || (code === "ETIMEDOUT" && syscall === "connect"),
  );
}

/** The connection was lost, or there was none: the server has not said no. */
export function isConnectionFault(error: ConnectError, isCancelled: boolean): boolean {
  if (isCancelled || reasonOf(error) !== undefined) return false;
  return lostCodes.has(error.code) || systemErrors(error).length > 0;
}

/** A broken HTTP/2 connection cancels its streams. */
const lostCodes: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Canceled]);

const notReached: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

function ownCode(error: ConnectError, isCancelled: boolean): string {
  if (error.code === Code.DeadlineExceeded) return "timeout";
  if (isCancelled) return "cancelled";
  if (error.code === Code.Unavailable || neverSent(error)) return "unavailable";
  if (isConnectionFault(error, isCancelled)) return "connection_lost";
  return Code[error.code].replace(/[a-z](?=[A-Z])/g, "$&_").toLowerCase();
}

interface SystemError {
  readonly code: string;
  readonly syscall?: string;
}

/** Of Node, which are below Connect's own. */
function systemErrors(error: ConnectError): readonly SystemError[] {
  const found: SystemError[] = [];
  let reason: unknown = error.cause;
  for (let depth = 0; depth < 8 && reason instanceof Error; depth += 1) {
    if (typeof (reason as { code?: unknown }).code === "string") found.push(reason as unknown as SystemError);
    reason = reason.cause;
  }
  return found;
}
