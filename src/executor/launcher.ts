/**
 * The run queue: at most `concurrency` programs alive at once, the others waiting in order. It gives programs their tools,
 * their deadline and their end, and keeps what they print and do until they end.
 *
 * 1. A slot is held from admission until the run has ended or was released.
 * 2. `ended` is called exactly once per execute.
 * 3. The first cause of an end wins: a run that passed its deadline stays `timeout`, whatever it returns afterwards.
 */
import { catalogue } from "../errors/catalogue.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { Executor, RunEnd, RunHandle, RunLimits, ToolAnswer, ToolCall } from "../ports/executor.ts";
import type { Launch, Launcher, Recording, RunIdentity, RunResult } from "../ports/launcher.ts";
import { RunRecording } from "./run-recording.ts";

export interface ToolCallContext {
  readonly processId: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface LauncherOptions {
  readonly executor: Executor;
  readonly clock: Clock;
  readonly concurrency: number;
  readonly queueMax: number;
  readonly limits: RunLimits;
  readonly toolTimeoutMs: number;
  /** Admits nobody before `begin`: what was queued before a restart must not meet an executor that is not ready yet. */
  readonly held?: boolean;
  /** Rejects with Failure. */
  readonly callTool: (call: ToolCall, context: ToolCallContext) => Promise<unknown>;
  /** In [0, 1): seeds of the programs. */
  readonly random?: () => number;
}

/** A ready-made reason: the default one captures a stack for each run. */
const runEnded = new Failure("cancelled", "The program has ended");

interface Waiting {
  readonly admitted: () => void;
}

interface Executing {
  readonly run: RunIdentity;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly handle: RunHandle;
  readonly stdout: string[];
  readonly stderr: string[];
  readonly recording: RunRecording;
}

export class RunQueue implements Launcher {
  readonly #options: LauncherOptions;
  /** In order of arrival; every key is `<process>#<run>`. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #admitted = new Set<string>();
  /** Admitted ones that were told to stop before they executed. */
  readonly #stoppedEarly = new Set<string>();
  readonly #executing = new Map<string, Executing>();
  /** Who waits for the next event of a run. */
  readonly #waking = new Map<string, Set<() => void>>();
  #reserved = 0;
  #draining = false;
  #stopping = false;
  #held: boolean;
  #whenIdle: (() => void) | undefined;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.#held = options.held ?? false;
  }

  /** The executor is ready. */
  begin(): void {
    this.#held = false;
    this.#admit();
  }

