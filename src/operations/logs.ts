/** Operations on log records (decisions, section 10): listed newest first, or followed as they come. */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { logStretchRecords } from "../limits.ts";
import type { LogRecord, LogRecords } from "../ports/log-records.ts";
import { findLogs, type LogTest, logLevels, testOf } from "./log-search.ts";
import type { Operation, StreamOperation } from "./operation.ts";
import { decodeCursor, type Page, toPage } from "./page.ts";
import { withLastEventId } from "./rpc-requests.ts";
import { cursor, instant, jsonObject, page, pageLimit, processId, text } from "./shapes.ts";

const level = z.enum(logLevels);

const recordShape = z
  .object({
    timestamp: instant.describe("When it was written"),
    seq: z
      .int()
      .positive()
      .meta({ description: "Grows with every record, also over restarts; with gaps", example: 1_795_858_200_017 }),
    level: level.meta({ example: "warn" }),
    event: z.string().meta({ description: "What happened, in kebab-case", example: "auto-update-failed" }),
    message: z.string().meta({ description: "The same for people", example: 'The update of "petstore" failed' }),
    requestId: z
      .string()
      .optional()
      .meta({ description: "Of the call it is about", example: "b1e55ed0-5a1e-4c0f-9d6e-0c0ffee0c0de" }),
    processId: z.number().optional().meta({ example: 42 }),
    serviceId: z.string().optional().meta({ example: "petstore" }),
    moduleId: z.string().optional().meta({ example: "openapi" }),
    registryId: z.string().optional().meta({ example: "community" }),
    toolId: z.string().optional().meta({ example: "getPet" }),
    durationMs: z.number().optional().meta({ description: "How long it took, milliseconds", example: 12.5 }),
    error: z
      .string()
      .optional()
      .meta({ description: "The cause, with its stack", example: "Error: connect ECONNREFUSED 127.0.0.1:9" }),
    fields: jsonObject
      .optional()
      .meta({ description: "What else the line says", example: { route: "/tools", status: 502 } }),
  })
  .meta({ id: "LogRecord", description: "A line of the log; nothing in it is secret" });

const filters = {
  level: level.optional().meta({ description: "Only records of this level", example: "warn" }),
  levelMin: level.optional().meta({ description: "Only records of this level and above", example: "warn" }),
  event: text().optional().meta({ description: "Only records of this event", example: "auto-update-failed" }),
  query: text().optional().describe("Text to find in event, message and error, in any case"),
  processId: processId.optional().describe("Only records about this process"),
  serviceId: text().optional().meta({ description: "Only records about this service", example: "petstore" }),
  moduleId: text().optional().meta({ description: "Only records about this module", example: "openapi" }),
  registryId: text().optional().meta({ description: "Only records about this registry", example: "community" }),
  requestId: text().optional().describe("Only records of the call with this X-Request-Id"),
  from: time("Only records of this time and later"),
  to: time("Only records of this time and earlier"),
};

const filterNames = Object.keys(filters);

/** With any offset from UTC, as callers write them. */
function time(description: string) {
  return z.iso
    .datetime({ offset: true, error: "must be an ISO-8601 time with offset" })
    .optional()
    .meta({ description, example: "2026-11-28T09:30:00.000Z" });
}

const listInput = z.object({ ...filters, cursor, limit: pageLimit });

/** Anything else than a number that can be one is as good as none. */
const lastEventId = z
  .preprocess(
    (value) => (typeof value === "string" && /^[0-9]{1,16}$/.test(value) ? Number(value) : value),
    z.int().nonnegative().optional().catch(undefined),
  )
  .meta({
    description: "The seq of the last record the follower has; absent: only new records",
    example: 1_795_858_200_017,
  });

const watchInput = z.object({ ...filters, lastEventId: lastEventId.optional() });
const watchOutput = z.object({ record: recordShape });

export function logOperations(records: LogRecords): readonly Operation[] {
  const list: Operation<z.infer<typeof listInput>, Page<LogRecord>> = {
    name: "listLogs",
    summary: "List log records, newest first",
    rpcService: "LogService",
    route: { method: "GET", path: "/logs", query: [...filterNames, "cursor", "limit"], body: "none", status: 200 },
    role: "agent",
    input: listInput,
    output: page(recordShape),
    run: async ({ cursor: from, limit, ...filter }) => {
      const below = from === undefined ? undefined : seqOf(from);
      const walked = await findLogs(records, filter, { below, limit });
      return toPage(
        walked,
        (record) => record,
        ({ seq }) => [seq],
      );
    },
  };
  return [list];
}

export function logStreams(records: LogRecords): readonly StreamOperation[] {
  const watch: StreamOperation<z.infer<typeof watchInput>, z.infer<typeof watchOutput>> = {
    name: "watchLogs",
    summary: "Follow the log: records as they are written, from where the follower left",
    rpcService: "LogService",
    route: { path: "/logs/stream", query: [...filterNames, "lastEventId"], resume: "lastEventId" },
    role: "agent",
    input: watchInput,
    output: watchOutput,
    fromRpc: withLastEventId,
    eventOf: ({ record }) => ({ id: String(record.seq), event: "log", data: record }),
    open: async ({ lastEventId: after, ...filter }, { signal }) => {
      const { last } = records;
      return follow(records, testOf(filter), { after: Math.min(after ?? last, last), signal });
    },
  };
  return [watch];
}

async function* follow(
  records: LogRecords,
  test: LogTest | undefined,
  { after, signal }: { readonly after: number; readonly signal: AbortSignal },
): AsyncGenerator<{ record: LogRecord }, void, undefined> {
  for (let position = after; ; ) {
    signal.throwIfAborted();
    const stretch = await records.after(position, logStretchRecords);
    for (const record of stretch) {
      signal.throwIfAborted();
      if (test?.(record) !== false) yield { record };
      position = record.seq;
    }
    if (stretch.length === 0) await records.appended(position, signal);
  }
}

function seqOf(cursorText: string): number {
  const [seq] = decodeCursor(cursorText, ["number"]);
  if (Number.isSafeInteger(seq) && (seq as number) > 0) return seq as number;
  throw new Failure("invalid_cursor", "The cursor belongs to another list: start again from the first page");
}
