/** Finding log records: what a filter lets through, from the newest down, without ever reading more than is good for one call. */
import { logClockStepMs, logRecordsReadMax, logStretchRecords } from "../limits.ts";
import type { LogLevel } from "../ports/log.ts";
import type { LogRecord, LogRecords } from "../ports/log-records.ts";
import type { Walked } from "./page.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];

const exactFields = ["level", "event", "requestId", "processId", "serviceId", "moduleId", "registryId"] as const;

export type LogFilter = { readonly [Field in (typeof exactFields)[number]]?: LogRecord[Field] | undefined } & {
  readonly levelMin?: LogLevel | undefined;
  /** Text to find in event, message and error, in any case. */
  readonly query?: string | undefined;
  /** ISO; both inclusive. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

export type LogTest = (record: LogRecord) => boolean;

/** undefined: everything passes. */
export function testOf(filter: LogFilter): LogTest | undefined {
  const tests = [...exactTests(filter), ...levelTest(filter), ...queryTest(filter), ...timeTests(filter)];
  return tests.length === 0 ? undefined : (record) => tests.every((test) => test(record));
}

function exactTests(filter: LogFilter): LogTest[] {
  return exactFields.flatMap((field) => {
    const wanted = filter[field];
    return wanted === undefined ? [] : [(record: LogRecord) => record[field] === wanted];
  });
}

function levelTest({ levelMin }: LogFilter): LogTest[] {
  if (levelMin === undefined) return [];
  const passing: ReadonlySet<LogLevel> = new Set(logLevels.slice(logLevels.indexOf(levelMin)));
  return [({ level }) => passing.has(level)];
}

function queryTest({ query = "" }: LogFilter): LogTest[] {
  const words = query.trim().toLowerCase();
  if (words === "") return [];
  const has = (text: string | undefined): boolean => text?.toLowerCase().includes(words) === true;
  return [({ message, event, error }) => has(message) || has(event) || has(error)];
}

function timeTests({ from, to }: LogFilter): LogTest[] {
  const [least, most] = [from, to].map((time) => (time === undefined ? undefined : Date.parse(time)));
  return [
    ...(least === undefined ? [] : [(record: LogRecord) => timeOf(record) >= least]),
    ...(most === undefined ? [] : [(record: LogRecord) => timeOf(record) <= most]),
  ];
}

/** Newest first, below the position; the answer goes on below its `last`. */
export async function findLogs(
  records: LogRecords,
  filter: LogFilter,
  { below, limit }: { readonly below: number | undefined; readonly limit: number },
): Promise<Walked<LogRecord>> {
  const test = testOf(filter);
  const stretchMax = test === undefined ? limit + 1 : logStretchRecords;
  const oldest = filter.from === undefined ? undefined : Date.parse(filter.from) - logClockStepMs;
  const kept: LogRecord[] = [];
  let lastRead: LogRecord | undefined;
  let position = below ?? (await positionAfter(records, filter.to));
  for (let read = 0; ; ) {
    const stretch = await records.before(position, stretchMax).catch((error: unknown) => {
      if (lastRead === undefined) throw error;
    });
    // The next page has the refusal; this one what could be read.
    if (stretch === undefined) return { kept, last: lastRead };
    for (const record of stretch) {
      if (oldest !== undefined && timeOf(record) < oldest) return { kept, last: undefined };
      if (test?.(record) === false) continue;
      // One more than asked tells whether there is a next page.
      if (kept.length === limit) return { kept, last: kept.at(-1) };
      kept.push(record);
    }
    const lowest = stretch.at(-1);
    if (lowest === undefined) return { kept, last: undefined };
    lastRead = lowest;
    read += stretch.length;
    if (read >= logRecordsReadMax) return { kept, last: lowest };
    position = lowest.seq;
  }
}

/** Above everything of that time: found by halves, because records are in the order of their times but for steps of the clock. */
async function positionAfter(records: LogRecords, to: string | undefined): Promise<number> {
  let high = records.last + 1;
  if (to === undefined) return high;
  const newest = Date.parse(to) + logClockStepMs;
  for (let low = 0; high - low > 1; ) {
    const middle = low + Math.ceil((high - low) / 2);
    const [record] = await records.before(middle, 1);
    if (record === undefined || timeOf(record) <= newest) low = middle;
    else high = record.seq;
  }
  return high;
}

function timeOf({ timestamp }: LogRecord): number {
  return Date.parse(timestamp);
}
