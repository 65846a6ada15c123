import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { type LauncherOptions, RunQueue } from "../../src/executor/launcher.ts";
import type { RunResult } from "../../src/ports/launcher.ts";
import { ManualClock, settle } from "../runtime/manual-clock.ts";
import { ScriptedExecutor, type ScriptedRun } from "./scripted-executor.ts";

const limits = { memoryMb: 128, outputBytes: 1_000, cpuMs: null };

function openQueue(more: Partial<LauncherOptions> = {}) {
  const executor = new ScriptedExecutor();
  const clock = new ManualClock();
  const queue = new RunQueue({
    executor,
    clock,
    concurrency: 2,
    queueMax: 3,
    limits,
    toolTimeoutMs: 1_000,
    callTool: async () => null,
    ...more,
  });
  const admitted: number[] = [];
  const results = new Map<number, RunResult>();
  const enqueue = (processId: number): void => queue.enqueue({ processId, run: 1 }, () => admitted.push(processId));
  const execute = (processId: number, timeoutMs: number | null = null, envConfig = {}): ScriptedRun => {
    queue.execute({ processId, run: 1, code: "", envConfig, timeoutMs }, (result) => results.set(processId, result));
    return executor.runs.at(-1) as ScriptedRun;
  };
  return { queue, executor, clock, admitted, results, enqueue, execute };
}

