/** What an rpc is to whoever watches the server: a call, a span, a count and a line in the log, the same for rows and streams. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Failure, FailureKind } from "../errors/failure.ts";
import { asFailure, Call } from "../operations/call.ts";
import { logRefusal } from "../operations/refusal-log.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Span, Tracing } from "../ports/tracing.ts";
import { rpcName } from "./admission.ts";
import type { Arrival } from "./arrival.ts";
import { endRpcSpan, rpcSpan } from "./rpc-spans.ts";

export interface WatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: FaceMetrics | undefined;
  readonly tracing?: Tracing | undefined;
}

export interface WatchedRpc {
  readonly span: Span | undefined;
  /** `callerDeadline`: on the monotonic clock. `watchCaller`: see `CallStart`. */
  newCall(callerDeadline: number | undefined, watchCaller: (call: Call) => void): Call;
  /** What to answer in place of what was thrown; written down where it must be. */
  refuse(error: unknown): Failure;
  /** Once, when it is over. */
  end(): void;
}

export function watchRpc(
  operation: string,
  method: DescMethod,
  options: WatchOptions,
): (arrival: Arrival) => WatchedRpc {
  const { clock, log, metrics, tracing } = options;
  const name = rpcName(method);
  const meter = metrics?.rpc(name);
  return (arrival) => {
    const started = clock.monotonic();
    const { requestId, caller, countedAs } = arrival;
    const span = rpcSpan(tracing, method, arrival);
    let refused: FailureKind | undefined;
    return {
      span,
      newCall(callerDeadline, watchCaller) {
        if (caller === undefined) throw new Error("An rpc of an operation was not admitted");
        return new Call({ requestId, caller, clock, log, callerDeadline, watchCaller });
      },
      refuse(error) {
        const failure = asFailure(error, operation, requestId, log);
        refused = failure.kind;
        logRefusal(log, { failure, requestId, caller: countedAs, request: name });
        return failure;
      },
      end() {
        const durationMs = clock.monotonic() - started;
        meter?.(refused, durationMs);
        endRpcSpan(span, refused);
        const level = refused === "internal" ? "info" : "debug";
        if (log.writes?.(level) === false) return;
        const outcome = refused ?? "ok";
        log[level]("rpc", `${name} ${outcome}`, { requestId, durationMs, caller: caller?.name, outcome });
      },
    };
  };
}
