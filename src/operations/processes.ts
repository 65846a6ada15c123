/** Operations on processes: API document 4.5–4.7 and the process rows of the REST surface. */
import { z } from "zod";
import {
  exitStates,
  idempotencyIndex,
  lifecycleStates,
  type ProcessMessage,
  type ProcessState,
  processSort,
} from "../actors/process.ts";
import { Failure } from "../errors/failure.ts";
import { codeCharactersMax, waitSecondsMax } from "../limits.ts";
import type { Launcher } from "../ports/launcher.ts";
import type { Actors } from "../runtime/actors.ts";
import type { CallContext, Operation, Route } from "./operation.ts";
import { decodeCursor, type Page, toPage, walk } from "./page.ts";
import { withMarker } from "./rpc-requests.ts";
import {
  cursor,
  instant,
  isoTime,
  jsonObject,
  label,
  page,
  pageLimit,
  processId,
  text,
  waitSeconds,
} from "./shapes.ts";
import { waitFor } from "./wait.ts";

export interface ProcessOperationsOptions {
  readonly processes: Actors<ProcessState, ProcessMessage>;
  readonly launcher: Launcher;
  readonly timeoutMsDefault: number;
}

const id = z.int().positive().meta({ description: "Stable identifier, kept across restarts", example: 42 });

export const snapshotShape = z
  .object({
    id,
    pid: z.int().positive().nullable().meta({ description: "While in memory; else null", example: 7 }),
    state: z.enum(lifecycleStates).meta({ description: "Where it is in its life", example: "idle" }),
    exitState: z.enum(exitStates).nullable().meta({ description: "Null until it has ended", example: "success" }),
    error: z.string().nullable().meta({ description: "Why the run failed; null when it did not", example: null }),
    createdAt: instant.describe("When it was created"),
    completedAt: instant.nullable().describe("When its run ended; null before"),
    ref: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "The caller's label, when one was given", example: "nightly" }),
  })
  .meta({ id: "Process", description: "A process as it is now" });

export type Snapshot = z.infer<typeof snapshotShape>;

const byId = z.object({ id: processId });
const answerSnapshot = { field: "process", mediaType: "application/json" } as const;
const oneProcess = z.object({ process: snapshotShape });

/** Of states in memory, which never change and are read over and over. */
const snapshots = new WeakMap<ProcessState, Snapshot>();

export function toSnapshot(state: ProcessState, pid: number | null): Snapshot {
  const made = snapshots.get(state);
  if (made?.pid === pid) return made;
  const snapshot = snapshotOf(state, pid);
  snapshots.set(state, snapshot);
  return snapshot;
}

function snapshotOf(state: ProcessState, pid: number | null): Snapshot {
  const { id, exitState, error, createdAt, completedAt, ref } = state;
  return {
    id,
    pid,
    state: state.state,
    exitState,
    error,
    createdAt: isoTime(createdAt),
    completedAt: completedAt === null ? null : isoTime(completedAt),
    ...(ref === undefined ? {} : { ref }),
  };
}

