/** Switching environments: new runs go to the new one, the former ends what it runs and is closed once. */
import { describe, expect, it } from "vitest";
import { ActiveEnvironment } from "../../src/modules/active-environment.ts";
import type { Environment } from "../../src/ports/environment.ts";
import type { RunEnd, RunEvents, RunRequest } from "../../src/ports/executor.ts";
import { silentLog } from "../runtime/stage.ts";

const run: RunRequest = {
  runId: "1#1",
  code: "",
  env: {},
  limits: { memoryMb: 16, outputBytes: 1, cpuMs: null },
  seed: 1,
};
const success: RunEnd = { kind: "success", output: "{}" };

function toyEnvironment(id: string) {
  const started: RunEvents[] = [];
  const toy = { started, closed: 0, failsToClose: false };
  const environment: Environment = {
    id,
    docs: async () => id,
    toolDocs: async () => id,
    executor: {
      name: id,
      start: (_, events) => {
        started.push(events);
        return { answer: () => {}, stop: () => events.ended({ kind: "stopped", output: "{}" }) };
      },
      inspect: () => ({ running: started.length }),
      close: async () => {},
    },
    close: async () => {
      toy.closed++;
      if (toy.failsToClose) throw new Error("does not close");
    },
  };
  return { environment, toy };
}

function recorder(): { events: RunEvents; ends: RunEnd[] } {
  const ends: RunEnd[] = [];
  const nothing = (): void => {};
  const events = { started: nothing, stdout: nothing, stderr: nothing, toolCall: nothing };
  return { ends, events: { ...events, ended: (end) => ends.push(end) } };
}

describe("without an active environment", () => {
  it("a run ends as not started, naming what is missing, and docs are unavailable", async () => {
    const active = new ActiveEnvironment(silentLog);
    const { events, ends } = recorder();
    active.start(run, events);
    expect(ends).toEqual([]);
    await Promise.resolve();
    expect(ends).toEqual([
      {
        kind: "failed",
        reason: "not_started",
        error: "There is no active environment: enable a module of type environment",
        output: "{}",
      },
    ]);
    expect(() => active.environment).toThrow("There is no active environment");
  });
});

describe("switching", () => {
  it("sends new runs to the new environment and closes the former after its last run", () => {
    const active = new ActiveEnvironment(silentLog);
    const [a, b] = [toyEnvironment("a"), toyEnvironment("b")];
    active.switchTo("a", a.environment);
    const [first, second, third] = [recorder(), recorder(), recorder()];
    active.start(run, first.events);
    active.start(run, second.events);
    active.switchTo("b", b.environment);
    active.start(run, third.events);
    expect([a.toy.started.length, b.toy.started.length]).toEqual([2, 1]);
    expect(active.alive()).toEqual([
      { moduleId: "b", executor: b.environment.executor, runs: 1, draining: false },
      { moduleId: "a", executor: a.environment.executor, runs: 2, draining: true },
    ]);
    a.toy.started[0]?.ended(success);
    expect(a.toy.closed).toBe(0);
    a.toy.started[1]?.ended(success);
    expect(a.toy.closed).toBe(1);
    expect([first.ends, second.ends, third.ends]).toEqual([[success], [success], []]);
    expect(b.toy.closed).toBe(0);
  });

  it("closes a former environment without runs at once, also when it is the same module again", () => {
    const active = new ActiveEnvironment(silentLog);
    const [old, next] = [toyEnvironment("a"), toyEnvironment("a")];
    active.switchTo("a", old.environment);
    active.switchTo("a", next.environment);
    expect([old.toy.closed, next.toy.closed]).toEqual([1, 0]);
    expect(active.environment).toBe(next.environment);
  });

  it("leaves only the environment of the module that is named", () => {
    const active = new ActiveEnvironment(silentLog);
    const a = toyEnvironment("a");
    active.switchTo("a", a.environment);
    active.leave("b");
    expect(active.moduleId).toBe("a");
    active.leave("a");
    expect(active.moduleId).toBeUndefined();
    expect(a.toy.closed).toBe(1);
  });

  it("close waits for every environment, also for one that fails to close", async () => {
    const active = new ActiveEnvironment(silentLog);
    const [a, b] = [toyEnvironment("a"), toyEnvironment("b")];
    a.toy.failsToClose = true;
    active.switchTo("a", a.environment);
    active.start(run, recorder().events);
    active.switchTo("b", b.environment);
    await active.close();
    expect([a.toy.closed, b.toy.closed]).toEqual([1, 1]);
  });
});
