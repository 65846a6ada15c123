/**
 * Tries again what is safe to try again: calls that change nothing, and any call that was certainly not begun (no connection, or refused
 * by a rate limit). Everything else is the caller's to decide. The deadline of the call spans all its tries.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { isConnectionFault, neverSent, reasonOf, retryAfterSeconds } from "./troupe-error.ts";

/** Between tries, doubling, with jitter; a server that restarts is back within the third. */
const waitMinMs = 200;
/** A server that asks for more patience than this is answered by an error at once. */
const waitMaxMs = 30_000;

/** Nothing is begun, and nothing tried again, once `closed` is aborted. */
export function retrying(retriesMax: number, closed: AbortSignal): Interceptor {
  return (next) => async (request) => {
    if (closed.aborted) throw new ConnectError("The client is closed", Code.FailedPrecondition);
    if (request.stream) return next(request);
    const isRead = request.method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    for (let retry = 0; ; retry += 1) {
      try {
        return await next(request);
      } catch (reason) {
        const error = ConnectError.from(reason);
        const waitMs = (retryAfterSeconds(error) ?? 0) * 1_000 || backoffMs(retry);
        const isEnded = request.signal.aborted || closed.aborted;
        if (isEnded || retry >= retriesMax || waitMs > waitMaxMs || !isSafe(error, isRead)) throw error;
        await sleep(waitMs, undefined, { signal: request.signal }).catch(() => undefined);
      }
    }
  };
}

/** Milliseconds before try number `retry` + 2. */
export function backoffMs(retry: number): number {
  return waitMinMs * 2 ** retry * (0.5 + Math.random() / 2);
}

/** What the server refuses for now; only a rate limit is judged before anything is begun. */
const refusedForNow: ReadonlySet<string> = new Set(["unavailable", "overloaded", "queue_full"]);

function isSafe(error: ConnectError, isRead: boolean): boolean {
  const reason = reasonOf(error);
  if (reason === "rate_limit_exceeded" || neverSent(error)) return true;
  return isRead && (isConnectionFault(error, false) || (reason !== undefined && refusedForNow.has(reason)));
}
