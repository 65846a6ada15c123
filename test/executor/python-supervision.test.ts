/** The fork server of Python: it may die, be replaced or be left behind, and every run still has its one end. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { residentKb, residentTreeKb } from "../../src/executor/portable/memory-size.ts";
import { openPythonExecutor } from "../../src/executor/python/python-executor.ts";
import { executorQueueMax } from "../../src/limits.ts";
import type { Executor } from "../../src/ports/executor.ts";
import { until } from "../until.ts";
import { descendants, isAlive, procFile } from "./processes.ts";
import { ending, errorOf, type ProgramResult, runProgram, silentLog, systemClock } from "./program.ts";
import { describeWherePython, openPython } from "./python-machine.ts";

const waits = "import time\ntime.sleep(1000)";

/** Processes of the sandbox below this one that run Python: the fork server first. */
function pythons(pid = process.pid): number[] {
  return descendants(pid).filter((child) => procFile(child, "cmdline").startsWith("/usr/bin/python3\0"));
}

async function during<T>(executor: Executor, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await executor.close();
  }
}

/** Starts that many waiting programs; settles when all have started. */
async function startWaiting(executor: Executor, count: number): Promise<Promise<ProgramResult>[]> {
  const runs = Array.from({ length: count }, () => runProgram(executor, waits));
  await until(() => executor.inspect().running === count && executor.inspect().waiting === 0);
  await until(() => pythons().length >= count + 1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  return runs;
}

describeWherePython("Python fork server", () => {
  it("runs of a fork server that was killed end executor_crashed, and the next run finds a new one", async () => {
    const executor = await openPython(4);
    await during(executor, async () => {
      const runs = await startWaiting(executor, 3);
      process.kill(pythons()[0] as number, "SIGKILL");
      const results = await Promise.all(runs);
      expect(results.map(ending)).toEqual(["executor_crashed", "executor_crashed", "executor_crashed"]);
      expect(results.map(({ ends }) => ends)).toEqual([1, 1, 1]);
      expect((await runProgram(executor, "return 1")).output).toEqual({ result: 1 });
      expect(executor.inspect().serversTotal).toBe(2);
    });
  });

  it("a fork server is told with what runs in it, and its memory with that of its runs", async () => {
    const executor = await openPython(4);
    await during(executor, async () => {
      const runs = await startWaiting(executor, 2);
      const [server, ...others] = executor.children?.() ?? [];
      expect(others).toEqual([]);
      expect(server).toMatchObject({ pid: pythons()[0], kind: "forkServer", state: "busy" });
      expect(new Set(server?.runIds).size).toBe(2);
      const pid = server?.pid ?? expect.unreachable();
      expect(await residentTreeKb(pid)).toBeGreaterThan((await residentKb(pid)) ?? 0);
      await executor.close();
      await Promise.all(runs);
    });
  });

  it("the kill of bubblewrap ends the fork server and every run in it", async () => {
    const executor = await openPython(4);
    await during(executor, async () => {
      const runs = await startWaiting(executor, 2);
      const below = pythons();
      const [outer] = descendants(process.pid).filter((child) => procFile(child, "comm").trim() === "bwrap") as [
        number,
      ];
      process.kill(outer, "SIGKILL");
      expect((await Promise.all(runs)).map(ending)).toEqual(["executor_crashed", "executor_crashed"]);
      await until(() => !below.some(isAlive));
      expect((await runProgram(executor, "return 1")).output).toEqual({ result: 1 });
    });
  });

  it("programs that wait for a fork server are run by the next one, none twice", async () => {
    const executor = await openPython(2);
    await during(executor, async () => {
      const first = runProgram(executor, "return 0");
      const many = Array.from({ length: 30 }, (_, n) => runProgram(executor, `return ${n}`));
      await first;
      process.kill(pythons()[0] as number, "SIGKILL");
      const results = await Promise.all(many);
      const lost = results.filter((result) => ending(result) !== "success");
      expect(lost.length).toBeLessThanOrEqual(2);
      expect(lost.filter((result) => ending(result) !== "executor_crashed").map(({ end }) => end)).toEqual([]);
      expect(results.every(({ started, ends }) => started === 1 && ends === 1)).toBe(true);
    });
  });

  it("a fork server that served its share is replaced without a lost run", async () => {
    const options = { memoryMbMax: 64, concurrency: 4, clock: systemClock, log: silentLog, runsPerServerMax: 20 };
    const executor = await openPythonExecutor(options);
    await during(executor, async () => {
      const long = runProgram(executor, "import time\ntime.sleep(1.5)\nreturn 'long'");
      const results = await Promise.all(Array.from({ length: 100 }, (_, n) => runProgram(executor, `return ${n}`)));
      expect(results.map(({ output }) => output.result)).toEqual(Array.from({ length: 100 }, (_, n) => n));
      expect((await long).output).toEqual({ result: "long" });
      expect(executor.inspect().serversTotal).toBeGreaterThanOrEqual(2);
      await until(() => executor.inspect().servers === 1 && pythons().length === 1);
    });
  });

  it("never more programs run than the concurrency", async () => {
    const executor = await openPython(3);
    await during(executor, async () => {
      let most = 0;
      const watch = setInterval(() => {
        most = Math.max(most, pythons().length - 1, executor.inspect().running ?? 0);
      }, 5);
      const results = await Promise.all(
        Array.from({ length: 15 }, () => runProgram(executor, "import time\ntime.sleep(0.05)\nreturn 1")),
      );
      clearInterval(watch);
      expect(results.map(ending)).toEqual(results.map(() => "success"));
      expect(most).toBe(3);
    });
  });

  it("a run that says it ended and computes on loses its process", async () => {
    const executor = await openPython(1);
    await during(executor, async () => {
      const liar = `import os\nm = b'{"type":"ended","result":"success","error":""}'\nos.write(3, len(m).to_bytes(4, "big") + m)\nwhile True: pass`;
      expect(ending(await runProgram(executor, liar))).toBe("success");
      await until(() => executor.inspect().running === 0);
      await until(() => pythons().length === 1);
    });
  });

  it("a program stopped before its turn never starts, one stopped at once ends stopped", async () => {
    const executor = await openPython(1);
    await during(executor, async () => {
      const [blocker] = await startWaiting(executor, 1);
      const events: string[] = [];
      const limits = { memoryMb: 64, outputBytes: 1000, cpuMs: null };
      const handle = executor.start(
        { runId: "early", code: "return 1", env: {}, limits, seed: 1 },
        {
          started: () => events.push("started"),
          stdout: () => undefined,
          stderr: () => undefined,
          toolCall: () => undefined,
          ended: (end) => events.push(end.kind, end.output),
        },
      );
      handle.stop();
      handle.stop();
      expect(events).toEqual(["stopped", "{}"]);
      expect(executor.inspect()).toMatchObject({ running: 1, waiting: 0 });
      void blocker;
    });
  });

  it("a run stopped in any moment of its start ends once", async () => {
    const executor = await openPython(4);
    await during(executor, async () => {
      const ends = Array.from({ length: 60 }, (_, n) => {
        return new Promise<string>((resolve) => {
          const handle = executor.start(
            {
              runId: `${n}`,
              code: "while True: pass",
              env: {},
              limits: { memoryMb: 64, outputBytes: 1000, cpuMs: null },
              seed: 1,
            },
            {
              started: () => undefined,
              stdout: () => undefined,
              stderr: () => undefined,
              toolCall: () => undefined,
              ended: (end) => resolve(end.kind),
            },
          );
          setTimeout(() => handle.stop(), n % 12);
        });
      });
      expect(new Set(await Promise.all(ends))).toEqual(new Set(["stopped"]));
      await until(() => executor.inspect().running === 0);
      await until(() => pythons().length === 1);
    });
  });

  it("more programs than may wait are refused, and close ends all that wait or run", async () => {
    const executor = await openPython(1);
    const runs = Array.from({ length: executorQueueMax + 5 }, () => runProgram(executor, waits));
    await until(() => executor.inspect().running === 1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await executor.close();
    const endings = (await Promise.all(runs)).map(ending);
    expect(endings.filter((end) => end === "not_started").length).toBe(5);
    expect(endings.filter((end) => end === "stopped").length).toBe(executorQueueMax);
    expect(pythons()).toEqual([]);
    const late = await runProgram(executor, "return 1");
    expect([ending(late), errorOf(late)]).toEqual(["not_started", expect.stringContaining("stopping")]);
  });

  it("no process is left after the host was killed, not even one that computes", async () => {
    const script = fileURLToPath(new URL("./python-doomed-host.ts", import.meta.url));
    const host = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    await once(host.stdout, "data");
    const below = descendants(host.pid as number);
    expect(below.length).toBeGreaterThanOrEqual(4);
    host.kill("SIGKILL");
    await until(() => !below.some(isAlive));
  });

  it("the fork server has an empty environment, no privilege, and namespaces of its own", async () => {
    process.env.EXECUTOR_CANARY = "canary";
    const executor = await openPython(1);
    delete process.env.EXECUTOR_CANARY;
    await during(executor, async () => {
      const [server] = pythons() as [number];
      expect(procFile(server, "environ").replace(/^PWD=\/\0/, "")).toBe("");
      expect(procFile(server, "status")).toMatch(/^CapEff:\s+0+$/m);
      await startWaiting(executor, 1);
      const [, run] = pythons() as [number, number];
      expect(procFile(run, "status")).toMatch(/^NoNewPrivs:\s+1\n(.*\n)*?Seccomp:\s+2$/m);
      expect(procFile(run, "limits")).toMatch(/^Max core file size\s+0\s/m);
      const mounts = procFile(run, "mounts");
      expect(
        mounts
          .split("\n")
          .filter((line) => / rw,/.test(line))
          .map((line) => line.split(" ")[1]),
      ).toEqual(["/run"]);
      expect(mounts).not.toMatch(/ \/(etc|home|root|proc|dev|sys|tmp|work)[ /]/);
    });
  });
});

const run = promisify(execFile);
const hostScript = fileURLToPath(new URL("./python-availability-host.ts", import.meta.url));

/** What a host says that finds the machine as bubblewrap shows it. */
async function saidOn(machine: readonly string[]): Promise<string> {
  const { stdout } = await run("/usr/bin/bwrap", [
    "--dev-bind",
    "/",
    "/",
    ...machine,
    "--",
    process.execPath,
    hostScript,
  ]);
  return stdout.trim();
}

describeWherePython("pythonUnavailable", () => {
  it("says null where everything is there", async () => {
    expect(await saidOn([])).toBe("null");
  });

  const isRoot = process.getuid?.() === 0;
  it.runIf(isRoot)("says null for an ordinary user (asked by root only)", async () => {
    const { stdout } = await run(process.execPath, [hostScript], { uid: 65534, gid: 65534, cwd: "/" });
    expect(stdout.trim()).toBe("null");
  });

  it("names what is missing", async () => {
    expect(await saidOn(["--ro-bind", "/dev/null", "/usr/bin/bwrap"])).toMatch(/need bubblewrap, and there is no/);
    expect(await saidOn(["--ro-bind", "/dev/null", "/usr/bin/python3"])).toMatch(/need Python 3, and there is no/);
  });

  it("names a sandbox that cannot be made", async () => {
    const said = await saidOn(["--unshare-user", "--disable-userns"]);
    expect(said).toMatch(/^Python programs cannot run because their sandbox does not start here: \w/);
  });

  it("names a Python that is too old, or that does not run", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-old-python-"));
    try {
      const old = join(folder, "python3");
      writeFileSync(old, "#!/bin/sh\necho '[[3, 6], [], \"\"]'\n", { mode: 0o755 });
      expect(await saidOn(["--ro-bind", old, "/usr/bin/python3"])).toMatch(/it is version 3\.6, and 3\.9 or newer/);
      writeFileSync(old, "#!/bin/sh\necho 'something is broken' >&2\nexit 1\n", { mode: 0o755 });
      expect(await saidOn(["--ro-bind", old, "/usr/bin/python3"])).toMatch(/cannot run with .*: something is broken$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
