/** Which records a list finds, how it goes on while new ones arrive, and what it costs, with records in memory and 100,000 on disk. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { logRecordsReadMax, logStretchRecords } from "../../src/limits.ts";
import { LogBook } from "../../src/observability/log-book.ts";
import { Call, callOperation, openStream } from "../../src/operations/call.ts";
import { logOperations, logStreams } from "../../src/operations/logs.ts";
import type { Page } from "../../src/operations/page.ts";
import { encodeCursor } from "../../src/operations/page.ts";
import type { LogRecord, LogRecords } from "../../src/ports/log-records.ts";
import { openLogDisk } from "../../src/store/log-disk.ts";
import { rememberingLog } from "../control-plane/two-faces.ts";
import { keptLog, temporaryFolder, wallClock } from "../store/parts.ts";

const base = Date.parse("2026-11-28T09:00:00.000Z");
const time = (seconds: number): string => new Date(base + seconds * 1_000).toISOString();

/** Reads are counted. */
class CountedRecords implements LogRecords {
  recordsRead = 0;
  reads = 0;
  readonly book: LogBook;

  constructor(book: LogBook) {
    this.book = book;
  }

  get last(): number {
    return this.book.last;
  }

  async before(seq: number, limit: number): Promise<readonly LogRecord[]> {
    const found = await this.book.before(seq, limit);
    this.reads += 1;
    this.recordsRead += found.length;
    return found;
  }

  after(seq: number, limit: number): Promise<readonly LogRecord[]> {
    return this.book.after(seq, limit);
  }

  appended(seq: number, signal: AbortSignal): Promise<void> {
    return this.book.appended(seq, signal);
  }
}

const newCall = (): Call =>
  new Call({ requestId: "r", caller: { name: "a", role: "agent" }, clock: wallClock, log: rememberingLog().log });

