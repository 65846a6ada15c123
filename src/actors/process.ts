/**
 * A process: one program an agent sent, its life, and what its latest run produced.
 *
 * It owns its lifecycle state, its exit state and its results. The queue, the slots and the running child are the launcher's;
 * this actor tells it what should be so and hears what came of it. Beside its record stand `code` and `envConfig`, and once a run has ended
 * `output`, `stdout`, `stderr` and `events`, the JSON text of an array of `RunEvent`.
 *
 * 1. A run is `running` on disk before its program starts, so submitted code is never run twice by itself.
 * 2. `completedAt` is set exactly when the process is idle with an exit state.
 * 3. The first terminal state wins: reports of another run, or of a run already ended, change nothing.
 * 4. A kill wins over whatever the program returns after it.
 * 5. Results belong to the latest run: a new run clears them in the same step.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import type { Launcher, RunResult } from "../ports/launcher.ts";
import { largestFirst, newestFirst } from "../runtime/keys.ts";
import type { IndexEntry, Kind, Self, Step } from "../runtime/kind.ts";

export const lifecycleStates = ["queued", "running", "idle", "terminating"] as const;
export const exitStates = ["failed", "success", "timeout", "canceled"] as const;

const stateSchema = z.object({
  id: z.int().positive(),
  state: z.enum(lifecycleStates),
  exitState: z.enum(exitStates).nullable(),
  error: z.string().nullable(),
  /** Reason code of a failed run: thrown, syntax, timeout, memory, …, interrupted. */
  reason: z.string().nullable(),
  ref: z.string().min(1).optional(),
  timeoutMs: z.number().positive().nullable(),
  createdAt: z.int(),
  completedAt: z.int().nullable(),
  /** Runs asked for so far; 0 = never. */
  run: z.int().nonnegative(),
  /** Of the request that created it, where it came under an Idempotency-Key: SHA-256 of caller and key, and of the body. */
  idempotency: z.object({ name: z.string(), body: z.string() }).optional(),
});

export type ProcessState = z.infer<typeof stateSchema>;

export type ProcessMessage =
  | {
      readonly type: "create";
      readonly id: number;
      readonly code: string;
      readonly ref: string | undefined;
      readonly timeoutMs: number | null;
      readonly envConfig: Readonly<Record<string, unknown>>;
      readonly autorun: boolean;
      readonly idempotency?: ProcessState["idempotency"];
    }
  | { readonly type: "run"; readonly force: boolean }
  | { readonly type: "kill" }
  | { readonly type: "unload"; readonly loaded: boolean }
  | { readonly type: "delete" }
  | { readonly type: "expire"; readonly completedBefore: number }
  | { readonly type: "admitted"; readonly run: number }
  | { readonly type: "ended"; readonly run: number; readonly result: RunResult }
  | { readonly type: "lost"; readonly run: number };

export type ProcessEffect =
  | { readonly type: "enqueue"; readonly run: number }
  | { readonly type: "release"; readonly run: number }
  | { readonly type: "execute"; readonly run: number; readonly timeoutMs: number | null }
  | { readonly type: "stop"; readonly run: number }
  /** Finds out whether a run believed to be alive still is: not after a restart of the server. */
  | { readonly type: "confirm"; readonly run: number };

export interface ProcessPorts {
  readonly launcher: Launcher;
}

type ProcessStep = Step<ProcessState, ProcessEffect>;

export const interruptedError = "The service restarted while this process was running";

