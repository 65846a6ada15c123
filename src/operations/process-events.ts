/** The events of a process (decisions, section 3): server-sent events over REST, WatchProcess over gRPC. */
import { z } from "zod";
import { lifecycleStates } from "../actors/process.ts";
import { recordingBytesMax } from "../limits.ts";
import { EndedRecordings } from "./ended-recordings.ts";
import type { StreamEvent, StreamOperation } from "./operation.ts";
import { type Followed, followProcess, type NumberedHappening } from "./process-follower.ts";
import { snapshotShape, toSnapshot } from "./processes.ts";
import { withLastEventId } from "./rpc-requests.ts";
import { jsonObject, processId } from "./shapes.ts";

const toolCallShape = z
  .object({
    callId: z.int().nonnegative().meta({ description: "Counts the calls of one run", example: 1 }),
    serviceId: z.string().meta({ example: "petstore" }),
    toolId: z.string().meta({ example: "getPet" }),
    state: z.enum(["started", "ok", "failed"]),
    code: z.string().optional().meta({ description: "Why it failed", example: "not_found" }),
    durationMs: z.number().nonnegative().optional().meta({ description: "Once it has ended", example: 12 }),
  })
  .meta({ id: "ToolCallEvent", description: "A tool call of the program began or ended" });

const eventShape = z
  .object({
    sequence: z.int().meta({ description: "Grows with every event of the process", example: 1_000_001 }),
    kind: z
      .enum(["snapshot", "state", "stdout", "stderr", "toolCall", "output", "truncated"])
      .describe(`truncated: what the run printed and called beyond ${recordingBytesMax} bytes is not among its events`),
    process: snapshotShape.optional().describe("Of a snapshot, and of the state idle"),
    state: z.enum(lifecycleStates).optional().describe("Of a state: the one the process is in now"),
    reason: z.string().nullable().optional().meta({ description: "Of the state idle: why it failed", example: null }),
    text: z
      .string()
      .optional()
      .meta({ description: "Of stdout and stderr: what was printed", example: "three pets\n" }),
    toolCall: toolCallShape.optional(),
    output: jsonObject.optional().meta({ description: "Of output: what the program put out", example: { total: 3 } }),
  })
  .meta({ id: "ProcessEvent", description: "Something that happened to a process" });

export type ProcessEvent = z.infer<typeof eventShape>;

/** Anything else than a number that can be one is as good as none: the follower starts over. */
const lastEventId = z
  .preprocess(
    (value) => (typeof value === "string" && /^[0-9]{1,15}$/.test(value) ? Number(value) : value),
    z.int().nonnegative().optional().catch(undefined),
  )
  .meta({ description: "The id of the last event the follower has; unknown ones start over", example: 1_000_001 });

const input = z.object({ id: processId, lastEventId: lastEventId.optional() });

export function processStreams(runs: Omit<Followed, "recordings">): readonly StreamOperation[] {
  const followed: Followed = { ...runs, recordings: new EndedRecordings() };
  const watch: StreamOperation<z.infer<typeof input>, ProcessEvent> = {
    name: "watchProcess",
    summary: "Follow a process: what its run did so far, then what it does, until it is over",
    rpcService: "ProcessService",
    route: { path: "/processes/{id}/events", query: ["lastEventId"], resume: "lastEventId" },
    role: "agent",
    input,
    output: eventShape,
    fromRpc: withLastEventId,
    eventOf,
    async open({ id, lastEventId: after }, { signal }) {
      const happenings = await followProcess(followed, { id, after, signal });
      return happenings === null ? null : events(happenings, () => followed.processes.pid(String(id)));
    },
  };
  return [watch];
}

async function* events(
  happenings: AsyncIterable<NumberedHappening>,
  pid: () => number | null,
): AsyncGenerator<ProcessEvent, void, undefined> {
  for await (const happening of happenings) {
    if (!("process" in happening)) yield happening;
    else {
      const { process, ...rest } = happening;
      const isIdle = rest.kind === "state";
      yield { ...rest, process: toSnapshot(process, pid()), ...(isIdle ? { reason: process.reason } : {}) };
    }
  }
}

function eventOf({ sequence, kind, ...fields }: ProcessEvent): StreamEvent {
  const id = String(sequence);
  switch (kind) {
    case "snapshot":
      return { id, event: kind, data: fields.process };
    case "toolCall":
      return { id, event: "tool-call", data: fields.toolCall };
    default:
      return { id, event: kind, data: fields };
  }
}
