/** What runs away from the server process: programs, and the child processes for programs, modules and workers. */
import { z } from "zod";
import type { Executor } from "../ports/executor.ts";
import type { ModuleProcess } from "../ports/module-host.ts";
import { runSlots } from "./diagnostics-node.ts";
import type { RpcOperation } from "./operation.ts";
import { instant, isoTime } from "./shapes.ts";

const count = z.int().nonnegative();

const executingRun = z.object({ processId: count, run: count, startedAt: instant });

const child = z.object({
  pid: count.optional(),
  kind: z.enum(["executor", "forkServer", "module", "worker"]),
  name: z.string(),
  state: z.enum(["starting", "idle", "busy", "leaving", "down"]),
  startedAt: instant.optional(),
  runs: z.array(executingRun),
  memoryBytes: count.optional(),
  restarts: count,
  lastError: z.string().optional(),
});
type Child = z.infer<typeof child>;

const listOutput = z.object({
  slots: runSlots,
  environments: z.array(
    z.object({
      moduleId: z.string(),
      executor: z.string(),
      draining: z.boolean(),
      runs: count,
      runsTotal: count.optional(),
      childrenTotal: count.optional(),
      crashesTotal: count.optional(),
    }),
  ),
  runs: z.array(executingRun),
  children: z.array(child),
});

interface RunningProgram {
  readonly runId: string;
  readonly processId: number;
  readonly run: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

interface AliveEnvironment {
  readonly moduleId: string;
  readonly executor: Executor;
  readonly runs: number;
  readonly draining: boolean;
}

interface Worker {
  readonly name: string;
  readonly pid: number | null;
  readonly state: "starting" | "idle" | "busy" | "down";
  readonly startedAt: number | null;
  readonly started: number;
  readonly lastError: string | null;
}

export interface ExecutorDiagnosticsParts {
  readonly slots: () => z.infer<typeof runSlots>;
  /** Those that execute now, the longest first. */
  readonly running: () => readonly RunningProgram[];
  readonly environments: () => readonly AliveEnvironment[];
  readonly modules: () => readonly ModuleProcess[];
  readonly workers: () => readonly Worker[];
  /** Resident memory of a process and what it has started, KiB; undefined where the machine does not tell. */
  readonly memoryKb: (pid: number) => Promise<number | undefined>;
  /** What went wrong with a child, without secrets. */
  readonly mask: (sentence: string) => string;
}

export function executorDiagnostics(parts: ExecutorDiagnosticsParts): RpcOperation<object, z.infer<typeof listOutput>> {
  return {
    name: "listExecutors",
    summary: "Programs that run, and every child process of the server",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: z.object({}),
    output: listOutput,
    run: async () => {
      const running = parts.running();
      const environments = parts.environments();
      const children = [
        ...environments.flatMap((environment) => childrenOf(environment, running)),
        ...parts.modules().map((module) => moduleChild(module, parts.mask)),
        ...parts.workers().map((worker) => workerChild(worker, parts.mask)),
      ];
      return {
        slots: parts.slots(),
        environments: environments.map(toEnvironment),
        runs: running.map(toRun),
        children: await Promise.all(children.map((one) => withMemory(one, parts.memoryKb))),
      };
    },
  };
}

function toEnvironment({ moduleId, executor, runs, draining }: AliveEnvironment) {
  const { runsTotal, childrenTotal, serversTotal, crashesTotal } = executor.inspect();
  const started = childrenTotal ?? serversTotal;
  return {
    moduleId,
    executor: executor.name,
    draining,
    runs,
    ...(runsTotal === undefined ? {} : { runsTotal }),
    ...(started === undefined ? {} : { childrenTotal: started }),
    ...(crashesTotal === undefined ? {} : { crashesTotal }),
  };
}

function childrenOf({ moduleId, executor }: AliveEnvironment, running: readonly RunningProgram[]): readonly Child[] {
  return (executor.children?.() ?? []).map(({ pid, kind, state, startedAt, runIds }) => ({
    ...(pid === null ? {} : { pid }),
    kind,
    name: moduleId,
    state,
    startedAt: time(startedAt),
    runs: running.filter(({ runId }) => runIds.includes(runId)).map(toRun),
    restarts: 0,
  }));
}

function moduleChild(
  { moduleId, pid, state, startedAt, restarts, lastError }: ModuleProcess,
  mask: (text: string) => string,
): Child {
  return {
    ...(pid === null ? {} : { pid }),
    kind: "module",
    name: moduleId,
    state,
    ...(startedAt === null ? {} : { startedAt: time(startedAt) }),
    runs: [],
    restarts,
    ...(lastError === null ? {} : { lastError: mask(`Module "${moduleId}" ${lastError}`) }),
  };
}

function workerChild(
  { name, pid, state, startedAt, started, lastError }: Worker,
  mask: (text: string) => string,
): Child {
  return {
    ...(pid === null ? {} : { pid }),
    kind: "worker",
    name,
    state,
    ...(startedAt === null ? {} : { startedAt: time(startedAt) }),
    runs: [],
    restarts: Math.max(0, started - 1),
    ...(lastError === null ? {} : { lastError: mask(`The ${name} ${lastError}`) }),
  };
}

async function withMemory(one: Child, memoryKb: ExecutorDiagnosticsParts["memoryKb"]): Promise<Child> {
  const kb = one.pid === undefined ? undefined : await memoryKb(one.pid);
  return kb === undefined ? one : { ...one, memoryBytes: kb * 1_024 };
}

function toRun({ processId, run, startedAt }: RunningProgram): z.infer<typeof executingRun> {
  return { processId, run, startedAt: time(startedAt) };
}

function time(epochMs: number): string {
  return isoTime(Math.round(epochMs));
}