  reserve(): () => void {
    const { queueMax, clock } = this.#options;
    if (this.#waiting.size + this.#reserved >= queueMax) throw queueFull(queueMax, clock.now());
    this.#reserved++;
    let held = true;
    return () => {
      if (held) this.#reserved--;
      held = false;
    };
  }

  enqueue(run: RunIdentity, admitted: () => void): void {
    if (this.knows(run)) return;
    this.#waiting.set(nameOf(run), { admitted });
    this.#admit();
  }

  release(run: RunIdentity): void {
    const name = nameOf(run);
    this.#waiting.delete(name);
    this.#stoppedEarly.delete(name);
    if (this.#admitted.delete(name)) this.#admit();
  }

  execute(launch: Launch, ended: (result: RunResult) => void): void {
    const name = nameOf(launch);
    const { executor, clock } = this.#options;
    const stdout: string[] = [];
    const stderr: string[] = [];
    const recording = new RunRecording();
    const calls = new AbortController();
    let timedOut = false;
    let cancelTimer: (() => void) | undefined;
    const handle = executor.start(
      {
        runId: name,
        code: launch.code,
        env: launch.envConfig,
        limits: limitsOf(launch, this.#options.limits),
        seed: Math.floor((this.#options.random ?? Math.random)() * 2 ** 32),
      },
      {
        started: () => {},
        stdout: (text) => {
          stdout.push(text);
          if (recording.print("stdout", text)) this.#wake(name);
        },
        stderr: (text) => {
          stderr.push(text);
          if (recording.print("stderr", text)) this.#wake(name);
        },
        toolCall: (call) => void this.#answer(handle, launch, call, calls.signal, recording),
        ended: (end) => {
          cancelTimer?.();
          calls.abort(runEnded);
          this.#executing.delete(name);
          recording.end(end.output);
          this.#wake(name);
          const events = JSON.stringify(recording.events);
          const captured = { stdout: stdout.join(""), stderr: stderr.join(""), events };
          ended({ ...(timedOut ? timeoutResult(launch, end) : resultOf(end)), ...captured });
          this.#admit();
        },
      },
    );
    this.#admitted.delete(name);
    const run = { processId: launch.processId, run: launch.run };
    this.#executing.set(name, { run, startedAt: clock.now(), handle, stdout, stderr, recording });
    this.#wake(name);
    if (this.#stoppedEarly.delete(name)) this.stop(launch);
    if (this.#stopping) handle.stop();
    if (launch.timeoutMs !== null && Number.isFinite(launch.timeoutMs)) {
      cancelTimer = clock.after(Math.ceil(launch.timeoutMs), () => {
        timedOut = true;
        handle.stop();
      });
    }
  }

  stop(run: RunIdentity): void {
    const name = nameOf(run);
    if (this.#admitted.has(name)) this.#stoppedEarly.add(name);
    const executing = this.#executing.get(name);
    if (executing === undefined) return;
    if (executing.recording.add({ kind: "state", state: "terminating" })) this.#wake(name);
    executing.handle.stop();
  }

  knows(run: RunIdentity): boolean {
    const name = nameOf(run);
    return this.#waiting.has(name) || this.#admitted.has(name) || this.#executing.has(name);
  }

  live(run: RunIdentity): { stdout: string; stderr: string } | undefined {
    const executing = this.#executing.get(nameOf(run));
    if (executing === undefined) return undefined;
    return { stdout: executing.stdout.join(""), stderr: executing.stderr.join("") };
  }

  recording(run: RunIdentity): Recording | undefined {
    return this.#executing.get(nameOf(run))?.recording;
  }

  onRecorded(run: RunIdentity, wake: () => void): () => void {
    const name = nameOf(run);
    const waking = this.#waking.get(name) ?? new Set();
    this.#waking.set(name, waking.add(wake));
    return () => {
      waking.delete(wake);
      if (waking.size === 0 && this.#waking.get(name) === waking) this.#waking.delete(name);
    };
  }

  /** Admits nobody any more; resolves when nothing executes. Those who wait stay queued on disk. */
  drain(): Promise<void> {
    this.#draining = true;
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
      this.#admit();
    });
  }

  /** Ends every running program, and those that are about to; each is reported `stopped`. */
  stopAll(): void {
    this.#stopping = true;
    for (const { handle } of this.#executing.values()) handle.stop();
  }

  inspect(): { readonly waiting: number; readonly executing: number; readonly slots: number } {
    return {
      waiting: this.#waiting.size,
      executing: this.#admitted.size + this.#executing.size,
      slots: this.#options.concurrency,
    };
  }

  /** What executes now, the longest first. `runId` is what the executor knows it by. */
  running(): readonly (RunIdentity & { readonly runId: string; readonly startedAt: number })[] {
    return [...this.#executing].map(([runId, { run, startedAt }]) => ({ ...run, runId, startedAt }));
  }

  #admit(): void {
    if (this.#draining) {
      // An admitted one is about to execute, or gives its slot back.
      if (this.#admitted.size + this.#executing.size === 0) this.#whenIdle?.();
      return;
    }
    if (this.#held) return;
    for (const [name, { admitted }] of this.#waiting) {
      if (this.#admitted.size + this.#executing.size >= this.#options.concurrency) return;
      this.#waiting.delete(name);
      this.#admitted.add(name);
      admitted();
    }
  }

  #wake(name: string): void {
    const waking = this.#waking.get(name);
    if (waking === undefined) return;
    this.#waking.delete(name);
    for (const wake of waking) wake();
  }

  async #answer(
    handle: RunHandle,
    launch: Launch,
    call: ToolCall,
    signal: AbortSignal,
    recording: RunRecording,
  ): Promise<void> {
    const record = (state: "started" | "ok" | "failed", more: { code?: string; durationMs?: number } = {}): void => {
      const { callId, serviceId, toolId } = call;
      const toolCall = { callId, serviceId, toolId, state, ...more };
      if (recording.add({ kind: "toolCall", toolCall })) this.#wake(nameOf(launch));
    };
    const begun = this.#options.clock.monotonic();
    record("started");
    let answer: ToolAnswer;
    try {
      const context = { processId: launch.processId, timeoutMs: this.#options.toolTimeoutMs, signal };
      answer = { ok: true, value: await this.#options.callTool(call, context) };
    } catch (error) {
      const failure = isFailure(error) ? error : new Failure("internal", "The tool call failed inside the server");
      answer = { ok: false, message: failure.message, code: failure.kind, status: catalogue[failure.kind].rest };
    }
    if (signal.aborted) return;
    const durationMs = Math.round(this.#options.clock.monotonic() - begun);
    record(answer.ok ? "ok" : "failed", { ...(answer.ok ? {} : { code: answer.code }), durationMs });
    handle.answer(call.callId, answer);
  }
}

function nameOf(run: RunIdentity): string {
  return `${run.processId}#${run.run}`;
}

type Ending = Pick<RunResult, "ending" | "reason" | "error" | "output">;

function resultOf(end: RunEnd): Ending {
  switch (end.kind) {
    case "success":
      return { ending: "success", reason: null, error: null, output: end.output };
    case "failed":
      return { ending: "failed", reason: end.reason, error: end.error, output: end.output };
    case "stopped":
      return { ending: "stopped", reason: null, error: null, output: end.output };
  }
}

function timeoutResult(launch: Launch, end: RunEnd): Ending {
  return {
    ending: "timeout",
    reason: "timeout",
    error: `The process ran longer than its limit of ${launch.timeoutMs} ms`,
    output: end.output,
  };
}

/** `envConfig.limits` may lower a limit, never raise it; anything that is not a positive number is ignored. */
function limitsOf(launch: Launch, most: RunLimits): RunLimits {
  const asked = launch.envConfig.limits;
  if (typeof asked !== "object" || asked === null) return most;
  const { memoryMb, cpuMs } = asked as Record<string, unknown>;
  return {
    ...most,
    memoryMb: isPositive(memoryMb) ? Math.min(memoryMb, most.memoryMb) : most.memoryMb,
    cpuMs: isPositive(cpuMs) ? Math.min(cpuMs, most.cpuMs ?? Number.POSITIVE_INFINITY) : most.cpuMs,
  };
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function queueFull(limit: number, now: number): Failure {
  return new Failure("queue_full", `${limit} processes are waiting to run already`, {
    exhaustion: { limit, remaining: 0, resetAt: Math.ceil(now / 1_000) + 1, retryAfterSeconds: 1 },
  });
}
