/** How many lines refused callers have in the log, and what the lines say. */
import { beforeEach, describe, expect, it } from "vitest";
import { catalogue } from "../../src/errors/catalogue.ts";
import { Failure, type FailureKind, failureKinds } from "../../src/errors/failure.ts";
import { refusalsTellMs, refusedCallersToldMax } from "../../src/limits.ts";
import { logRefusal, RefusalLog } from "../../src/operations/refusal-log.ts";
import { type LogLine, rememberingLog } from "../control-plane/two-faces.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

let clock: ManualClock;
let lines: LogLine[];
let log: RefusalLog;
beforeEach(() => {
  clock = new ManualClock();
  const remembering = rememberingLog();
  lines = remembering.lines;
  log = new RefusalLog(remembering.log, clock);
});

function refuse(caller: string, kind: FailureKind = "unauthenticated", message = "The bearer key is not known"): void {
  const failure = new Failure(kind, message);
  logRefusal(log, { failure, requestId: "request-1", caller, request: "GET /processes" });
}

const told = () => lines.filter(({ level }) => level === "warn");

describe("a refused caller", () => {
  it("has a line that says who, for what and in which request", () => {
    const exhaustion = { limit: 1, remaining: 0, resetAt: 1, retryAfterSeconds: 1, route: "POST /processes" };
    const failure = new Failure("rate_limit_exceeded", "Too many requests: try again in 1 s", { exhaustion });
    logRefusal(log, { failure, requestId: "request-1", caller: "alice", request: "POST /processes" });
    expect(lines).toEqual([
      {
        level: "warn",
        event: "request-refused",
        message: '"alice" was refused: Too many requests: try again in 1 s',
        fields: {
          requestId: "request-1",
          caller: "alice",
          code: "rate_limit_exceeded",
          request: "POST /processes",
          limit: "POST /processes",
        },
      },
    ]);
  });

  it.each(failureKinds)("is told of when it may not, or not so often: %s", (kind) => {
    refuse("alice", kind);
    expect(lines.length).toBe([401, 403, 429].includes(catalogue[kind].rest) ? 1 : 0);
  });

  it("has one line for 10,000 refusals in a minute, one more that counts them, and the rest at debug", async () => {
    for (let time = 0; time < 10_000; time += 1) refuse("ip 192.0.2.1");
    expect(told()).toHaveLength(1);
    expect(lines.filter(({ level }) => level === "debug")).toHaveLength(9_999);
    await clock.advance(refusalsTellMs);
    expect(told()[1]).toMatchObject({
      message: '9999 times more, the last: "ip 192.0.2.1" was refused: The bearer key is not known',
      fields: { caller: "ip 192.0.2.1", code: "unauthenticated", more: 9_999 },
    });
    expect(told()).toHaveLength(2);
  });

  it("has one line a minute for as long as it goes on, and none afterwards", async () => {
    for (let seconds = 0; seconds < 300; seconds += 1) {
      refuse("alice");
      await clock.advance(1_000);
    }
    const counts = told().map(({ fields }) => fields.more ?? 1);
    expect(counts.slice(0, 5)).toEqual([1, 59, 60, 60, 60]);
    await clock.advance(10 * refusalsTellMs);
    expect(told().reduce((sum, { fields }) => sum + Number(fields.more ?? 1), 0)).toBe(300);
    expect(told()).toHaveLength(6);
    expect(clock.timers).toBe(0);
  });

  it("is new again after a minute of silence", async () => {
    refuse("alice");
    await clock.advance(refusalsTellMs);
    refuse("alice");
    expect(told().map(({ fields }) => fields.requestId)).toEqual(["request-1", "request-1"]);
  });

  it("has lines of its own for each reason, and so has each caller", () => {
    for (let time = 0; time < 3; time += 1) {
      refuse("alice", "forbidden");
      refuse("alice", "rate_limit_exceeded");
      refuse("bob", "forbidden");
    }
    expect(told().map(({ fields: { caller, code } }) => `${caller} ${code}`)).toEqual([
      "alice forbidden",
      "alice rate_limit_exceeded",
      "bob forbidden",
    ]);
  });
});

describe("10,000 callers that are refused", () => {
  const refuseAll = (minute: number): void => {
    for (let address = 0; address < 10_000; address += 1) refuse(`ip ${minute}.0.${address >> 8}.${address & 255}`);
  };

  it("have a bounded number of lines a minute, and those that are not told apart are counted", async () => {
    refuseAll(1);
    expect(told()).toHaveLength(refusedCallersToldMax);
    await clock.advance(refusalsTellMs);
    expect(told().slice(refusedCallersToldMax)).toEqual([
      expect.objectContaining({
        message: `${10_000 - refusedCallersToldMax} refusals of others: ${refusedCallersToldMax} are told apart in a minute`,
        fields: { more: 10_000 - refusedCallersToldMax },
      }),
    ]);
  });

  it("make room for those of the next minute", async () => {
    for (let minute = 1; minute <= 5; minute += 1) {
      refuseAll(minute);
      await clock.advance(refusalsTellMs);
    }
    expect(told()).toHaveLength(5 * (refusedCallersToldMax + 1));
    const callers = told().flatMap(({ fields }) => (fields.caller === undefined ? [] : [String(fields.caller)]));
    expect(new Set(callers.map((caller) => caller.split(".")[0]))).toEqual(
      new Set(["ip 1", "ip 2", "ip 3", "ip 4", "ip 5"]),
    );
    await clock.advance(refusalsTellMs);
    expect(clock.timers).toBe(0);
  });
});

describe("the log of refusals", () => {
  it("passes on everything else as it is", () => {
    const fields = { caller: "alice" };
    for (const level of ["debug", "info", "warn", "error"] as const) {
      for (let time = 0; time < 2; time += 1) log[level]("something", "Something", fields);
    }
    expect(lines.map(({ level }) => level)).toEqual(
      ["debug", "info", "warn", "error"].flatMap((level) => [level, level]),
    );
    expect(lines.every((line) => line.event === "something" && line.fields === fields)).toBe(true);
    expect(log.writes("debug")).toBe(true);
    const quiet = { ...rememberingLog().log, writes: (level: string) => level === "error" };
    expect(new RefusalLog(quiet, clock).writes("warn")).toBe(false);
  });

  it("tells at its end what was not told yet, and nothing is left of it", () => {
    for (let time = 0; time < 3; time += 1) refuse("alice");
    refuse("bob");
    log.close();
    expect(told().map(({ fields: { caller, more } }) => [caller, more])).toEqual([
      ["alice", undefined],
      ["bob", undefined],
      ["alice", 2],
    ]);
    expect(clock.timers).toBe(0);
  });
});
