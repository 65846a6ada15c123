/**
 * One rpc per operation row: message to domain shape, call, domain shape to message. It names no operation and no kind; an
 * rpc without a row answers UNIMPLEMENTED.
 */
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import { Failure } from "../errors/failure.ts";
import { type Call, openStream, timedOut } from "../operations/call.ts";
import type { OpenStreams } from "../operations/open-streams.ts";
import type { RpcOperation, RpcStream } from "../operations/operation.ts";
import { arrivedOn } from "./admission.ts";
import { messageReader, messageWriter } from "./codec.ts";
import { toConnectError } from "./connect-error.ts";
import { withProtoPaths } from "./field-paths.ts";
import { type WatchOptions, watchRpc } from "./rpc-watch.ts";
import { rowServer } from "./serve-row.ts";
import type { UnaryRpc } from "./unary-grpc.ts";

export interface RpcRoutesOptions extends WatchOptions {
  readonly services: readonly DescService[];
  /** What rows serve with one message for another; the short way answers from the same. */
  readonly unary: ReadonlyMap<string, UnaryRpc>;
  readonly streams?: readonly RpcStream[] | undefined;
  readonly openStreams: OpenStreams;
}

export function addRpcs(router: ConnectRouter, options: RpcRoutesOptions): void {
  const streams = new Map(options.streams?.map((row) => [rowKey(row.rpcService, row.name), row]));
  for (const method of options.services.flatMap((service) => service.methods)) {
    const unary = options.unary.get(pathOf(method));
    const stream = streams.get(rowKey(method.parent.name, method.localName));
    if (unary !== undefined) router.rpc(method, serveUnary(unary));
    else if (stream !== undefined) router.rpc(method, serveStream(stream, method, options));
    else router.rpc(method, unimplemented(method));
  }
}

/** By path: what rows serve with one message for another. */
export function unaryRpcs(
  services: readonly DescService[],
  operations: readonly RpcOperation[],
  options: WatchOptions,
): ReadonlyMap<string, UnaryRpc> {
  const rows = new Map(operations.map((row) => [rowKey(row.rpcService, row.name), row]));
  const rpcs = new Map<string, UnaryRpc>();
  for (const method of services.flatMap((service) => service.methods)) {
    const row = rows.get(rowKey(method.parent.name, method.localName));
    if (row === undefined) continue;
    rpcs.set(pathOf(method), { method, answer: rowServer(row, method, options) });
  }
  return rpcs;
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

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
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

function serveUnary({ method, answer }: UnaryRpc): MethodImpl<DescMethod> {
  const serve = async (message: Message, context: HandlerContext) => {
    try {
      const watchCaller = (call: Call) => watchClient(context.signal, method.localName, call);
      return await answer({ message, arrival: arrivedOn(context), leftMs: context.timeoutMs(), watchCaller });
    } catch (error) {
      throw toConnectError(error as Failure);
    }
  };
  return serve as unknown as MethodImpl<DescMethod>;
}

function serveStream(row: RpcStream, method: DescMethod, options: RpcRoutesOptions): MethodImpl<DescMethod> {
  const watch = watchRpc(row.name, method, options);
  const read = messageReader(method.input);
  const write = messageWriter(method.output);
  async function* serve(request: Message, context: HandlerContext) {
    const rpc = watch(arrivedOn(context));
    let over: (() => void) | undefined;
    try {
      const call = rpc.newCall(undefined, (watched) => watchClient(context.signal, row.name, watched));
      over = options.openStreams.add(call);
      const domain = read(request);
      const items = await openStream(row, row.fromRpc?.(domain) ?? domain, call);
      if (items !== null) for await (const item of items) yield* takenBy(write(item));
    } catch (error) {
      throw toConnectError(withProtoPaths(rpc.refuse(error), method.input));
    } finally {
      over?.();
      rpc.end();
    }
  }
  return serve as unknown as MethodImpl<DescMethod>;
}

/** What comes back from where an item is handed over is the trouble of whoever takes it: its connection is gone. */
function* takenBy(item: Message): Iterable<Message> {
  try {
    yield item;
  } catch (error) {
    throw new Failure("cancelled", "The client went away", { cause: error });
  }
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
