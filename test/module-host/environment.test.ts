import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { stopGraceMs } from "../../src/limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Environment } from "../../src/ports/environment.ts";
import type { RunEnd, RunEvents, ToolCall } from "../../src/ports/executor.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { environmentCode, hosted, type OpenHost, openSharedHost, writeModule } from "./modules.ts";

interface Followed {
  readonly ended: Promise<RunEnd>;
  readonly said: { stdout: string; stderr: string };
  readonly ends: RunEnd[];
  stop(): void;
}

let host: OpenHost;
beforeAll(async () => {
  host = await openSharedHost({ unresponsiveMs: 1_000 });
});
afterAll(() => host.close());

async function open(programs: Readonly<Record<string, string>>): Promise<Environment> {
  const environment = await host.openEnvironment(
    hosted(writeModule(environmentCode(programs), { type: "environment" })),
  );
  onTestFinished(() => environment.close());
  return environment;
}

function run(
  environment: Environment,
  code: string,
  onCall?: (call: ToolCall) => unknown,
  outputBytes = 10_000,
): Followed {
  const said = { stdout: "", stderr: "" };
  const ends: RunEnd[] = [];
  const { promise, resolve } = Promise.withResolvers<RunEnd>();
  const events: RunEvents = {
    started: () => undefined,
    stdout: (text) => {
      said.stdout += text;
    },
    stderr: (text) => {
      said.stderr += text;
    },
    toolCall: (call) => handle.answer(call.callId, { ok: true, value: onCall?.(call) }),
    ended: (end) => {
      ends.push(end);
      resolve(end);
    },
  };
  const handle = environment.executor.start(
    {
      runId: `${code}-${Math.random()}`,
      code,
      env: { name: "x" },
      limits: { memoryMb: 64, outputBytes, cpuMs: null },
      seed: 1,
    },
    events,
  );
  return { ended: promise, said, ends, stop: () => handle.stop() };
}

it("runs programs with output, streams and tool calls", async () => {
  const environment = await open({
    all: `run.stdout("out " + run.env.name); run.stderr("err"); run.output({ a: 1, b: 2 }); run.output({ b: 3 });
      run.output({ got: await run.callTool("pets", "get", { id: 7 }) });`,
  });
  const followed = run(environment, "all", ({ serviceId, toolId, parameters }) => ({ serviceId, toolId, parameters }));
  const end = await followed.ended;
  expect(end).toMatchObject({ kind: "success" });
  expect(JSON.parse(end.output)).toEqual({
    a: 1,
    b: 3,
    got: { serviceId: "pets", toolId: "get", parameters: { id: 7 } },
  });
  expect(followed.said).toEqual({ stdout: "out x", stderr: "err" });
  expect(await environment.docs()).toBe("# Programs");
  const tool = {
    serviceId: "pets",
    id: "get",
    name: "",
    summary: "",
    description: "",
    inputSchema: {},
    outputSchema: true,
  };
  expect(await environment.toolDocs(tool)).toBe("call pets.get");
});

describe("the end of a run", () => {
  const executorCrashed = { kind: "failed", reason: "executor_crashed" };
  const cases: readonly (readonly [name: string, program: string, end: object])[] = [
    ["is success", ``, { kind: "success", output: "{}" }],
    [
      "is the program's fault",
      `return { status: "failed", reason: "thrown", error: "boom" }`,
      { kind: "failed", reason: "thrown", error: "boom" },
    ],
    [
      "is a long error, cut",
      `return { status: "failed", reason: "syntax", error: "x".repeat(100000) }`,
      { reason: "syntax", error: "x".repeat(8192) },
    ],
    ["is no end", `return { status: "done" }`, executorCrashed],
    ["is a reason that is none", `return { status: "failed", reason: "timeout", error: "" }`, executorCrashed],
    ["is an error of the environment", `throw new Error("lost")`, { ...executorCrashed, error: "The program: lost" }],
    ["is the end of its process", `process.exit(4)`, executorCrashed],
    ["is an endless loop", `for (;;);`, executorCrashed],
    ["is all its memory", `const all = []; for (;;) all.push(new Array(1e5).fill(all.length))`, executorCrashed],
    [
      "keeps what was captured",
      `run.output({ a: 1 }); await new Promise((r) => setTimeout(r, 20)); process.exit(4)`,
      { ...executorCrashed, output: '{"a":1}' },
    ],
    [
      "is too much stdout",
      `for (let i = 0; i < 3; i++) run.stdout("ü".repeat(3000)); await killed`,
      { kind: "failed", reason: "output_too_large" },
    ],
    [
      "is too much output",
      `run.output({ a: "x".repeat(20000) }); await killed`,
      { kind: "failed", reason: "output_too_large", output: "{}" },
    ],
    [
      "leaves out what is no JSON",
      `run.output({ a: undefined, b: () => 1, c: 1, ["__proto__"]: 2 })`,
      { kind: "success", output: '{"c":1,"__proto__":2}' },
    ],
  ];
  it.each(cases)("%s", async (_name, program, end) => {
    const environment = await open({ program, ok: `` });
    const followed = run(environment, "program");
    expect(await followed.ended).toMatchObject(end);
    expect(Buffer.byteLength(followed.said.stdout)).toBeLessThanOrEqual(10_000);
    expect(await run(environment, "ok").ended).toMatchObject({ kind: "success" });
    expect(followed.ends).toHaveLength(1);
  });
});

