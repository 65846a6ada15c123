/** The pool of the portable executor: what happens to children, and to runs when children go. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { openPortableExecutor } from "../../src/executor/portable/portable-executor.ts";
import { executorIdleMs, executorWarmChildren } from "../../src/limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Executor } from "../../src/ports/executor.ts";
import { until } from "../until.ts";
import { descendants, executorChildren, isAlive, procFile } from "./processes.ts";
import { ending, errorOf, runProgram, silentLog, systemClock } from "./program.ts";

const opened: Executor[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()));
});

async function open(concurrency: number, clock: Clock = systemClock): Promise<Executor> {
  const executor = await openPortableExecutor({ memoryMbMax: 64, concurrency, clock, log: silentLog });
  opened.push(executor);
  return executor;
}

const forEver = "console.log('here'); for (;;) {}";

describe("portable executor, supervision", () => {
  it("a child killed from outside ends only its own run", async () => {
    const executor = await open(3);
    const victim = runProgram(executor, "output({a: 1}); console.log('x'); for (;;) {}");
    // Children that start use the processor too, so the pool has to be at rest but for this run.
    await until(() => executor.inspect().running === 1 && executor.inspect().idle === 2);
    const busy = await busiest();
    const beside = runProgram(executor, "await new Promise(r => setTimeout(r, 500)); return 1");
    await until(() => executor.inspect().running === 2);
    process.kill(busy, "SIGKILL");
    const lost = await victim;
    expect([ending(lost), lost.output, lost.stdout, lost.ends]).toEqual(["executor_crashed", { a: 1 }, "x\n", 1]);
    expect(errorOf(lost)).toContain("SIGKILL");
    expect((await beside).output).toEqual({ result: 1 });
    expect((await runProgram(executor, "return 2")).output).toEqual({ result: 2 });
    expect(executor.inspect().crashesTotal).toBe(1);
  });

  it("its children are told with what runs in them", async () => {
    const executor = await open(2);
    await until(() => executor.inspect().idle === 2);
    const before = Date.now();
    const run = runProgram(executor, "await new Promise(r => setTimeout(r, 500))");
    await until(() => executor.inspect().running === 1);
    const children = executor.children?.() ?? [];
    expect(children.map(({ pid }) => pid).sort()).toEqual(executorChildren(process.pid).sort());
    expect(children.map(({ kind, state, runIds }) => [kind, state, runIds.length]).sort()).toEqual([
      ["executor", "busy", 1],
      ["executor", "idle", 0],
    ]);
    for (const { startedAt } of children) expect(startedAt).toBeLessThanOrEqual(before);
    await run;
    expect((executor.children?.() ?? []).flatMap(({ runIds }) => runIds)).toEqual([]);
  });

  it("an idle child killed from outside is replaced", async () => {
    const executor = await open(2);
    await until(() => executor.inspect().idle === 2);
    for (const pid of executorChildren(process.pid)) process.kill(pid, "SIGKILL");
    expect((await runProgram(executor, "return 1")).output).toEqual({ result: 1 });
    await until(() => executor.inspect().children === 2);
  });

  it("no process is left after close, whatever ran", async () => {
    const before = descendants(process.pid).length;
    const executor = await open(3);
    const runs = [forEver, forEver, "await services.a.b()"].map((code) => runProgram(executor, code));
    await until(() => executor.inspect().running === 3);
    const queued = runProgram(executor, "return 1");
    await executor.close();
    expect((await Promise.all([...runs, queued])).map(ending)).toEqual(["stopped", "stopped", "stopped", "stopped"]);
    await until(() => descendants(process.pid).length <= before);
    expect(ending(await runProgram(executor, "return 1"))).toBe("not_started");
  });

  it("no process is left after the host was killed, not even one that computes", async () => {
    const script = fileURLToPath(new URL("./doomed-host.ts", import.meta.url));
    const host = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(host.stdout, "data");
    const below = descendants(host.pid as number);
    expect(below.length).toBeGreaterThanOrEqual(4);
    host.kill("SIGKILL");
    await until(() => !below.some(isAlive));
  });

  it("children have their own group, an empty environment, no open files of the server and a data limit", async () => {
    process.env.EXECUTOR_CANARY = "canary";
    const executor = await open(1);
    delete process.env.EXECUTOR_CANARY;
    await until(() => executor.inspect().idle === 1);
    const [pid] = executorChildren(process.pid) as [number];
    expect(procFile(pid, "environ")).not.toContain("canary");
    expect(
      procFile(pid, "environ")
        .split("\0")
        .filter((entry) => entry !== "" && !/^(PWD|SHLVL|_|OLDPWD)=/.test(entry)),
    ).toEqual([]);
    const limits = procFile(pid, "limits");
    expect(limits).toMatch(
      new RegExp(`^Max data size\\s+${(executor.inspect().dataLimitKb as number) * 1024}\\s`, "m"),
    );
    expect(limits).toMatch(/^Max core file size\s+0\s/m);
    expect(procFile(pid, "stat").split(") ")[1]?.split(" ")[2]).toBe(String(pid));
  });

  it("runs beyond the concurrency wait, in order, and no more children live than allowed", async () => {
    const executor = await open(2);
    let most = 0;
    const order: number[] = [];
    const runs = Array.from({ length: 12 }, async (_, n) => {
      const result = await runProgram(executor, "await new Promise(r => setTimeout(r, 20)); return env.n", {
        env: { n },
      });
      most = Math.max(most, executor.inspect().children as number);
      order.push(n);
      return result.output.result;
    });
    expect(await Promise.all(runs)).toEqual(Array.from({ length: 12 }, (_, n) => n));
    expect(most).toBeLessThanOrEqual(2);
    expect(order.indexOf(11)).toBeGreaterThan(order.indexOf(0));
  });

  it("a run that waits stops without costing its child; one that computes costs it", async () => {
    const executor = await open(1);
    // On a busy machine a polite stop may take too long now and then, so one of five is enough.
    for (let round = 0; round < 5; round += 1) {
      await runProgram(executor, "await new Promise(r => setTimeout(r, 60000))", { stopAfterMs: 10 });
    }
    await runProgram(executor, "return 1");
    const before = executor.inspect().childrenTotal as number;
    expect(before).toBeLessThan(6);
    await runProgram(executor, forEver, { stopAfterMs: 10 });
    await runProgram(executor, "return 1");
    expect(executor.inspect().childrenTotal).toBe(before + 1);
  });

  it("children above the warm ones leave when idle", async () => {
    const clock = impatientClock();
    const executor = await open(5, clock);
    await Promise.all(
      Array.from({ length: 5 }, () => runProgram(executor, "await new Promise(r => setTimeout(r, 400))")),
    );
    await until(() => executor.inspect().idle === 5);
    clock.runLong();
    await until(() => executor.inspect().children === executorWarmChildren);
    clock.runLong();
    expect((await runProgram(executor, "return 1")).output).toEqual({ result: 1 });
  });

  it("when children cannot be started, waiting runs end not_started, and later runs work again", async () => {
    const executor = await open(1);
    await until(() => executor.inspect().idle === 1);
    const { execPath } = process;
    process.execPath = "/nonexistent/node";
    try {
      for (const pid of executorChildren(process.pid)) process.kill(pid, "SIGKILL");
      await until(() => executor.inspect().idle === 0);
      const result = await runProgram(executor, "return 1");
      expect([ending(result), result.started, result.ends]).toEqual(["not_started", 0, 1]);
    } finally {
      process.execPath = execPath;
    }
    expect((await runProgram(executor, "return 1")).output).toEqual({ result: 1 });
  });

  it("a host that cannot start a child at all does not open", async () => {
    const { execPath } = process;
    process.execPath = "/nonexistent/node";
    try {
      await expect(open(1)).rejects.toThrow(/Cannot start an executor process/);
    } finally {
      process.execPath = execPath;
    }
  });
});

/** The child that uses the processor. */
async function busiest(): Promise<number> {
  const ticks = (pid: number): number => Number(procFile(pid, "stat").split(") ")[1]?.split(" ")[11]);
  const pids = executorChildren(process.pid);
  const before = pids.map(ticks);
  let found: number | undefined;
  await until(() => {
    found = pids.find((pid, index) => ticks(pid) > (before[index] as number) + 10);
    return found !== undefined;
  });
  return found as number;
}

/** Real time, except that idle times can be made to pass at once. */
function impatientClock(): Clock & { runLong(): void } {
  const long = new Set<() => void>();
  return {
    ...systemClock,
    after(delayMs, action) {
      if (delayMs < executorIdleMs) return systemClock.after(delayMs, action);
      long.add(action);
      return () => void long.delete(action);
    },
    runLong() {
      for (const action of [...long]) {
        long.delete(action);
        action();
      }
    },
  };
}