export function processOperations(options: ProcessOperationsOptions): readonly Operation[] {
  const { processes, launcher, timeoutMsDefault } = options;
  const rpcService = "ProcessService";

  /** Every message of a caller takes the caller's deadline along. */
  async function ask(id: number, message: ProcessMessage, context: CallContext): Promise<{ process: Snapshot }> {
    const key = String(id);
    const pid = processes.pid(key);
    const state = (await processes.ask(key, message, { deadline: context.deadline })) as ProcessState;
    return { process: toSnapshot(state, processes.pid(key) ?? pid) };
  }

  async function find(id: number): Promise<{ state: ProcessState; pid: number | null }> {
    const { state, pid } = await processes.query(String(id));
    if (state === null) throw new Failure("not_found", `There is no process ${id}`);
    return { state, pid };
  }

  async function findIdle(id: number, seconds: number, context: CallContext) {
    const key = String(id);
    await waitFor<ProcessState>(
      { seconds: Math.min(seconds, waitSecondsMax), context },
      (watcher) => processes.watch(key, watcher),
      async () => (await processes.query(key)).state,
      (state) => state === null || state.state === "idle",
    );
    return find(id);
  }

  /** Printed so far while the run executes, else what was stored. */
  async function printed(id: number, stream: "stdout" | "stderr"): Promise<string> {
    const { state } = await find(id);
    const live = launcher.live({ processId: id, run: state.run });
    return live?.[stream] ?? (await processes.blob(String(id), stream)) ?? "";
  }

  async function withPlace<Answer>(wanted: boolean, act: () => Promise<Answer>): Promise<Answer> {
    const giveBack = wanted ? launcher.reserve() : undefined;
    try {
      return await act();
    } finally {
      giveBack?.();
    }
  }

  const create: Operation<z.infer<typeof createInput>, { id: number }> = {
    name: "createProcess",
    summary: "Stage a program and, unless autorun is false, run it",
    rpcService,
    route: { method: "POST", path: "/processes", body: "fields", status: 200 },
    role: "agent",
    input: createInput,
    output: z.object({ id }),
    idempotent: {
      async find(name, since) {
        const { items } = await processes.list(idempotencyIndex(name), undefined, 1);
        const made = items[0];
        if (made === undefined || made.state.createdAt <= since) return undefined;
        return { body: made.sort, output: { id: made.state.id } };
      },
    },
    fromRpc: (request) => withMarker(request, "noTimeout", "timeoutMs", null),
    run: (input, context) =>
      withPlace(input.autorun, async () => {
        const id = processes.nextKey();
        const { code, ref, envConfig, autorun } = input;
        const timeoutMs = input.timeoutMs === undefined ? timeoutMsDefault : input.timeoutMs;
        const { idempotency } = context;
        const message: ProcessMessage = { type: "create", id, code, ref, timeoutMs, envConfig, autorun, idempotency };
        await processes.ask(String(id), message, { deadline: context.deadline });
        return { id };
      }),
  };

  const get: Operation<{ id: number; wait?: number | undefined }, { process: Snapshot; reason: string | null }> = {
    name: "getProcess",
    summary: "Read a process; with wait, as soon as it is idle",
    rpcService,
    route: {
      method: "GET",
      path: "/processes/{id}",
      query: ["wait"],
      body: "none",
      status: 200,
      answer: answerSnapshot,
    },
    role: "agent",
    input: byId.extend({ wait: waitSeconds }),
    output: oneProcess.extend({ reason: z.string().nullable() }),
    extraDeadlineMs: ({ wait }) => waitMs(wait),
    run: async ({ id, wait }, context) => {
      const { state, pid } = await (wait === undefined ? find(id) : findIdle(id, wait, context));
      return { process: toSnapshot(state, pid), reason: state.reason };
    },
  };

  const list: Operation<z.infer<typeof listInput>, Page<Snapshot>> = {
    name: "listProcesses",
    summary: "List processes, newest first",
    rpcService,
    route: {
      method: "GET",
      path: "/processes",
      query: ["ref", "state", "exitState", "cursor", "limit"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: listInput,
    output: page(snapshotShape),
    fromRpc: (request) => withMarker(request, "noExitState", "exitState", "null"),
    run: async ({ ref, state, exitState, cursor: from, limit }) => {
      const after = from === undefined ? undefined : positionOf(decodeCursor(from, ["number", "number"]));
      const exit = exitState === "null" ? null : exitState;
      const walked = await walk(
        {
          read: (position, most) => processes.list(indexFor(ref, state, exitState), position, most),
          sortOf: ({ sort }) => sort,
          keep: (row) =>
            (ref === undefined || row.state.ref === ref) &&
            (state === undefined || row.state.state === state) &&
            (exit === undefined || row.state.exitState === exit),
        },
        after,
        limit,
      );
      return toPage(
        walked,
        (row) => toSnapshot(row.state, row.pid),
        ({ state }) => [state.createdAt, state.id],
      );
    },
  };

  const remove: Operation<{ id: number }, { process: Snapshot }> = {
    name: "deleteProcess",
    summary: "Delete an idle process with its code and results",
    rpcService,
    route: { method: "DELETE", path: "/processes/{id}", body: "none", status: 200, answer: answerSnapshot },
    role: "agent",
    input: byId,
    output: oneProcess,
    failures: ["conflict"],
    run: ({ id }, context) => ask(id, { type: "delete" }, context),
  };

  const run: Operation<{ id: number; force: boolean }, { process: Snapshot }> = {
    name: "runProcess",
    summary: "Run an idle process; force replaces earlier results",
    rpcService,
    route: { method: "POST", path: "/processes/{id}/signals/run", body: "fields", status: 200, answer: answerSnapshot },
    role: "agent",
    input: byId.extend({ force: z.boolean().default(false).describe("Replace the results of an earlier run") }),
    output: oneProcess,
    failures: ["conflict"],
    run: ({ id, force }, context) => withPlace(true, () => ask(id, { type: "run", force }, context)),
  };

  const kill: Operation<{ id: number }, { process: Snapshot }> = {
    name: "killProcess",
    summary: "Cancel a queued or running process",
    rpcService,
    route: {
      method: "POST",
      path: "/processes/{id}/signals/kill",
      body: "fields",
      status: 200,
      answer: answerSnapshot,
    },
    role: "agent",
    input: byId,
    output: oneProcess,
    failures: ["conflict"],
    run: ({ id }, context) => ask(id, { type: "kill" }, context),
  };

  const unload: Operation<{ id: number }, { process: Snapshot }> = {
    name: "unloadProcess",
    summary: "Let an idle process leave memory; its record stays",
    rpcService,
    route: {
      method: "POST",
      path: "/processes/{id}/signals/unload",
      body: "fields",
      status: 200,
      answer: answerSnapshot,
    },
    role: "agent",
    input: byId,
    output: oneProcess,
    failures: ["conflict"],
    run: async ({ id }, context) => {
      const { pid } = await find(id);
      const key = String(id);
      const message: ProcessMessage = { type: "unload", loaded: pid !== null };
      const state = (await processes.ask(key, message, { deadline: context.deadline })) as ProcessState;
      return { process: toSnapshot(state, null) };
    },
  };

  const output: Operation<{ id: number; wait?: number | undefined }, { output: Record<string, unknown> }> = {
    name: "getProcessOutput",
    summary: "Read the structured output of an idle process",
    rpcService,
    route: {
      method: "GET",
      path: "/processes/{id}/output",
      query: ["wait"],
      body: "none",
      status: 200,
      answer: { field: "output", mediaType: "application/json" },
    },
    role: "agent",
    input: byId.extend({ wait: waitSeconds }),
    output: z.object({ output: jsonObject.meta({ description: "What the program put out", example: { total: 3 } }) }),
    failures: ["conflict"],
    extraDeadlineMs: ({ wait }) => waitMs(wait),
    run: async ({ id, wait }, context) => {
      const { state } = await (wait === undefined ? find(id) : findIdle(id, wait, context));
      if (state.state !== "idle")
        throw new Failure("conflict", `Process ${id} has no output yet: it is ${state.state}`);
      const stored = await processes.blob(String(id), "output");
      return { output: JSON.parse(stored ?? "{}") as Record<string, unknown> };
    },
  };

  const code: Operation<{ id: number }, { code: string }> = {
    name: "getProcessCode",
    summary: "Read the source of a process",
    rpcService,
    route: textRoute("code"),
    role: "agent",
    input: byId,
    output: z.object({ code: z.string().meta({ example: "return { total: 1 + 2 };" }) }),
    run: async ({ id }) => {
      await find(id);
      return { code: (await processes.blob(String(id), "code")) ?? "" };
    },
  };

  const stdout: Operation<{ id: number }, { stdout: string }> = {
    name: "getProcessStdout",
    summary: "Read what a process has printed to standard output",
    rpcService,
    route: textRoute("stdout"),
    role: "agent",
    input: byId,
    output: z.object({ stdout: z.string().meta({ example: "three pets\n" }) }),
    run: async ({ id }) => ({ stdout: await printed(id, "stdout") }),
  };

  const stderr: Operation<{ id: number }, { stderr: string }> = {
    name: "getProcessStderr",
    summary: "Read what a process has printed to standard error",
    rpcService,
    route: textRoute("stderr"),
    role: "agent",
    input: byId,
    output: z.object({ stderr: z.string().meta({ example: "no such pet\n" }) }),
    run: async ({ id }) => ({ stderr: await printed(id, "stderr") }),
  };

  return [create, get, list, remove, run, kill, unload, output, code, stdout, stderr];
}

const createInput = z.object({
  code: text()
    .refine(
      (code) => code.length <= codeCharactersMax || [...code].length <= codeCharactersMax,
      `must have at most ${codeCharactersMax} characters`,
    )
    .meta({
      description: "Source code to stage and run in the active environment",
      maxLength: codeCharactersMax,
      example: "return { total: 1 + 2 };",
    }),
  ref: label.optional().meta({ description: "A label to find this and related processes by", example: "nightly" }),
  timeoutMs: z.number().positive("must be above 0").nullable().optional().meta({
    description: "Milliseconds the run may take; null: without end; absent: the default of the server",
    example: 5_000,
  }),
  envConfig: jsonObject
    .default({})
    .meta({ description: "Configuration of this run, handed to the environment", example: {} }),
  autorun: z.boolean().default(true).describe("When false the process waits in state idle for the run signal"),
});

const listInput = z.object({
  ref: label.optional().meta({ description: "Only processes with this label", example: "nightly" }),
  state: z.enum(lifecycleStates).optional().describe("Only processes in this state"),
  exitState: z
    .enum([...exitStates, "null"])
    .optional()
    .describe("Only processes that ended so; null: those that have not ended"),
  cursor,
  limit: pageLimit,
});

function textRoute(field: "code" | "stdout" | "stderr"): Route {
  return {
    method: "GET",
    path: `/processes/{id}/${field}`,
    body: "none",
    status: 200,
    answer: { field, mediaType: "text/plain" },
  };
}

function waitMs(seconds: number | undefined): number {
  return Math.min(seconds ?? 0, waitSecondsMax) * 1_000;
}

/** The narrowest index that holds every match; the filters then check the rest. */
export function indexFor(ref: string | undefined, state: string | undefined, exitState: string | undefined): string {
  if (ref !== undefined) return `ref/${ref}`;
  if (state !== undefined && state !== "idle") return `state/${state}`;
  if (exitState !== undefined) return `exit/${exitState}`;
  return "all";
}

function positionOf([createdAt, id]: readonly (string | number)[]): string {
  return processSort(Number(createdAt), Number(id));
}
