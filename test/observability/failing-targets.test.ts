/** Which service fails is told, and never more often than a minute allows. */
import { describe, expect, it } from "vitest";
import { Failure, failureKinds } from "../../src/errors/failure.ts";
import { failingServicesToldMax, failingServiceTellMs } from "../../src/limits.ts";
import { FailingTargets, targetFailures } from "../../src/observability/failing-targets.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Log, LogFields } from "../../src/ports/log.ts";
import { quietLog, realClock } from "../egress/fixtures.ts";

function stage() {
  let now = 0;
  const lines: { message: string; fields: LogFields }[] = [];
  const log: Log = { ...quietLog, warn: (_event, message, fields = {}) => void lines.push({ message, fields }) };
  const clock: Clock = { ...realClock, monotonic: () => now };
  const targets = new FailingTargets(log, clock);
  const fail = (serviceId: string, kind: Failure["kind"] = "timeout") =>
    targets.failed({ serviceId, toolId: "list" }, new Failure(kind, "Too slow"));
  const pass = (ms: number) => {
    now += ms;
  };
  return { targets, lines, fail, pass };
}

describe("targets that do not answer", () => {
  it.each(failureKinds)("are told of for a failure %s only when it is the target's", (kind) => {
    const { lines, fail } = stage();
    fail("shop", kind);
    expect(lines.length).toBe(targetFailures.includes(kind) ? 1 : 0);
  });

  it("are not told of by a crash of the server's own", () => {
    const { lines, targets } = stage();
    targets.failed({ serviceId: "shop", toolId: "list" }, new Error("A crash"));
    expect(lines).toEqual([]);
  });

  it("have one line a minute each, with the count of what was left out", () => {
    const { lines, fail, pass } = stage();
    for (let n = 0; n < 10_000; n += 1) fail("shop");
    fail("bank");
    pass(failingServiceTellMs);
    fail("shop");
    expect(lines.map(({ fields }) => [fields.serviceId, fields.more])).toEqual([
      ["shop", 0],
      ["bank", 0],
      ["shop", 9_999],
    ]);
    expect(lines[0]).toMatchObject({ message: 'A call of "list" failed: Too slow', fields: { code: "timeout" } });
  });

  it("are bounded in a minute, also when ten thousand services fail by turns, and the next minute has room again", () => {
    const { lines, fail, pass } = stage();
    for (let n = 0; n < 20_000; n += 1) fail(`s${n % 10_000}`);
    expect(lines.length).toBe(failingServicesToldMax);
    pass(failingServiceTellMs);
    fail("late");
    expect(lines.at(-1)?.fields.serviceId).toBe("late");
  });
});
