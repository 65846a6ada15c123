/** One line, and the record of it. */
import { describe, expect, it } from "vitest";
import { JsonLog, type RecordKeeper } from "../../src/observability/json-log.ts";
import type { LogLevel } from "../../src/ports/log.ts";
import type { LogRecord } from "../../src/ports/log-records.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

class Kept implements RecordKeeper {
  readonly records: LogRecord[] = [];
  #seq = 100;

  nextSeq(): number {
    return ++this.#seq;
  }

  append(record: LogRecord): void {
    this.records.push(record);
  }
}

function open(level: LogLevel = "debug") {
  const lines: string[] = [];
  const kept = new Kept();
  const clock = new ManualClock(Date.parse("2026-11-28T09:30:00.000Z"));
  const log = new JsonLog({ clock, level, write: (line) => lines.push(line), records: kept });
  return { log, lines, records: kept.records };
}

describe("a log line", () => {
  it("is one JSON object with the fields beside what every line has; its record has them apart", () => {
    const { log, lines, records } = open();
    log.warn("thing-failed", "The thing failed", {
      requestId: "r-1",
      processId: 7,
      durationMs: 1.5,
      route: "/x",
      gone: undefined,
    });
    const head = {
      timestamp: "2026-11-28T09:30:00.000Z",
      seq: 101,
      level: "warn",
      event: "thing-failed",
      message: "The thing failed",
    };
    const known = { requestId: "r-1", processId: 7, durationMs: 1.5 };
    expect(lines).toEqual([`${JSON.stringify({ ...head, ...known, route: "/x" })}\n`]);
    expect(records).toEqual([{ ...head, ...known, fields: { route: "/x" } }]);
  });

  it("below the level is neither written nor kept", () => {
    const { log, lines, records } = open("warn");
    log.debug("a", "a");
    log.info("a", "a");
    log.error("b", "b");
    expect(lines.length).toBe(1);
    expect(records.map(({ seq, event }) => [seq, event])).toEqual([[101, "b"]]);
  });

  it("has the cause of the error with its own causes", () => {
    const { log, records } = open();
    log.error("a", "a", { error: new Error("outer", { cause: new Error("inner") }) });
    expect(records[0]?.error).toMatch(/^Error: outer[\s\S]*at [\s\S]*\[cause\]: Error: inner/);
  });

  it("keeps what every line has against fields of the same name", () => {
    const { log, lines, records } = open();
    log.info("real", "real", { level: "error", seq: -1, timestamp: "never", event: "false", message: "false" });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "info", seq: 101, event: "real", message: "real" });
    expect(records[0]).toMatchObject({ level: "info", seq: 101, event: "real", fields: { level: "error", seq: -1 } });
  });

  it("puts a known field of another type with the others, so that readers can rely on the known ones", () => {
    const { log, records } = open();
    log.info("a", "a", { processId: "7" as never, serviceId: { id: 1 } as never, toolId: "t" });
    expect(records[0]).toMatchObject({ toolId: "t", fields: { processId: "7", serviceId: { id: 1 } } });
    expect(records[0]).not.toHaveProperty("processId");
  });

  it("masks secrets in fields, message and error", () => {
    const { log, lines, records } = open();
    const error = Object.assign(new Error("failed"), { headers: { authorization: "Bearer cnr1" } });
    log.error("a", 'got {"access_token":"cnr2"}', {
      error,
      apiKey: "cnr3",
      request: { cookie: "cnr4" },
      accept: "kept",
    });
    for (const text of [lines.join(), JSON.stringify(records)]) {
      expect(text).not.toMatch(/cnr\d/);
      expect(text).toContain("kept");
    }
  });

  it("is bounded, well-formed and written, whatever it is given", () => {
    const { log, lines, records } = open();
    const hostile = [
      new Proxy(
        {},
        {
          get() {
            throw new Error("no");
          },
        },
      ),
      Object.create(null),
      "\ud800".repeat(10),
      1n,
      null,
    ];
    for (const error of hostile)
      log.error("a", "\udfff".repeat(50_000), { error, big: "x".repeat(1_000_000), error2: error });
    expect(lines.length).toBe(hostile.length);
    for (const line of [...lines, ...records.map((record) => JSON.stringify(record))]) {
      expect(line.length).toBeLessThan(64 * 1024);
      expect(line).not.toMatch(/\\ud[89a-f]/i);
    }
  });
});