describe("a run that is stopped", () => {
  it("ends as stopped when the environment does it, and the others go on", async () => {
    const environment = await open({
      wait: `run.output({ a: 1 }); await killed`,
      other: `await new Promise((r) => setTimeout(r, 300))`,
    });
    const [stopped, other] = [run(environment, "wait"), run(environment, "other")];
    await new Promise((resolve) => setTimeout(resolve, 100));
    stopped.stop();
    stopped.stop();
    expect(await stopped.ended).toEqual({ kind: "stopped", output: '{"a":1}' });
    expect(await other.ended).toMatchObject({ kind: "success" });
    expect(stopped.ends).toHaveLength(1);
  });

  it("takes its process with it when the environment does nothing", async () => {
    const environment = await open({ deaf: `await new Promise(() => {})`, ok: `` });
    const [deaf, other] = [run(environment, "deaf"), run(environment, "deaf")];
    await new Promise((resolve) => setTimeout(resolve, 100));
    deaf.stop();
    expect(await deaf.ended).toMatchObject({ kind: "stopped" });
    expect(await other.ended).toMatchObject({ kind: "failed", reason: "executor_crashed" });
    expect(await run(environment, "ok").ended).toMatchObject({ kind: "success" });
    expect([...deaf.ends, ...other.ends]).toHaveLength(2);
  });

  it("takes no run with it that starts in the moment its process is ended by force", async () => {
    let atKill = () => {};
    const clock: Clock = {
      ...systemClock,
      after: (ms, act) =>
        systemClock.after(ms, () => {
          act();
          if (ms === stopGraceMs) atKill();
        }),
    };
    const own = await openSharedHost({ clock });
    onTestFinished(() => own.close());
    const code = environmentCode({ deaf: `await new Promise(() => {})`, ok: `run.output({ ok: true })` });
    const environment = await own.openEnvironment(hosted(writeModule(code, { type: "environment" })));
    const late = Promise.withResolvers<RunEnd>();
    atKill = () => void run(environment, "ok").ended.then(late.resolve);
    const deaf = run(environment, "deaf");
    await new Promise((resolve) => setTimeout(resolve, 100));
    deaf.stop();
    expect(await deaf.ended).toMatchObject({ kind: "stopped" });
    expect(await late.promise).toEqual({ kind: "success", output: '{"ok":true}' });
  });

  it("ends as stopped before it has a process", async () => {
    const environment = await open({ exit: `process.exit(1)`, ok: `` });
    await run(environment, "exit").ended;
    const followed = run(environment, "ok");
    followed.stop();
    expect(await followed.ended).toEqual({ kind: "stopped", output: "{}" });
  });
});

it("does not give an environment up for what programs do to its process", async () => {
  const environment = await open({ exit: `process.exit(1)`, ok: `` });
  for (let round = 0; round < 7; round++) {
    expect(await run(environment, "exit").ended).toMatchObject({ reason: "executor_crashed" });
  }
  expect(await run(environment, "ok").ended).toMatchObject({ kind: "success" });
});

it("answers tool calls beyond the bound with an error, and lets the others be answered", async () => {
  const environment = await open({
    many: `const all = await Promise.allSettled(Array.from({ length: 300 }, () => run.callTool("a", "b")));
      run.output({ ok: all.filter(({ status }) => status === "fulfilled").length, code: all.find(({ reason }) => reason)?.reason.code })`,
  });
  const ends = Promise.withResolvers<RunEnd>();
  const waiting: number[] = [];
  const answerAll = () => {
    for (const callId of waiting) handle.answer(callId, { ok: true, value: 1 });
  };
  const handle = environment.executor.start(
    { runId: "many", code: "many", env: {}, limits: { memoryMb: 64, outputBytes: 10_000, cpuMs: null }, seed: 1 },
    {
      started: () => undefined,
      stdout: () => undefined,
      stderr: () => undefined,
      toolCall: ({ callId }) => {
        waiting.push(callId);
        // Once all 300 have come: nobody is answered before.
        if (waiting.length === 1) setTimeout(answerAll, 500);
      },
      ended: ends.resolve,
    },
  );
  expect(JSON.parse((await ends.promise).output)).toEqual({ ok: 256, code: "overloaded" });
});

it("ends the runs that are inside when it closes", async () => {
  const environment = await open({ deaf: `await new Promise(() => {})` });
  const followed = run(environment, "deaf");
  await new Promise((resolve) => setTimeout(resolve, 100));
  await environment.close();
  expect(await followed.ended).toMatchObject({ kind: "failed", reason: "executor_crashed" });
  expect(await run(environment, "deaf").ended).toMatchObject({ kind: "failed", reason: "not_started" });
});