describe("the run queue", () => {
  it("admits as many as there are slots, then one for each that ends, in order", () => {
    const { enqueue, execute, admitted } = openQueue();
    for (const id of [1, 2, 3, 4]) enqueue(id);
    expect(admitted).toEqual([1, 2]);
    const first = execute(1);
    execute(2);
    expect(admitted).toEqual([1, 2]);
    first.end();
    expect(admitted).toEqual([1, 2, 3]);
  });

  it("gives the slot of an admitted run that will not execute to the next", () => {
    const { queue, enqueue, admitted } = openQueue({ concurrency: 1 });
    enqueue(1);
    enqueue(2);
    queue.release({ processId: 1, run: 1 });
    expect(admitted).toEqual([1, 2]);
  });

  it("forgets a waiting run that is released", () => {
    const { queue, enqueue, execute, admitted } = openQueue({ concurrency: 1 });
    for (const id of [1, 2, 3]) enqueue(id);
    queue.release({ processId: 2, run: 1 });
    execute(1).end();
    expect(admitted).toEqual([1, 3]);
  });

  it("takes the same run once", () => {
    const { enqueue, execute, admitted, executor } = openQueue();
    enqueue(1);
    enqueue(1);
    execute(1);
    enqueue(1);
    expect(admitted).toEqual([1]);
    expect(executor.runs).toHaveLength(1);
  });

  it("refuses a place when full, counting places reserved but not yet taken, and says what is full", () => {
    const { queue, enqueue } = openQueue({ concurrency: 1 });
    enqueue(1);
    enqueue(2);
    enqueue(3);
    const giveBack = queue.reserve();
    try {
      queue.reserve();
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(Failure);
      expect((error as Failure).kind).toBe("queue_full");
      expect((error as Failure).details.exhaustion).toMatchObject({ limit: 3, remaining: 0, retryAfterSeconds: 1 });
    }
    giveBack();
    giveBack();
    expect(() => queue.reserve()).not.toThrow();
    expect(() => queue.reserve()).toThrow("3 processes are waiting");
  });

  it("keeps what a run printed, while it runs and at its end", () => {
    const { queue, execute, results } = openQueue();
    const run = execute(1);
    run.events.stdout("a");
    run.events.stderr("!");
    run.events.stdout("b");
    expect(queue.live({ processId: 1, run: 1 })).toEqual({ stdout: "ab", stderr: "!" });
    run.end({ kind: "success", output: '{"x":1}' });
    expect(queue.live({ processId: 1, run: 1 })).toBeUndefined();
    expect(results.get(1)).toEqual({
      ending: "success",
      reason: null,
      error: null,
      output: '{"x":1}',
      stdout: "ab",
      stderr: "!",
      events: JSON.stringify([
        { kind: "state", state: "running" },
        { kind: "stdout", text: "a" },
        { kind: "stderr", text: "!" },
        { kind: "stdout", text: "b" },
      ]),
    });
  });

  it("stops a run at its deadline, and it stays timed out whatever it returns then", async () => {
    for (const end of [{ kind: "stopped" }, { kind: "success" }] as const) {
      const { execute, clock, results } = openQueue();
      const run = execute(1, 50);
      await clock.advance(49);
      expect(run.stops).toBe(0);
      await clock.advance(2);
      expect(run.stops).toBe(1);
      run.end(end);
      expect(results.get(1)).toMatchObject({
        ending: "timeout",
        reason: "timeout",
        error: "The process ran longer than its limit of 50 ms",
      });
    }
  });

  it.each([0.4, 1.5])("rounds a limit of %d ms up", async (timeoutMs) => {
    const { execute, clock } = openQueue();
    const run = execute(1, timeoutMs);
    await clock.advance(Math.ceil(timeoutMs) - 0.5);
    expect(run.stops).toBe(0);
    await clock.advance(0.5);
    expect(run.stops).toBe(1);
  });

  it.each([null, Number.POSITIVE_INFINITY])("sets no timer for a limit of %s", (timeoutMs) => {
    const { execute, clock } = openQueue();
    execute(1, timeoutMs);
    expect(clock.timers).toBe(0);
  });

  it("lets envConfig lower limits, never raise them, and ignores nonsense", () => {
    const { execute } = openQueue();
    const limited = (asked: unknown): unknown => execute(1, null, { limits: asked }).request.limits;
    expect(limited({ memoryMb: 16, cpuMs: 5 })).toEqual({ ...limits, memoryMb: 16, cpuMs: 5 });
    expect(limited({ memoryMb: 4_096 })).toEqual(limits);
    for (const nonsense of ["x", null, { memoryMb: "16", cpuMs: -1 }, { memoryMb: Number.NaN }]) {
      expect(limited(nonsense)).toEqual(limits);
    }
  });

  it("answers tool calls, with a code and a status when they fail", async () => {
    const { execute } = openQueue({
      callTool: async ({ toolId }) => {
        if (toolId === "good") return { pets: 2 };
        if (toolId === "bad") throw new Failure("not_found", "There is no such tool");
        throw new Error("secret detail");
      },
    });
    const run = execute(1);
    ["good", "bad", "crash"].forEach((toolId, callId) => {
      run.events.toolCall({ callId, serviceId: "s", toolId, parameters: undefined });
    });
    await settle();
    expect(run.answers.sort((a, b) => a.callId - b.callId).map(({ answer }) => answer)).toEqual([
      { ok: true, value: { pets: 2 } },
      { ok: false, message: "There is no such tool", code: "not_found", status: 404 },
      { ok: false, message: "The tool call failed inside the server", code: "internal", status: 500 },
    ]);
  });

  it("calls off the tool calls of a run that has ended", async () => {
    let signal: AbortSignal | undefined;
    const { execute } = openQueue({
      callTool: (_, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
    });
    const run = execute(1);
    run.events.toolCall({ callId: 1, serviceId: "s", toolId: "t", parameters: {} });
    run.end();
    expect(signal?.aborted).toBe(true);
  });

  it("records what a run did, in order, and whoever holds the recording may read on when the run has ended", async () => {
    const { queue, execute, clock, results } = openQueue({
      callTool: async ({ toolId }) => {
        await new Promise<void>((resolve) => clock.after(20, resolve));
        if (toolId === "bad") throw new Failure("not_found", "There is no such tool");
        return "secret answer";
      },
    });
    const run = execute(1);
    const recording = queue.recording({ processId: 1, run: 1 });
    run.events.stdout("before");
    run.events.toolCall({ callId: 1, serviceId: "s", toolId: "good", parameters: { secret: true } });
    run.events.toolCall({ callId: 2, serviceId: "s", toolId: "bad", parameters: {} });
    await clock.advance(20);
    queue.stop({ processId: 1, run: 1 });
    run.end({ kind: "stopped", output: '{"x":1}' });
    const call = (callId: number, toolId: string, more: object) => ({
      kind: "toolCall",
      toolCall: { callId, serviceId: "s", toolId, ...more },
    });
    expect(recording?.events).toEqual([
      { kind: "state", state: "running" },
      { kind: "stdout", text: "before" },
      call(1, "good", { state: "started" }),
      call(2, "bad", { state: "started" }),
      call(1, "good", { state: "ok", durationMs: 20 }),
      call(2, "bad", { state: "failed", code: "not_found", durationMs: 20 }),
      { kind: "state", state: "terminating" },
    ]);
    expect(recording?.output).toBe('{"x":1}');
    expect(JSON.parse(results.get(1)?.events ?? "")).toEqual(recording?.events);
    expect(queue.recording({ processId: 1, run: 1 })).toBeUndefined();
  });

  it("wakes whoever waits for a run once: when it begins, with what it does, and when it ends", () => {
    const { queue, execute } = openQueue();
    const woken: string[] = [];
    const wait = (name: string) => queue.onRecorded({ processId: 1, run: 1 }, () => woken.push(name));
    wait("begins");
    wait("forgotten")();
    const run = execute(1);
    expect(woken).toEqual(["begins"]);
    wait("prints");
    run.events.stdout("a");
    run.events.stdout("b");
    wait("ends");
    run.end();
    expect(woken).toEqual(["begins", "prints", "ends"]);
  });

  it("stops a run that was told to stop after it was admitted and before it executes", () => {
    const { queue, enqueue, execute } = openQueue();
    enqueue(1);
    queue.stop({ processId: 1, run: 1 });
    const run = execute(1);
    expect(run.stops).toBe(1);
    expect(queue.recording({ processId: 1, run: 1 })?.events.at(-1)).toEqual({ kind: "state", state: "terminating" });
    expect(execute(2).stops).toBe(0);
  });

  it("drains: nobody is admitted any more, and it is done when the last run has ended", async () => {
    const { queue, enqueue, execute, admitted } = openQueue({ concurrency: 1 });
    enqueue(1);
    enqueue(2);
    const run = execute(1);
    let done = false;
    const drained = queue.drain().then(() => {
      done = true;
    });
    await settle();
    expect(done).toBe(false);
    queue.stopAll();
    expect(run.stops).toBe(1);
    run.end({ kind: "stopped" });
    await drained;
    expect(admitted).toEqual([1]);
  });

  it("drains: an admitted run that has not begun to execute is waited for, and stopped when all are", async () => {
    const { queue, enqueue, execute } = openQueue({ concurrency: 1 });
    enqueue(1);
    let done = false;
    const drained = queue.drain().then(() => {
      done = true;
    });
    await settle();
    expect(done).toBe(false);
    queue.stopAll();
    const run = execute(1);
    expect(run.stops).toBe(1);
    run.end({ kind: "stopped" });
    await drained;
  });

  it("drains at once when the admitted run gives its slot back", async () => {
    const { queue, enqueue } = openQueue({ concurrency: 1 });
    enqueue(1);
    const drained = queue.drain();
    queue.release({ processId: 1, run: 1 });
    await drained;
  });

  it("held, admits nobody before it begins", () => {
    const { queue, enqueue, admitted } = openQueue({ concurrency: 2, held: true });
    enqueue(1);
    enqueue(2);
    enqueue(3);
    expect(admitted).toEqual([]);
    queue.begin();
    expect(admitted).toEqual([1, 2]);
  });
});
