/** A stream over the real WatchLogs descriptors; what it tells is the test's. */
import { z } from "zod";
import type { StreamOperation } from "../../src/operations/operation.ts";

export function logStream(tell: (signal: AbortSignal) => AsyncIterable<unknown>): StreamOperation {
  return {
    rpcService: "LogService",
    role: "agent",
    name: "watchLogs",
    summary: "Watch",
    route: { path: "/logs/stream", resume: "fromSequence" },
    input: z.looseObject({}),
    output: z.looseObject({}),
    eventOf: () => ({ id: "1", event: "log", data: {} }),
    open: async (_, { signal }) => tell(signal),
  };
}