export const processKind: Kind<ProcessState, ProcessMessage, ProcessEffect, ProcessPorts> = {
  name: "process",
  version: 1,
  schema: stateSchema,
  sequenced: true,

  decide(state, message, now) {
    if (message.type === "create") return create(state, message, now);
    if (state === null) return absent(message);
    switch (message.type) {
      case "run":
        return run(state, message.force);
      case "kill":
        return kill(state, now);
      case "unload":
        return unload(state, message.loaded);
      case "delete":
        if (state.state !== "idle")
          throw new Failure("conflict", `Cannot delete process ${state.id}: it is ${state.state}`);
        return { state: null, reply: state };
      case "expire":
        return expire(state, message.completedBefore);
      case "admitted":
        return admitted(state, message.run);
      case "ended":
        return ended(state, message.run, message.result, now);
      case "lost":
        return lost(state, message.run, now);
    }
  },

  index,

  owed(state) {
    switch (state.state) {
      case "queued":
        return [{ type: "enqueue", run: state.run }];
      case "running":
      case "terminating":
        return [{ type: "confirm", run: state.run }];
      case "idle":
        return [];
    }
  },

  async perform(effect, self, { launcher }) {
    const identity = { processId: Number(self.key), run: effect.run };
    switch (effect.type) {
      case "enqueue":
        launcher.enqueue(identity, () => self.tell({ type: "admitted", run: effect.run }));
        return undefined;
      case "release":
        launcher.release(identity);
        return undefined;
      case "execute":
        return execute(effect, self, launcher);
      case "stop":
        launcher.stop(identity);
        return undefined;
      case "confirm":
        return launcher.knows(identity) ? undefined : { type: "lost", run: effect.run };
    }
  },
};

function create(
  state: ProcessState | null,
  message: Extract<ProcessMessage, { type: "create" }>,
  now: number,
): ProcessStep {
  if (state !== null) throw new Failure("already_exists", `Process ${message.id} exists already`);
  const { id, ref, timeoutMs, autorun, idempotency } = message;
  const created: ProcessState = {
    id,
    state: autorun ? "queued" : "idle",
    exitState: null,
    error: null,
    reason: null,
    ...(ref === undefined ? {} : { ref }),
    timeoutMs,
    createdAt: now,
    completedAt: null,
    run: autorun ? 1 : 0,
    ...(idempotency === undefined ? {} : { idempotency }),
  };
  return {
    state: created,
    reply: created,
    blobs: { code: message.code, envConfig: JSON.stringify(message.envConfig) },
    effects: autorun ? [{ type: "enqueue", run: 1 }] : [],
  };
}

/** Requests are refused; reports of a process deleted meanwhile only give their slot back. */
function absent(message: ProcessMessage): ProcessStep {
  switch (message.type) {
    case "admitted":
      return { state: null, effects: [{ type: "release", run: message.run }] };
    case "ended":
    case "lost":
    case "expire":
      return { state: null };
    default:
      throw new Failure("not_found", "There is no such process");
  }
}

function run(state: ProcessState, force: boolean): ProcessStep {
  if (state.state !== "idle") throw new Failure("conflict", `Cannot run process ${state.id}: it is ${state.state}`);
  if (state.exitState !== null && !force) {
    throw new Failure(
      "refused",
      `Process ${state.id} has results already; set "force" to run it again and replace them`,
    );
  }
  const queued: ProcessState = {
    ...state,
    state: "queued",
    exitState: null,
    error: null,
    reason: null,
    completedAt: null,
    run: state.run + 1,
  };
  return {
    state: queued,
    reply: queued,
    blobs: { output: null, stdout: null, stderr: null, events: null },
    effects: [{ type: "enqueue", run: queued.run }],
  };
}

function kill(state: ProcessState, now: number): ProcessStep {
  switch (state.state) {
    case "idle":
      throw new Failure("conflict", `Cannot kill process ${state.id}: it is idle`);
    case "queued": {
      const canceled = settled(state, "canceled", null, null, now);
      return { state: canceled, reply: canceled, effects: [{ type: "release", run: state.run }] };
    }
    case "running": {
      const terminating: ProcessState = { ...state, state: "terminating" };
      return { state: terminating, reply: terminating, effects: [{ type: "stop", run: state.run }] };
    }
    case "terminating":
      return { state, reply: state };
  }
}

function unload(state: ProcessState, loaded: boolean): ProcessStep {
  if (state.state !== "idle") throw new Failure("conflict", `Cannot unload process ${state.id}: it is ${state.state}`);
  if (!loaded) throw new Failure("conflict", `Cannot unload process ${state.id}: it is not in memory`);
  return { state, reply: state, passivate: true };
}

