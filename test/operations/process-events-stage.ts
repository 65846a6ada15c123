/** Real processes, queue and rows over a memory store, with an executor that does what the test says. */
import { type ProcessState, processKind } from "../../src/actors/process.ts";
import type { Failure } from "../../src/errors/failure.ts";
import { RunQueue } from "../../src/executor/launcher.ts";
import type { StreamOperation } from "../../src/operations/operation.ts";
import { type ProcessEvent, processStreams } from "../../src/operations/process-events.ts";
import { System } from "../../src/runtime/system.ts";
import { ScriptedExecutor, type ScriptedRun } from "../executor/scripted-executor.ts";
import { ManualClock, settle } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { MemoryDisk, openMemoryStore } from "../store/memory-store.ts";

export interface Follower {
  /** What was taken so far, in order. */
  readonly events: ProcessEvent[];
  /** Resolves when the stream is over; rejects with what it was broken off with. */
  readonly over: Promise<void>;
  leave(reason: Failure): void;
}

/** Opening it again with the same disk is a restart: whatever ran is lost. */
export async function openProcesses(disk = new MemoryDisk(), concurrency = 2) {
  const clock = new ManualClock();
  const executor = new ScriptedExecutor();
  const store = await openMemoryStore({ clock, log: silentLog, engine: disk });
  const system = new System({ store, clock, log: silentLog, random: () => 0 });
  const launcher = new RunQueue({
    executor,
    clock,
    concurrency,
    queueMax: 100,
    limits: { memoryMb: 128, outputBytes: 1_000, cpuMs: null },
    toolTimeoutMs: 1_000,
    callTool: async () => "answer",
  });
  const processes = system.register(processKind, { launcher });
  await system.start();
  await settle();
  const [row] = processStreams({ processes, launcher }) as unknown as [
    StreamOperation<{ id: number; lastEventId?: unknown }, ProcessEvent>,
  ];

  const create = async (autorun = true): Promise<number> => {
    const id = processes.nextKey();
    await processes.ask(String(id), {
      type: "create",
      id,
      code: "",
      ref: undefined,
      timeoutMs: null,
      envConfig: {},
      autorun,
    });
    await settle();
    return id;
  };
  const force = async (id: number): Promise<void> => {
    await processes.ask(String(id), { type: "run", force: true });
    await settle();
  };
  /** The newest run of the executor. */
  const run = (): ScriptedRun => executor.runs.at(-1) as ScriptedRun;

  const open = (id: number, lastEventId?: unknown, signal = new AbortController().signal) =>
    row.open(row.input.parse({ id, lastEventId }), {
      requestId: "r",
      caller: { name: "c", role: "agent" },
      deadline: Number.POSITIVE_INFINITY,
      signal,
    });

  /** Takes events as fast as they come. */
  const follow = async (id: number, lastEventId?: unknown): Promise<Follower> => {
    const leaving = new AbortController();
    const items = await open(id, lastEventId, leaving.signal);
    if (items === null) throw new Error("Nothing is left to tell");
    const events: ProcessEvent[] = [];
    const over = (async () => {
      for await (const event of items) events.push(event);
    })();
    over.catch(() => undefined);
    await settle();
    return { events, over, leave: (reason) => leaving.abort(reason) };
  };
  const stateOf = async (id: number): Promise<ProcessState | null> => (await processes.query(String(id))).state;
  const remove = (id: number) => processes.ask(String(id), { type: "delete" });
  const kill = (id: number) => processes.ask(String(id), { type: "kill" });
  return {
    disk,
    clock,
    executor,
    system,
    launcher,
    processes,
    create,
    force,
    run,
    open,
    follow,
    stateOf,
    remove,
    kill,
  };
}

/** One word for each event. */
export function told(events: readonly ProcessEvent[]): string[] {
  return events.map(({ kind, state, text, toolCall, output }) =>
    [kind, state ?? text ?? toolCall?.state ?? (output === undefined ? undefined : JSON.stringify(output))]
      .filter((part) => part !== undefined)
      .join(" "),
  );
}

export const sequences = (events: readonly ProcessEvent[]): number[] => events.map(({ sequence }) => sequence);
