/** Runs one program on an executor and gathers all it did. */
import type { Clock } from "../../src/ports/clock.ts";
import type { Executor, RunEnd, RunHandle, RunLimits, ToolAnswer, ToolCall } from "../../src/ports/executor.ts";
import type { Log } from "../../src/ports/log.ts";

export const megabyte = 1024 * 1024;

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, unknown>>;
  readonly limits?: Partial<RunLimits>;
  readonly seed?: number;
  /** Answers a tool call; undefined leaves it unanswered. */
  readonly tool?: (call: ToolCall, handle: RunHandle) => ToolAnswer | undefined;
  /** Milliseconds after `started` until the run is stopped. */
  readonly stopAfterMs?: number;
}

export interface ProgramResult {
  readonly end: RunEnd;
  readonly output: Record<string, unknown>;
  readonly stdout: string;
  readonly stderr: string;
  readonly pieces: readonly string[];
  readonly calls: readonly ToolCall[];
  readonly started: number;
  readonly ends: number;
  /** From `start` to `ended`. */
  readonly ms: number;
}

let runs = 0;

export function runProgram(executor: Executor, code: string, options: ProgramOptions = {}): Promise<ProgramResult> {
  const pieces: string[] = [];
  const calls: ToolCall[] = [];
  let stdout = "";
  let stderr = "";
  let started = 0;
  let ends = 0;
  const begun = performance.now();
  runs += 1;
  return new Promise((resolve) => {
    const handle = executor.start(
      {
        runId: `run-${runs}`,
        code,
        env: options.env ?? {},
        limits: { memoryMb: 64, outputBytes: megabyte, cpuMs: null, ...options.limits },
        seed: options.seed ?? 1,
      },
      {
        started() {
          started += 1;
          if (options.stopAfterMs !== undefined) setTimeout(() => handle.stop(), options.stopAfterMs);
        },
        stdout(text) {
          stdout += text;
          pieces.push(text);
        },
        stderr(text) {
          stderr += text;
          pieces.push(text);
        },
        toolCall(call) {
          calls.push(call);
          const answer = options.tool?.(call, handle);
          if (answer !== undefined) handle.answer(call.callId, answer);
        },
        ended(end) {
          ends += 1;
          const ms = performance.now() - begun;
          // A second end, if a faulty executor gave one, would come soon.
          setImmediate(() => {
            const output = JSON.parse(end.output) as Record<string, unknown>;
            resolve({ end, output, stdout, stderr, pieces, calls, started, ends, ms });
          });
        },
      },
    );
  });
}

/** "success", or the reason of a failed run, or "stopped". */
export function ending({ end }: ProgramResult): string {
  return end.kind === "failed" ? end.reason : end.kind;
}

export function errorOf({ end }: ProgramResult): string {
  return end.kind === "failed" ? end.error : "";
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