function expire(state: ProcessState, completedBefore: number): ProcessStep {
  const old = state.state === "idle" && state.completedAt !== null && state.completedAt < completedBefore;
  return { state: old ? null : state, reply: old };
}

function admitted(state: ProcessState, runNumber: number): ProcessStep {
  if (state.state !== "queued" || state.run !== runNumber) {
    return { state, effects: [{ type: "release", run: runNumber }] };
  }
  return {
    state: { ...state, state: "running" },
    effects: [{ type: "execute", run: runNumber, timeoutMs: state.timeoutMs }],
  };
}

function ended(state: ProcessState, runNumber: number, result: RunResult, now: number): ProcessStep {
  if (!isAlive(state, runNumber)) return { state };
  const { output, stdout, stderr, events } = result;
  return { state: exitOf(state, result, now), blobs: { output, stdout, stderr, events } };
}

function exitOf(state: ProcessState, result: RunResult, now: number): ProcessState {
  if (state.state === "terminating" || result.ending === "stopped") return settled(state, "canceled", null, null, now);
  return settled(state, result.ending, result.error, result.reason, now);
}

function lost(state: ProcessState, runNumber: number, now: number): ProcessStep {
  if (!isAlive(state, runNumber)) return { state };
  return { state: settled(state, "failed", interruptedError, "interrupted", now) };
}

/** Invariant 3. */
function isAlive(state: ProcessState, runNumber: number): boolean {
  return (state.state === "running" || state.state === "terminating") && state.run === runNumber;
}

function settled(
  state: ProcessState,
  exitState: NonNullable<ProcessState["exitState"]>,
  error: string | null,
  reason: string | null,
  now: number,
): ProcessState {
  return { ...state, state: "idle", exitState, error, reason, completedAt: Math.max(now, state.createdAt) };
}

/**
 * `all`, `ref/…`, `state/…` (not idle) and `exit/…` are newest first; `finished` is oldest first, for retention; `idempotency/…` holds one.
 */
function index(state: ProcessState): readonly IndexEntry[] {
  const sort = processSort(state.createdAt, state.id);
  const entries: IndexEntry[] = [
    { name: "all", sort },
    { name: `exit/${state.exitState}`, sort },
  ];
  if (state.state !== "idle") entries.push({ name: `state/${state.state}`, sort });
  if (state.idempotency !== undefined) {
    entries.push({ name: idempotencyIndex(state.idempotency.name), sort: state.idempotency.body });
  }
  if (state.ref !== undefined) entries.push({ name: `ref/${state.ref}`, sort });
  if (state.completedAt !== null) {
    entries.push({ name: "finished", sort: finishedSort(state.completedAt, state.id) });
  }
  return entries;
}

export function idempotencyIndex(name: string): string {
  return `idempotency/${name}`;
}

export function processSort(createdAt: number, id: number): string {
  return newestFirst(createdAt, largestFirst(id));
}

function finishedSort(completedAt: number, id: number): string {
  return `${String(completedAt).padStart(13, "0")}.${String(id).padStart(16, "0")}`;
}

async function execute(
  effect: Extract<ProcessEffect, { type: "execute" }>,
  self: Self<ProcessMessage>,
  launcher: Launcher,
): Promise<ProcessMessage | undefined> {
  const { run, timeoutMs } = effect;
  const identity = { processId: Number(self.key), run };
  let blobs: readonly (string | undefined)[];
  try {
    blobs = await Promise.all([self.blob("code"), self.blob("envConfig")]);
  } catch {
    blobs = [];
  }
  const [code, envConfig] = blobs;
  if (code === undefined || envConfig === undefined) {
    launcher.release(identity);
    return { type: "ended", run, result: notStarted("The stored program could not be read") };
  }
  launcher.execute({ ...identity, code, envConfig: JSON.parse(envConfig), timeoutMs }, (result) =>
    self.tell({ type: "ended", run, result }),
  );
  return undefined;
}

function notStarted(error: string): RunResult {
  return { ending: "failed", reason: "not_started", error, output: "{}", stdout: "", stderr: "", events: "[]" };
}
