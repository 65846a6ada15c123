/** A worker that hangs, dies, fills its memory or never starts takes down one request, and nothing else. Real child processes. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  openSupervisedWorker,
  type SupervisedWorker,
  type WorkerOptions,
} from "../../src/adapters/worker/supervised-worker.ts";
import { workerRequestsWaitingMax } from "../../src/limits.ts";
import { realClock, recordingLog } from "./adapter-bench.ts";

const entry = new URL("./faulty-worker.ts", import.meta.url);
let folder: string;
let worker: SupervisedWorker;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "worker-"));
  worker = open();
});

afterEach(async () => {
  await worker.close();
  rmSync(folder, { recursive: true });
});

function open(options: Partial<WorkerOptions> = {}): SupervisedWorker {
  return openSupervisedWorker({
    name: "test worker",
    entry,
    memoryMb: 64,
    clock: realClock,
    log: recordingLog(),
    ...options,
  });
}

function call(method: string, input: unknown = null, timeoutMs = 10_000, signal?: AbortSignal): Promise<unknown> {
  return worker.call({ method, input, timeoutMs, subject: "Thing", signal });
}

test("a worker answers, starting its child only when asked", async () => {
  expect(worker.inspect()).toMatchObject({ pid: null, state: "down", startedAt: null, waiting: 0, started: 0 });
  expect(await call("echo", { a: [1, "ü"], bytes: new Uint8Array([1]) })).toEqual({
    a: [1, "ü"],
    bytes: new Uint8Array([1]),
  });
  expect(worker.inspect().started).toBe(1);
});

test("the child inherits no environment", async () => {
  process.env.WORKER_TEST_CANARY = "secret";
  expect(await call("environment")).not.toContain("WORKER_TEST_CANARY");
});

test("a refusal in the child arrives with its kind, text and fields", async () => {
  await expect(call("refuse", "No thing")).rejects.toMatchObject({
    kind: "not_found",
    message: "No thing",
    details: { fields: [{ field: "a.b", description: "is absent" }] },
  });
});

test("a fault of the child is internal and its text stays in the log", async () => {
  await expect(call("break")).rejects.toMatchObject({
    kind: "internal",
    message: "Thing failed inside the test worker",
  });
  expect(await call("count")).toBe(1);
});

test("an exhausted stack and an answer that cannot be sent are refused, and the child lives on", async () => {
  await expect(call("overflow")).rejects.toMatchObject({
    kind: "invalid_request",
    message: "Input is nested too deeply",
  });
  await expect(call("unanswerable")).rejects.toMatchObject({ kind: "invalid_request" });
  expect(worker.inspect().started).toBe(1);
});

test("input that cannot be sent is refused without harm", async () => {
  await expect(call("echo", () => 1)).rejects.toMatchObject({ kind: "invalid_request" });
  let deep: unknown = [];
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  await expect(call("echo", deep)).rejects.toMatchObject({ kind: "invalid_request" });
  expect(await call("echo", 1)).toBe(1);
});

test("a hung child is ended, its request times out, and those waiting behind it are answered by a new one", async () => {
  const hung = call("hang", null, 300);
  const behind = [call("echo", 1), call("echo", 2)];
  await expect(hung).rejects.toMatchObject({ kind: "timeout", message: "Thing took longer than 300 ms" });
  expect(await Promise.all(behind)).toEqual([1, 2]);
  expect(worker.inspect().started).toBe(2);
});

test("a request whose child dies once is tried again", async () => {
  const first = call("exitOnce", join(folder, "mark"));
  const behind = call("echo", 1);
  expect(await first).toBe("second child");
  expect(await behind).toBe(1);
});

test("a request whose child dies twice is refused naming how", async () => {
  await expect(call("exit")).rejects.toMatchObject({
    kind: "invalid_request",
    message: "Thing is too complex: the test worker ended with exit code 3 twice",
  });
  expect(await call("echo", 1)).toBe(1);
});

test("a request that fills the memory is refused naming that", async () => {
  await expect(call("fillMemory")).rejects.toMatchObject({
    kind: "invalid_request",
    message: "Thing is too complex: the test worker ran out of memory twice",
  });
  expect(await call("echo", 1)).toBe(1);
});

test("a child killed from outside is replaced without the caller noticing", async () => {
  await call("echo", 1);
  process.kill(worker.inspect().pid ?? 0, "SIGKILL");
  expect(await call("echo", 2)).toBe(2);
});

test("a worker whose child cannot start refuses all who wait, and says why", async () => {
  const broken = join(folder, "broken.ts");
  writeFileSync(broken, "process.exit(9);");
  const log = recordingLog();
  const never = open({ entry: new URL(`file://${broken}`), log });
  const request = { method: "echo", input: 1, timeoutMs: 1_000, subject: "Thing" };
  const answers = await Promise.allSettled([never.call(request), never.call(request)]);
  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: "rejected",
      reason: { kind: "unavailable", message: "The test worker did not start: ended with exit code 9" },
    });
  }
  expect(log.lines.filter((line) => line.event === "worker-start-failed")).toHaveLength(1);
  await never.close();
});

test("a caller who leaves is answered at once, waiting or running, and the next is served", async () => {
  await call("echo", 1);
  const stop = new AbortController();
  const running = call("wait", 200, 5_000, stop.signal);
  const waiting = call("echo", 2, 5_000, stop.signal);
  stop.abort();
  await expect(running).rejects.toMatchObject({ kind: "cancelled" });
  await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
  await expect(call("echo", 3, 5_000, AbortSignal.abort())).rejects.toMatchObject({ kind: "cancelled" });
  expect(await call("echo", 4)).toBe(4);
  expect(worker.inspect().started).toBe(1);
});

test("more requests than may wait are refused as overload", async () => {
  await call("echo", "ready");
  const running = call("wait", 300);
  const waiting = Array.from({ length: workerRequestsWaitingMax }, (_, index) => call("echo", index));
  await expect(call("echo", "one too many")).rejects.toMatchObject({ kind: "overloaded" });
  await running;
  expect(await Promise.all(waiting)).toHaveLength(workerRequestsWaitingMax);
});

test("an idle child is ended and comes back when needed", async () => {
  const idle = open({ idleMs: 50 });
  const request = { method: "count", input: null, timeoutMs: 10_000, subject: "Thing" };
  await idle.call(request);
  await expect.poll(() => idle.inspect().pid, { timeout: 10_000 }).toBeNull();
  expect(await idle.call(request)).toBe(1);
  expect(idle.inspect().started).toBe(2);
  await idle.close();
});

test("closing refuses what waits and leaves no child behind", async () => {
  await call("echo", 1);
  const pid = worker.inspect().pid ?? 0;
  const running = call("wait", 60_000, 60_000);
  const outcome = expect(running).rejects.toMatchObject({ kind: "unavailable" });
  await worker.close();
  await outcome;
  expect(isAlive(pid)).toBe(false);
  await expect(call("echo", 1)).rejects.toMatchObject({ kind: "unavailable" });
});

test("a child stuck in a loop ends when its server is killed", async () => {
  const script = join(folder, "server.ts");
  const mark = join(folder, "pid");
  const source = new URL("../../src/adapters/worker/supervised-worker.ts", import.meta.url).href;
  const bench = new URL("./adapter-bench.ts", import.meta.url).href;
  writeFileSync(
    script,
    `const { openSupervisedWorker } = await import(${JSON.stringify(source)});
     const { realClock, recordingLog } = await import(${JSON.stringify(bench)});
     const worker = openSupervisedWorker({ name: "w", entry: new URL(${JSON.stringify(entry.href)}), memoryMb: 64, clock: realClock, log: recordingLog() });
     worker.call({ method: "hang", input: ${JSON.stringify(mark)}, timeoutMs: 600000, subject: "s" });`,
  );
  const server = spawn(process.execPath, [script], { stdio: "ignore" });
  await expect.poll(() => existsSync(mark) && readFileSync(mark, "utf8") !== "", { timeout: 15_000 }).toBe(true);
  const pid = Number(readFileSync(mark, "utf8"));
  expect(isAlive(pid)).toBe(true);
  server.kill("SIGKILL");
  await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
});

/** Alive and not a zombie that nobody has collected. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
