/** Records over a real LevelDB that is slow, full, stuck, damaged or away: what is kept, what is lost, and that no line ever waits. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { logCloseMs, logWriteMs } from "../../src/limits.ts";
import { JsonLog } from "../../src/observability/json-log.ts";
import { LogBook } from "../../src/observability/log-book.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { LogDisk, LogRecord } from "../../src/ports/log-records.ts";
import { openLogDisk } from "../../src/store/log-disk.ts";
import { keptLog, temporaryFolder, wallClock } from "../store/parts.ts";
import "../property-seed.ts";
import { until } from "../until.ts";

let parent: Awaited<ReturnType<typeof temporaryFolder>>;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  parent = await temporaryFolder();
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await parent.remove();
});

/** As a disk would fail; `stuck`: writes are not answered before it resolves. */
interface Faults {
  opens?: boolean;
  appends?: boolean;
  reads?: boolean;
  delayMs?: number;
  stuck?: Promise<void> | undefined;
}

function faulty(disk: LogDisk, faults: Faults): LogDisk {
  return {
    get last() {
      return disk.last;
    },
    get removedUpTo() {
      return disk.removedUpTo;
    },
    async append(texts) {
      await faults.stuck;
      if (faults.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, faults.delayMs));
      if (faults.appends) throw new Error("ENOSPC: no space left on device");
      await disk.append(texts);
    },
    async read(range) {
      if (faults.reads) throw new Error("EIO: i/o error");
      return disk.read(range);
    },
    close: () => disk.close(),
  };
}

interface Opened {
  readonly book: LogBook;
  readonly log: JsonLog;
  readonly lines: { readonly seq: number; readonly event: string }[];
  readonly faults: Faults;
  /** Resolves when everything written so far is on disk. */
  settled(): Promise<unknown>;
}

interface OpenOptions {
  readonly heldMax?: number;
  readonly keep?: number;
  readonly clock?: Clock;
  readonly faults?: Faults;
  /** Before the disk. */
  readonly early?: (log: JsonLog) => void;
}

async function open({
  heldMax,
  keep = 1_000,
  clock = wallClock,
  faults = {},
  early,
}: OpenOptions = {}): Promise<Opened> {
  const book = new LogBook({ clock, heldMax });
  const lines: Opened["lines"] = [];
  const log = new JsonLog({ clock, level: "debug", records: book, write: (line) => lines.push(JSON.parse(line)) });
  early?.(log);
  let disk: LogDisk | undefined;
  const openDisk = async (): Promise<LogDisk> => {
    if (faults.opens) throw new Error("EACCES: permission denied");
    disk = await openLogDisk({ folder: `${parent.path}/logs`, keep, now: () => clock.now(), log: keptLog() });
    return faulty(disk, faults);
  };
  await book.keepOn(openDisk, log);
  closers.push(() => book.close());
  const settled = () => until(() => disk?.last === book.last);
  return { book, log, lines, faults, settled };
}

const seqs = (records: readonly LogRecord[]): number[] => records.map(({ seq }) => seq);
const everything = async (book: LogBook): Promise<readonly LogRecord[]> => book.after(0, 1_000_000);
const messages = async (book: LogBook): Promise<string[]> => (await everything(book)).map(({ message }) => message);
const at = (time: string): Clock => ({ ...wallClock, now: () => Date.parse(time) });

