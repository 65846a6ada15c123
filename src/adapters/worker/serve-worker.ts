/** The child's side of a supervised worker: one method at a time, every throw becomes an answer, no parent means no child. */
import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { isFailure } from "../../errors/failure.ts";
import type { WorkerReport } from "./supervised-worker.ts";

export type WorkerMethods = Readonly<Record<string, (input: never) => unknown>>;

export function serveWorker(methods: WorkerMethods): void {
  process.on("message", async (request: { method: string; input: never }) => {
    send(await run(methods, request));
  });
  process.on("disconnect", () => process.exit(0));
  endWithParent();
  dieFirst();
  send({ ready: true });
}

async function run(methods: WorkerMethods, request: { method: string; input: never }): Promise<WorkerReport> {
  try {
    const method = methods[request.method];
    if (!method) throw new Error(`No method "${request.method}"`);
    return { ok: true, value: await method(request.input) };
  } catch (error) {
    return refusal(error);
  }
}

function refusal(error: unknown): WorkerReport {
  if (isFailure(error)) {
    const { kind, message, details } = error;
    return { ok: false, kind, message, ...(details.fields ? { fields: details.fields } : {}) };
  }
  // Foreign input drives every recursion here, so an exhausted stack is a fact about the input.
  if (error instanceof RangeError) return { ok: false, kind: "invalid_request", message: "Input is nested too deeply" };
  return {
    ok: false,
    kind: "internal",
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

function send(report: WorkerReport): void {
  try {
    process.send?.(report);
  } catch {
    process.send?.({
      ok: false,
      kind: "invalid_request",
      message: "The answer is nested too deeply",
    } satisfies WorkerReport);
  }
}

/** A child stuck in a loop never hears `disconnect`; a thread of its own notices that the parent is gone. */
function endWithParent(): void {
  const watch = `const parent = ${process.ppid}; setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, "SIGKILL"); }, 500);`;
  new Worker(watch, { eval: true, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 16 } }).unref();
}

/** When the machine runs out of memory, Linux should take this process, not the server. */
function dieFirst(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "500");
  } catch {
    // Not Linux, or not allowed: a preference, nothing depends on it.
  }
}
