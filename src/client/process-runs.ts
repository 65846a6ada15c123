/** Running a program and waiting for it, across connections that break and a server that restarts. */
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { type Process, ProcessState } from "../gen/troupe/v1/process_pb.ts";
import type { ProcessService } from "../gen/troupe/v1/process_service_pb.ts";
import { backoffMs } from "./retries.ts";
import { TroupeError, toTroupeError } from "./troupe-error.ts";

export interface WaitOptions {
  /** Milliseconds to wait in all. Default: 10 minutes. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RunOptions {
  /** The program: at most 102,400 characters. */
  readonly code: string;
  /** A label to find related processes by. */
  readonly ref?: string | undefined;
  /** Milliseconds the program may run; null: no limit. Default: the server's. */
  readonly timeoutMs?: number | null | undefined;
  /** Passed to the environment as it is. */
  readonly envConfig?: JsonObject | undefined;
  /** Milliseconds to wait for its end. Default: 10 minutes. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RunResult {
  /** `exitState` says how the program ended; one that failed is a result like any other. */
  readonly snapshot: Process;
  readonly output: JsonObject;
  readonly stdout: string;
  readonly stderr: string;
}

const waitMsDefault = 600_000;
/** One GetProcess: proxies cut longer ones. */
const secondsAtOnce = 30;
/** What an answer may take beyond the wait that was asked for. */
const slackMs = 15_000;
/** The longest wait between tries while the server is away is this doubled a few times: 200 ms, …, 6.4 s. */
const backoffsMax = 5;

type Processes = Client<typeof ProcessService>;

/**
 * Resolves with the process once it is idle: it has ended, or it was created with `autorun: false` and never started.
 * Rejects with TroupeError: `timeout` when the time is over, `cancelled` by the signal, or what the server refused with.
 * A server that is away is asked again until the time is over.
 */
export async function waitForProcess(
  processes: Processes,
  id: bigint | number,
  { timeoutMs = waitMsDefault, signal }: WaitOptions = {},
): Promise<Process> {
  const end = performance.now() + timeoutMs;
  let failures = 0;
  for (;;) {
    const leftMs = Math.max(0, end - performance.now());
    const wait = Math.min(secondsAtOnce, Math.ceil(leftMs / 1_000));
    try {
      const options = { timeoutMs: wait * 1_000 + slackMs, ...(signal === undefined ? {} : { signal }) };
      const { process } = await processes.getProcess({ id: BigInt(id), wait }, options);
      if (process?.state === ProcessState.IDLE) return process;
      failures = 0;
      if (performance.now() >= end) throw new TroupeError("timeout", `Process ${id} is not idle after ${timeoutMs} ms`);
    } catch (error) {
      if (!isAway(error) || performance.now() >= end) throw error;
      await pause(Math.min(backoffMs(Math.min(failures, backoffsMax)), end - performance.now()), signal);
      failures += 1;
    }
  }
}

/** Rejects as `waitForProcess` does; the process then goes on, and the message of a `timeout` names it. */
export async function runProcess(processes: Processes, options: RunOptions): Promise<RunResult> {
  const { code, ref, timeoutMs, envConfig, waitMs, signal } = options;
  const request = {
    code,
    ...(ref === undefined ? {} : { ref }),
    ...(envConfig === undefined ? {} : { envConfig }),
    ...(timeoutMs === null ? { noTimeout: true } : timeoutMs === undefined ? {} : { timeoutMs }),
  };
  const calling = signal === undefined ? {} : { signal };
  const { id } = await processes.createProcess(request, calling);
  const snapshot = await waitForProcess(processes, id, { timeoutMs: waitMs, signal });
  const [{ output = {} }, { stdout }, { stderr }] = await Promise.all([
    processes.getProcessOutput({ id }, calling),
    processes.getProcessStdout({ id }, calling),
    processes.getProcessStderr({ id }, calling),
  ]);
  return { snapshot, output, stdout, stderr };
}

const awayCodes: ReadonlySet<string> = new Set([
  "unavailable",
  "connection_lost",
  "overloaded",
  "rate_limit_exceeded",
  "timeout",
]);

function isAway(error: unknown): boolean {
  return error instanceof TroupeError && awayCodes.has(error.code);
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(Math.max(0, ms), undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    throw toTroupeError(error, true);
  }
}