function operationsOf(records: LogRecords) {
  const [list] = logOperations(records);
  const [watch] = logStreams(records);
  if (list === undefined || watch === undefined) throw new Error("There are no rows");
  const ask = async (input: Record<string, unknown> = {}): Promise<Page<LogRecord>> => {
    const page = (await callOperation(list, input, newCall())) as Page<LogRecord>;
    return list.output.parse(page) as z.infer<typeof list.output> as Page<LogRecord>;
  };
  /** Pages until there is no next one. */
  const askAll = async (input: Record<string, unknown>): Promise<{ items: LogRecord[]; pages: number }> => {
    const items: LogRecord[] = [];
    let cursor: string | null | undefined;
    let pages = 0;
    for (; cursor !== null; pages++) {
      const page: Page<LogRecord> = await ask({ ...input, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.hasMore).toBe(page.nextCursor !== null);
      items.push(...page.items);
      cursor = page.nextCursor;
    }
    return { items, pages };
  };
  return { ask, askAll, list, watch };
}

const record = (seq: number, more: Partial<LogRecord> = {}): LogRecord => ({
  timestamp: time(seq),
  seq,
  level: "info",
  event: "thing-done",
  message: `Thing ${seq}`,
  ...more,
});

function inMemory(records: readonly LogRecord[]) {
  const book = new LogBook({ clock: wallClock });
  for (const one of records) book.append(one);
  return { book, ...operationsOf(book) };
}

describe("a list of log records", () => {
  const { ask } = inMemory([
    record(1, { level: "debug", requestId: "req-1", event: "http-request", message: "GET /tools 200" }),
    record(2, { processId: 7, serviceId: "petstore", toolId: "getPet" }),
    record(3, { level: "warn", moduleId: "openapi", message: "It is SLOW" }),
    record(4, {
      level: "error",
      registryId: "community",
      error: "Error: connect ECONNREFUSED\n    at x",
      requestId: "req-1",
    }),
    record(5, { processId: 77, serviceId: "pet", fields: { processId: "7", slow: true } }),
    record(6, { level: "warn", event: "slow-down", processId: 7 }),
  ]);

  it.each<[string, Record<string, unknown>, number[]]>([
    ["nothing asked", {}, [6, 5, 4, 3, 2, 1]],
    ["a level", { level: "warn" }, [6, 3]],
    ["the lowest level", { levelMin: "debug" }, [6, 5, 4, 3, 2, 1]],
    ["a least level", { levelMin: "warn" }, [6, 4, 3]],
    ["the highest least level", { levelMin: "error" }, [4]],
    ["a level below the least", { level: "info", levelMin: "warn" }, []],
    ["an event", { event: "slow-down" }, [6]],
    ["an event in another case, which is another event", { event: "Slow-Down" }, []],
    ["a part of an event, which is none", { event: "slow" }, []],
    ["text of messages and events, in any case", { query: "sLoW" }, [6, 3]],
    ["text of errors", { query: "econnrefused" }, [4]],
    ["text with space around it", { query: "  tools 200 " }, [1]],
    ["blank text", { query: "  " }, [6, 5, 4, 3, 2, 1]],
    ["text that is no pattern", { query: ".*" }, []],
    ["a process by number", { processId: 7 }, [6, 2]],
    ["a process by digits", { processId: "7" }, [6, 2]],
    ["a service", { serviceId: "pet" }, [5]],
    ["a module", { moduleId: "openapi" }, [3]],
    ["a registry", { registryId: "community" }, [4]],
    ["a request", { requestId: "req-1" }, [4, 1]],
    ["from a time on, which counts", { from: time(4) }, [6, 5, 4]],
    ["up to a time, which counts", { to: time(2) }, [2, 1]],
    ["a span of time", { from: time(2), to: time(5) }, [5, 4, 3, 2]],
    ["a span in another time zone", { from: "2026-11-28T10:00:04.000+01:00", to: "2026-11-28T04:00:05-05:00" }, [5, 4]],
    ["an empty span", { from: time(5), to: time(2) }, []],
    ["all together", { levelMin: "info", processId: 7, from: time(2), to: time(6), query: "thing" }, [6, 2]],
  ])("by %s", async (_, input, expected) => {
    const { items, nextCursor } = await ask(input);
    expect(items.map(({ seq }) => seq)).toEqual(expected);
    expect(nextCursor).toBeNull();
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["a level that is none", { level: "fatal" }, "level"],
    ["a level in capitals", { levelMin: "WARN" }, "levelMin"],
    ["process 0", { processId: "0" }, "processId"],
    ["a process that is no number", { processId: "x" }, "processId"],
    ["a day", { from: "2026-11-28" }, "from"],
    ["a time without offset", { to: "2026-11-28T09:00:00" }, "to"],
    ["seconds since 1970", { from: "1795858200" }, "from"],
    ["a date that does not exist", { from: "2026-02-30T00:00:00Z" }, "from"],
    ["NUL in a text", { query: "a\u0000" }, "query"],
    ["half a character", { event: "\ud800" }, "event"],
    ["limit 0", { limit: "0" }, "limit"],
  ])("refuses %s, naming the field", async (_, input, field) => {
    await expect(ask(input)).rejects.toMatchObject({ kind: "invalid_request", details: { fields: [{ field }] } });
  });

  it.each([
    ["of another list", encodeCursor([1_700_000_000_000, 4])],
    ["with text", encodeCursor(["4"])],
    ["with a fraction", encodeCursor([4.5])],
    ["with a negative number", encodeCursor([-4])],
    ["with 0", encodeCursor([0])],
    ["with a number beyond all", encodeCursor([1e300])],
    ["that is none", "x"],
  ])("refuses a cursor %s", async (_, cursor) => {
    await expect(ask({ cursor })).rejects.toMatchObject({ kind: "invalid_cursor" });
  });

  it("has 20 records unless asked, and 100 at most", async () => {
    const many = inMemory(Array.from({ length: 250 }, (_, at) => record(at + 1)));
    expect((await many.ask()).items.length).toBe(20);
    expect((await many.ask({ limit: "1000" })).items.length).toBe(100);
    expect((await many.ask({ limit: "1000", level: "info" })).items.length).toBe(100);
  });

  it("ends exactly, also when its last page is full", async () => {
    const few = inMemory(Array.from({ length: 6 }, (_, at) => record(at + 1)));
    for (const input of [{}, { level: "info" }]) {
      const { items, pages } = await few.askAll({ ...input, limit: 3 });
      expect([items.map(({ seq }) => seq), pages]).toEqual([[6, 5, 4, 3, 2, 1], 2]);
    }
  });

  it("goes on where it was while new records arrive", async () => {
    const growing = inMemory(Array.from({ length: 50 }, (_, at) => record(at + 1)));
    const seen: number[] = [];
    let cursor: string | null | undefined;
    for (let next = 51; cursor !== null; next++) {
      const page: Page<LogRecord> = await growing.ask({ limit: 7, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.items.map(({ seq }) => seq));
      cursor = page.nextCursor;
      growing.book.append(record(next));
    }
    expect(seen).toEqual(Array.from({ length: 50 }, (_, at) => 50 - at));
  });
});

describe("following the log", () => {
  const leavers: AbortController[] = [];
  afterEach(() => {
    for (const leaving of leavers.splice(0)) leaving.abort();
  });

  async function follow(source: ReturnType<typeof inMemory>, input: Record<string, unknown>) {
    const call = newCall();
    const leaving = new AbortController();
    leavers.push(leaving);
    const items = await openStream(
      source.watch,
      input,
      Object.defineProperty(call, "signal", { value: leaving.signal }),
    );
    const iterator = (items as AsyncIterable<{ record: LogRecord }>)[Symbol.asyncIterator]();
    const next = async (): Promise<number> => {
      const { value } = await iterator.next();
      return value.record.seq;
    };
    return { leaving, next };
  }

  it("tells only what is new, unless told where the follower was", async () => {
    const source = inMemory([record(1), record(2), record(3)]);
    const fresh = await follow(source, {});
    const back = await follow(source, { lastEventId: "1" });
    expect([await back.next(), await back.next()]).toEqual([2, 3]);
    source.book.append(record(9));
    expect([await back.next(), await fresh.next()]).toEqual([9, 9]);
  });

  it.each(["x", "-1", "1.5", "", "99999999999999999", "9007199254740992", null])(
    "takes %j for no place to go on from",
    async (lastEventId) => {
      const source = inMemory([record(1)]);
      const fresh = await follow(source, { lastEventId });
      source.book.append(record(2));
      expect(await fresh.next()).toBe(2);
    },
  );

  it("from a place that is yet to come tells what is new", async () => {
    const source = inMemory([record(1)]);
    const early = await follow(source, { lastEventId: "1000" });
    source.book.append(record(2));
    expect(await early.next()).toBe(2);
  });

  it("has the filters of the list", async () => {
    const source = inMemory([record(1), record(2, { level: "warn" }), record(3, { processId: 4, level: "error" })]);
    const warnings = await follow(source, { lastEventId: "0", levelMin: "warn" });
    const process = await follow(source, { lastEventId: "0", processId: "4" });
    expect([await warnings.next(), await warnings.next(), await process.next()]).toEqual([2, 3, 3]);
    await expect(follow(source, { level: "fatal" })).rejects.toMatchObject({ kind: "invalid_request" });
  });

  it("ends when the follower leaves, waiting or not", async () => {
    const source = inMemory([record(1), record(2)]);
    const one = await follow(source, { lastEventId: "0" });
    await one.next();
    one.leaving.abort(new Error("left"));
    await expect(one.next()).rejects.toThrow("left");
    const two = await follow(source, {});
    const waiting = two.next();
    two.leaving.abort(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
  });
});

describe("of 100,000 records", () => {
  const count = 100_000;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let book: LogBook;
  let records: CountedRecords;
  let rows: ReturnType<typeof operationsOf>;

  beforeAll(async () => {
    folder = await temporaryFolder();
    const disk = await openLogDisk({ folder: `${folder.path}/logs`, keep: count, now: () => base, log: keptLog() });
    for (let start = 1; start <= count; start += 1_000) {
      const batch = Array.from({ length: 1_000 }, (_, at) =>
        record(start + at, start + at === 5 ? { event: "rare" } : {}),
      );
      await disk.append(batch.map((one) => [one.seq, JSON.stringify(one)]));
    }
    await disk.close();
    book = new LogBook({ clock: { ...wallClock, now: () => base } });
    await book.keepOn(
      () => openLogDisk({ folder: `${folder.path}/logs`, keep: count, now: () => base, log: keptLog() }),
      keptLog(),
    );
    records = new CountedRecords(book);
    rows = operationsOf(records);
  }, 60_000);

  afterAll(async () => {
    await book.close();
    await folder.remove();
  });

  async function cost(input: Record<string, unknown>): Promise<{ page: Page<LogRecord>; read: number; reads: number }> {
    records.recordsRead = 0;
    records.reads = 0;
    const page = await rows.ask(input);
    return { page, read: records.recordsRead, reads: records.reads };
  }

  it("the last page costs what the first does", async () => {
    const first = await cost({ limit: 100 });
    const last = await cost({ limit: 100, cursor: encodeCursor([101]) });
    expect(first.page.items[0]?.seq).toBe(count);
    expect(last.page.items.map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, at) => 100 - at));
    expect([first.read, first.reads, last.read, last.reads]).toEqual([101, 1, 100, 2]);
    const timed = async (cursor?: string): Promise<number> => {
      const started = performance.now();
      for (let n = 0; n < 50; n++) await rows.ask({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
      return performance.now() - started;
    };
    await timed();
    const [atBegin, atEnd] = [await timed(), await timed(encodeCursor([101]))];
    console.log(`50 pages of 100: ${atBegin.toFixed(0)} ms at the begin, ${atEnd.toFixed(0)} ms at the end`);
    expect(atEnd / atBegin).toBeLessThan(5);
  });

  it("a rare one is found over pages none of which reads more than its share", async () => {
    let cursor: string | null | undefined;
    const found: number[] = [];
    let pages = 0;
    for (; cursor !== null; pages++) {
      const { page, read } = await cost({ event: "rare", ...(cursor === undefined ? {} : { cursor }) });
      expect(read).toBeLessThanOrEqual(logRecordsReadMax + logStretchRecords);
      found.push(...page.items.map(({ seq }) => seq));
      cursor = page.nextCursor;
    }
    expect([found, pages]).toEqual([[5], 6]);
  });

  it("a span of time is found wherever it is, and nothing is read for long after it", async () => {
    for (const start of [10, 50_000, count - 100]) {
      const { page, read } = await cost({ from: time(start), to: time(start + 9), limit: 100 });
      expect(page.items.map(({ seq }) => seq)).toEqual(Array.from({ length: 10 }, (_, at) => start + 9 - at));
      expect(page.nextCursor).toBeNull();
      // An hour to each side, for clocks that were set, and the search.
      expect(read).toBeLessThan(2 * 3_600 + logStretchRecords + 100);
    }
    expect((await cost({ to: time(-7_200) })).page.items).toEqual([]);
    expect((await cost({ from: time(count + 1) })).read).toBeLessThan(3_600 + logStretchRecords + 1);
  });

  it("all come once over all pages", async () => {
    const { items } = await rows.askAll({ limit: 100, from: time(90_001) });
    expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 10_000 }, (_, at) => count - at));
  });
});
