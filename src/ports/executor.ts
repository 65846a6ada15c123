/**
 * Runs one untrusted program at a time per `start`, away from the server process. The host decides time and memory; an
 * executor is never trusted to report its own death: `ended` is called exactly once for each start, whatever happens.
 */
export interface RunRequest {
  /** Unique within the boot; for logs and correlation only. */
  readonly runId: string;
  /** The submitter's JavaScript or TypeScript: the body of an async function. */
  readonly code: string;
  /** Frozen as global `env`; plain JSON. */
  readonly env: Readonly<Record<string, unknown>>;
  readonly limits: RunLimits;
  /** Seeds Math.random of the run. */
  readonly seed: number;
}

export interface RunLimits {
  readonly memoryMb: number;
  /** Bytes (UTF-8) of the structured output as JSON; of stdout; of stderr: each. */
  readonly outputBytes: number;
  /** CPU milliseconds, or null for no limit of its own. */
  readonly cpuMs: number | null;
}

/** Why a run failed; `timeout` and cancellation are decided by the host, see `RunHandle.stop`. */
export type RunFailureReason =
  | "thrown"
  | "syntax"
  | "memory"
  | "output_too_large"
  | "deadlocked"
  | "executor_crashed"
  | "not_started";

/** `output` is JSON text of an object: what was captured, also when the run failed or was stopped. */
export type RunEnd =
  | { readonly kind: "success"; readonly output: string }
  | { readonly kind: "failed"; readonly reason: RunFailureReason; readonly error: string; readonly output: string }
  | { readonly kind: "stopped"; readonly output: string };

export interface ToolCall {
  readonly callId: number;
  readonly serviceId: string;
  readonly toolId: string;
  /** Parsed JSON, or undefined when called without an argument. */
  readonly parameters: unknown;
  /** `snake_case`: the program's language spells `getPet` as `get_pet`, so a tool may be meant that is spelled otherwise. */
  readonly spelling?: "snake_case";
}

export type ToolAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly code: string; readonly status: number };

export interface RunEvents {
  /** The program is about to execute (a child took it). */
  started(): void;
  stdout(text: string): void;
  stderr(text: string): void;
  toolCall(call: ToolCall): void;
  ended(end: RunEnd): void;
}

export interface RunHandle {
  answer(callId: number, answer: ToolAnswer): void;
  /** Ends the run whatever it is doing, within `stopGraceMs`; `ended` follows with kind `stopped`, unless it ended first. */
  stop(): void;
}

/** One child process of an executor, for diagnostics. */
export interface ExecutorChild {
  readonly pid: number | null;
  /** A fork server makes a process of its own for each run; those have numbers only inside its sandbox. */
  readonly kind: "executor" | "forkServer";
  readonly state: "starting" | "idle" | "busy" | "leaving";
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** `runId` of what runs in it now. */
  readonly runIds: readonly string[];
}

export interface Executor {
  /** portable, fork, …; as diagnostics show it. */
  readonly name: string;
  start(run: RunRequest, events: RunEvents): RunHandle;
  /** Running now, children alive and the like, for diagnostics. */
  inspect(): Readonly<Record<string, number>>;
  /** Absent: whoever keeps its processes tells of them. */
  children?(): readonly ExecutorChild[];
  /** Stops what runs, ends every child. */
  close(): Promise<void>;
}
