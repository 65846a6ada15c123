/**
 * One rpc per operation row: message to domain shape, call, domain shape to message. It names no operation and no kind; an
 * rpc without a row answers UNIMPLEMENTED.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import { Failure, type FailureKind } from "../errors/failure.ts";
import { asFailure, Call, callOperation, openStream, timedOut } from "../operations/call.ts";
import type { OpenStreams } from "../operations/open-streams.ts";
import type { RpcOperation, RpcStream } from "../operations/operation.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import { arrivedOn, rpcName } from "./admission.ts";
import { messageReader, messageWriter } from "./codec.ts";
import { toConnectError } from "./connect-error.ts";
import { endRpcSpan, rpcSpan } from "./rpc-spans.ts";

export interface RpcRoutesOptions {
  readonly services: readonly DescService[];
  readonly operations: readonly RpcOperation[];
  readonly streams?: readonly RpcStream[] | undefined;
  readonly openStreams: OpenStreams;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: FaceMetrics | undefined;
  readonly tracing?: Tracing | undefined;
}

export function addRpcs(router: ConnectRouter, options: RpcRoutesOptions): void {
  const rows = new Map(options.operations.map((row) => [rowKey(row.rpcService, row.name), row]));
  const streams = new Map(options.streams?.map((row) => [rowKey(row.rpcService, row.name), row]));
  for (const service of options.services) {
    for (const method of service.methods) {
      const key = rowKey(service.name, method.localName);
      const row = rows.get(key);
      const stream = streams.get(key);
      if (row !== undefined) router.rpc(method, serveRow(row, method, options));
      else if (stream !== undefined) router.rpc(method, serveStream(stream, method, options));
      else router.rpc(method, unimplemented(method));
    }
  }
}

/** Rpcs that no row serves, as `ProcessService.CreateProcess`. */
export function rpcsWithoutRow(
  services: readonly DescService[],
  operations: readonly Pick<RpcOperation, "rpcService" | "name">[],
): readonly string[] {
  const rows = new Set(operations.map((row) => rowKey(row.rpcService, row.name)));
  return services.flatMap((service) =>
    service.methods
      .filter((method) => !rows.has(rowKey(service.name, method.localName)))
      .map((method) => `${service.name}.${method.name}`),
  );
}

function rowKey(service: string, operation: string): string {
  return `${service}/${operation}`;
}

function unimplemented(method: DescMethod): MethodImpl<DescMethod> {
  const refuse = (): never => {
    throw new ConnectError(`${method.parent.typeName}.${method.name} is not implemented`, Code.Unimplemented);
  };
  return refuse as unknown as MethodImpl<DescMethod>;
}

function serveRow(row: RpcOperation, method: DescMethod, options: RpcRoutesOptions): MethodImpl<DescMethod> {
  const { clock, tracing } = options;
  const watch = watchOf(row.name, method, options);
  const read = messageReader(method.input);
  const write = messageWriter(method.output);
  const serve = async (request: Parameters<typeof read>[0], context: HandlerContext) => {
    const rpc = watch(context);
    try {
      const leftMs = context.timeoutMs();
      const call = rpc.newCall(leftMs === undefined ? undefined : clock.monotonic() + leftMs);
      const domain = read(request);
      const work = () => callOperation(row, row.fromRpc?.(domain) ?? domain, call);
      return write(await (rpc.span && tracing ? tracing.within(rpc.span.place, work) : work()));
    } catch (error) {
      throw rpc.refuse(error);
    } finally {
      rpc.end();
    }
  };
  return serve as unknown as MethodImpl<DescMethod>;
}

function serveStream(row: RpcStream, method: DescMethod, options: RpcRoutesOptions): MethodImpl<DescMethod> {
  const watch = watchOf(row.name, method, options);
  const read = messageReader(method.input);
  const write = messageWriter(method.output);
  async function* serve(request: Parameters<typeof read>[0], context: HandlerContext) {
    const rpc = watch(context);
    let over: (() => void) | undefined;
    try {
      const call = rpc.newCall(undefined);
      over = options.openStreams.add(call);
      const domain = read(request);
      const items = await openStream(row, row.fromRpc?.(domain) ?? domain, call);
      if (items !== null) for await (const item of items) yield write(item);
    } catch (error) {
      throw rpc.refuse(error);
    } finally {
      over?.();
      rpc.end();
    }
  }
  return serve as unknown as MethodImpl<DescMethod>;
}

/** What an rpc is to whoever watches the server: a call, a span, a count and a line in the log, the same for rows and streams. */
function watchOf(operation: string, method: DescMethod, { clock, log, tracing, metrics }: RpcRoutesOptions) {
  const meter = metrics?.rpc(`${method.parent.typeName}/${method.name}`);
  return (context: HandlerContext) => {
    const started = clock.monotonic();
    const { requestId, caller } = arrivedOn(context);
    const span = rpcSpan(tracing, context);
    let refused: FailureKind | undefined;
    return {
      span,
      newCall(callerDeadline: number | undefined): Call {
        if (caller === undefined) throw new Error("An rpc of an operation was not admitted");
        const watchCaller = (watched: Call) => watchClient(context.signal, operation, watched);
        return new Call({ requestId, caller, clock, log, callerDeadline, watchCaller });
      },
      refuse(error: unknown): ConnectError {
        const failure = asFailure(error, operation, requestId, log);
        refused = failure.kind;
        return toConnectError(failure);
      },
      end(): void {
        const durationMs = clock.monotonic() - started;
        meter?.(refused, durationMs);
        endRpcSpan(span, refused);
        const outcome = refused ?? "ok";
        const level = outcome === "internal" ? "info" : "debug";
        log[level]("rpc", `${rpcName(context)} ${outcome}`, { requestId, durationMs, caller: caller?.name, outcome });
      },
    };
  };
}

/**
 * Connect aborts its signal when the client goes, when the deadline it announced passes (racing with our own timer for the
 * same moment), and when the call is over; by then `end` has nothing left to end.
 */
function watchClient(signal: AbortSignal, operation: string, call: Call): void {
  const over = (): void => {
    const isLate = signal.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
    call.end(isLate ? timedOut(operation) : new Failure("cancelled", "The client went away"));
  };
  if (signal.aborted) over();
  else signal.addEventListener("abort", over, { once: true });
}