describe("records", () => {
  it("from before the disk was open are kept, and those of an earlier start are there with them", async () => {
    const first = await open({ early: (log) => log.info("a", "early 1") });
    first.log.info("a", "late 1");
    await first.book.close();
    const second = await open({ early: (log) => log.info("a", "early 2") });
    second.log.info("a", "late 2");
    expect(await messages(second.book)).toEqual(["early 1", "late 1", "early 2", "late 2"]);
    expect((await second.book.before(Number.MAX_SAFE_INTEGER, 3)).map(({ message }) => message)).toEqual([
      "late 2",
      "early 2",
      "late 1",
    ]);
    expect(await second.book.before(second.book.last, 1)).toMatchObject([{ message: "early 2" }]);
  });

  it("come back from disk as they were", async () => {
    const first = await open();
    first.log.error("a", "m", {
      requestId: "r",
      processId: 1,
      toolId: "t",
      durationMs: 0.5,
      error: new Error("e"),
      more: { x: [null] },
    });
    const [written] = await everything(first.book);
    await first.book.close();
    expect(await everything((await open()).book)).toEqual([written]);
  });

  it.each([
    ["later", "2026-11-28T10:00:00.000Z"],
    ["in the same millisecond", "2026-11-28T09:30:00.000Z"],
    ["a year earlier, as the clock has it", "2025-11-28T09:30:00.000Z"],
    ["in 1970, as the clock has it", "1970-01-01T00:00:00.000Z"],
  ])("have higher numbers than all before when the server starts again %s", async (_, time) => {
    const first = await open({ clock: at("2026-11-28T09:30:00.000Z") });
    for (let n = 0; n < 5; n++) first.log.info("a", `first ${n}`);
    await first.book.close();
    const second = await open({ clock: at(time), early: (log) => log.info("a", "second early") });
    second.log.info("a", "second late");
    const found = await everything(second.book);
    expect(found.map(({ message }) => message).slice(-3)).toEqual(["first 4", "second early", "second late"]);
    expect(seqs(found)).toEqual([...new Set(seqs(found))].sort((a, b) => a - b));
    await second.book.close();
    expect(seqs(await everything((await open({ clock: at(time) })).book))).toEqual(seqs(found));
  });

  it("have new numbers also when the ones of the last start never reached the disk", async () => {
    const first = await open({ faults: { appends: true } });
    for (let n = 0; n < 50; n++) first.log.info("a", `lost ${n}`);
    const { last } = first.book;
    await first.book.close();
    await new Promise((resolve) => setTimeout(resolve, 60));
    const second = await open();
    second.log.info("a", "new");
    expect(second.book.last).toBeGreaterThan(last);
  });

  it("without a disk are those in memory", async () => {
    const book = new LogBook({ clock: wallClock, heldMax: 3 });
    const log = new JsonLog({ clock: wallClock, level: "debug", records: book, write: () => undefined });
    expect(await book.before(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
    for (let n = 1; n <= 5; n++) log.info("a", `${n}`);
    expect(await messages(book)).toEqual(["3", "4", "5"]);
    expect((await book.before(book.last + 1, 10)).map(({ message }) => message)).toEqual(["5", "4", "3"]);
    await book.close();
  });

  it("are no more than are kept, in memory as on disk", async () => {
    const { book, log, settled } = await open({ keep: 10 });
    for (let n = 1; n <= 500; n++) log.info("a", `${n}`);
    await settled();
    const found = async () => (await book.before(book.last + 1, 100)).map(({ message }) => message);
    await expect.poll(found).toEqual(Array.from({ length: 10 }, (_, place) => `${500 - place}`));
  });
});

describe("readers", () => {
  it("see every record once and in order, from wherever they come, whatever has left memory and however slow the disk is", {
    timeout: 60_000,
  }, async () => {
    const burst = fc.record({
      count: fc.integer({ min: 1, max: 15 }),
      pauseMs: fc.integer({ min: 0, max: 4 }),
      diskMs: fc.integer({ min: 0, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(burst, { minLength: 5, maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        async (bursts, stretch) => {
          const faults: Faults = {};
          const { book, log } = await open({ heldMax: 40, keep: 100_000, faults });
          const start = book.last;
          const leaving = new AbortController();
          const seen = [0, 1].map(async (which) => {
            const found: LogRecord[] = [];
            for (let position = start; !leaving.signal.aborted; ) {
              const next = await book.after(position, stretch);
              found.push(...next);
              position = next.at(-1)?.seq ?? position;
              if (next.length === 0) await book.appended(position, leaving.signal);
              else if (which === 1) await new Promise((resolve) => setTimeout(resolve, 1));
              if (found.at(-1)?.event === "end") break;
            }
            return seqs(found);
          });
          const written: number[] = [];
          for (const { count, pauseMs, diskMs } of bursts) {
            faults.delayMs = diskMs;
            for (let n = 0; n < count; n++) {
              log.info("a", "m");
              written.push(book.last);
            }
            await new Promise((resolve) => setTimeout(resolve, pauseMs + diskMs));
            const back = seqs(await book.before(book.last + 1, written.length));
            const expected = [...written].reverse();
            expect(back.slice(0, expected.length)).toEqual(expected.slice(0, back.length));
            expect(back.length).toBe(Math.min(expected.length, written.length));
          }
          faults.delayMs = 0;
          log.info("end", "m");
          written.push(book.last);
          const all = await Promise.all(seen);
          leaving.abort();
          await book.close();
          await parent.remove();
          if (book.dropped > 0) return;
          for (const one of all) expect(one).toEqual(written);
        },
      ),
      { numRuns: 12 },
    );
  });

  it("wait for the next record, are woken by it, and by their own leaving", async () => {
    const { book, log } = await open();
    const leaving = new AbortController();
    const { signal } = leaving;
    let woken = 0;
    const waiting = [1, 2, 3].map(() => book.appended(book.last, signal).then(() => woken++));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(woken).toBe(0);
    log.info("a", "m");
    await Promise.all(waiting);
    const more = book.appended(book.last, signal);
    leaving.abort();
    await more;
    await book.appended(book.last, signal);
    await book.appended(0, new AbortController().signal);
  });

  it("are refused what cannot be read, and still get what is in memory", async () => {
    const first = await open();
    first.log.info("a", "old");
    await first.book.close();
    const { book, log, faults } = await open();
    log.info("a", "new");
    faults.reads = true;
    expect(await book.before(book.last + 1, 1)).toMatchObject([{ message: "new" }]);
    expect(await book.before(book.last + 1, 2)).toMatchObject([{ message: "new" }]);
    await expect(book.before(book.last, 2)).rejects.toMatchObject({ kind: "unavailable" });
    await expect(book.after(0, 1)).rejects.toMatchObject({ kind: "unavailable" });
    faults.reads = false;
    expect(await messages(book)).toEqual(["old", "new"]);
  });
});

describe("a disk that fails", () => {
  it("is told of once; what memory held is written when it works again, and what was lost is counted and told", async () => {
    const { book, log, lines, faults, settled } = await open({ heldMax: 50 });
    faults.appends = true;
    for (let n = 1; n <= 100; n++) log.info("a", `${n}`);
    await until(() => lines.some(({ event }) => event === "log-records-not-written"));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(lines.filter(({ event }) => event === "log-records-not-written").length).toBe(1);
    faults.appends = false;
    await until(() => lines.some(({ event }) => event === "log-records-dropped"), 5_000);
    await settled();
    const found = await everything(book);
    const lost = 100 + 1 - 50;
    expect(found.map(({ event, message }) => (event === "a" ? message : event))).toEqual([
      ...Array.from({ length: 49 }, (_, place) => `${place + 52}`),
      "log-records-not-written",
      "log-records-dropped",
    ]);
    expect(found.at(-1)).toMatchObject({ level: "warn", fields: { count: lost } });
    expect(book.dropped).toBe(lost);
  });

  it("for a moment loses nothing", async () => {
    const { book, log, lines, faults, settled } = await open();
    faults.appends = true;
    log.info("a", "1");
    await until(() => lines.some(({ event }) => event === "log-records-not-written"));
    faults.appends = false;
    await until(() => lines.some(({ event }) => event === "log-records-kept"), 5_000);
    await settled();
    expect(await messages(book)).toMatchObject({ 0: "1", length: 3 });
    expect(book.dropped).toBe(0);
  });

  it("does not stop the start when it cannot be opened, and is opened later", async () => {
    const { book, log, lines, faults, settled } = await open({
      faults: { opens: true },
      early: (early) => early.info("a", "early"),
    });
    log.info("a", "later");
    expect(lines.map(({ event }) => event)).toEqual(["a", "log-records-not-written", "a"]);
    expect((await book.before(book.last + 1, 3)).length).toBe(3);
    faults.opens = false;
    await until(() => lines.some(({ event }) => event === "log-records-kept"), 5_000);
    await settled();
    expect((await messages(book)).slice(0, 1)).toEqual(["early"]);
  });

  it("that answers nothing holds up no line, takes no memory, and does not keep the server from ending", {
    timeout: 30_000,
  }, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { book, log, lines, faults, settled } = await open({ heldMax: 100 });
    log.info("a", "first");
    await settled();
    faults.stuck = promise;
    for (let n = 0; n < 10_000; n++) log.info("a", `${n}`);
    await new Promise((done) => setTimeout(done, logWriteMs * 2));
    for (let n = 0; n < 10_000; n++) log.info("a", `${n}`);
    expect(lines.length).toBe(20_001);
    expect(seqs(await book.before(book.last + 1, 100)).length).toBe(100);
    const started = performance.now();
    await book.close();
    expect(performance.now() - started).toBeLessThan(logCloseMs + 2_000);
    resolve();
    await until(() => lines.some(({ event }) => event === "log-records-dropped"));
    // Those that were under way when they left memory are on disk, not lost.
    expect(book.dropped).toBeGreaterThan(19_000);
    expect(book.dropped).toBeLessThan(20_000);
  });
});
