/** One row as an rpc, whichever way it came: message to domain shape, call, domain shape to message. */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type Call, callOperation } from "../operations/call.ts";
import type { RpcOperation } from "../operations/operation.ts";
import type { Arrival } from "./arrival.ts";
import { messageReader, messageWriter } from "./codec.ts";
import { withProtoPaths } from "./field-paths.ts";
import { type WatchOptions, watchRpc } from "./rpc-watch.ts";

export interface RpcRequest {
  readonly message: Message;
  readonly arrival: Arrival;
  /** Milliseconds until its caller stops waiting; undefined when that was not said. */
  readonly leftMs: number | undefined;
  readonly watchCaller: (call: Call) => void;
}

/** The answer rejects with Failure only. */
export function rowServer(
  row: RpcOperation,
  method: DescMethod,
  options: WatchOptions,
): (request: RpcRequest) => Promise<Message> {
  const { clock, tracing } = options;
  const watch = watchRpc(row.name, method, options);
  const read = messageReader(method.input);
  const write = messageWriter(method.output);
  return async ({ message, arrival, leftMs, watchCaller }) => {
    const rpc = watch(arrival);
    try {
      const call = rpc.newCall(leftMs === undefined ? undefined : clock.monotonic() + leftMs, watchCaller);
      const domain = read(message);
      const work = () => callOperation(row, row.fromRpc?.(domain) ?? domain, call);
      return write(await (rpc.span && tracing ? tracing.within(rpc.span.place, work) : work()));
    } catch (error) {
      throw withProtoPaths(rpc.refuse(error), method.input);
    } finally {
      rpc.end();
    }
  };
}
