/**
 * Gets programs run: a bounded queue in front of a bounded number of slots. It holds nothing durable: what must survive is in
 * the process actor, which enqueues again after a restart.
 */
export interface RunIdentity {
  readonly processId: number;
  /** Counts the runs of one process: a report of an older run is recognised and dropped. */
  readonly run: number;
}

export interface Launch extends RunIdentity {
  readonly code: string;
  readonly envConfig: Readonly<Record<string, unknown>>;
  /** Counts from the call; null: no limit. */
  readonly timeoutMs: number | null;
}

/** How a run ended, with everything it produced. `output` is JSON text of an object. */
export interface RunResult {
  readonly ending: "success" | "failed" | "timeout" | "stopped";
  /** Reason code of a failure (thrown, syntax, timeout, memory, …); null on success. */
  readonly reason: string | null;
  readonly error: string | null;
  readonly output: string;
  readonly stdout: string;
  readonly stderr: string;
  /** What was recorded of the run, as JSON text of an array of `RunEvent`. */
  readonly events: string;
}

/** One tool call, as its caller's followers see it. */
export interface ToolCallEvent {
  /** Counts the calls of one run. */
  readonly callId: number;
  readonly serviceId: string;
  readonly toolId: string;
  readonly state: "started" | "ok" | "failed";
  /** Kind of the failure. */
  readonly code?: string;
  readonly durationMs?: number;
}

/** What happened in a run, as it is recorded: how it was queued and how it ended is in the record of its process. */
export type RunEvent =
  | { readonly kind: "state"; readonly state: "running" | "terminating" }
  | { readonly kind: "stdout" | "stderr"; readonly text: string }
  | { readonly kind: "toolCall"; readonly toolCall: ToolCallEvent }
  /** From here on what is printed and called is not recorded: it would be more than is kept. */
  | { readonly kind: "truncated" };

/** One recording for all who follow: whoever reads it keeps a position, and nothing else. */
export interface Recording {
  /** In order; it grows at its end while the run executes, and what is in it stays as it is. */
  readonly events: readonly RunEvent[];
  /** JSON text of the output once the run has ended; nothing is recorded after that. */
  readonly output: string | undefined;
}

export interface Launcher {
  /** Keeps a place in the queue for a run about to be decided. Throws Failure queue_full. The answer gives it back. */
  reserve(): () => void;
  /** `admitted` is called once a slot is free; then `execute` or `release` must follow. Known runs are left alone. */
  enqueue(run: RunIdentity, admitted: () => void): void;
  /** Gives up the place in the queue, or an admitted slot that will not be used. */
  release(run: RunIdentity): void;
  /** `ended` is called exactly once. */
  execute(launch: Launch, ended: (result: RunResult) => void): void;
  /** Ends a running program; `ended` follows with `stopped`, unless it ended first. */
  stop(run: RunIdentity): void;
  /** Whether this run is queued, admitted or executing here, now. */
  knows(run: RunIdentity): boolean;
  /** What an executing run has printed so far. */
  live(run: RunIdentity): { readonly stdout: string; readonly stderr: string } | undefined;
  /** What an executing run has done so far. Whoever holds it may go on reading when the run has ended. */
  recording(run: RunIdentity): Recording | undefined;
  /** Calls `wake` once, when the next event of the run is recorded or the run ends. The answer forgets it. */
  onRecorded(run: RunIdentity, wake: () => void): () => void;
}
