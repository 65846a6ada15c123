/**
 * The portable executor: a supervised pool of child processes, each running one program at a time in QuickJS.
 *
 * 1. Never more children than `concurrency`, counting those that start and those that leave.
 * 2. Every session is in exactly one place: the queue, or the child that runs it. It leaves both when it is over.
 * 3. A child that ends takes only its own run with it. Children that cannot be started are tried again with growing waits; after
 *    `executorStartsMax` failures in a row the waiting runs end `not_started`, and the next run tries afresh.
 */
import {
  executorIdleMs,
  executorQueueMax,
  executorSlackMb,
  executorStartBackoffMaxMs,
  executorStartBackoffMinMs,
  executorStartMs,
  executorStartsMax,
  executorStopSoftMs,
  executorWarmChildren,
  runsPerChildMax,
  stopGraceMs,
  toolAnswerBytesMax,
} from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Executor, ExecutorChild, RunEvents, RunHandle, RunRequest, ToolAnswer } from "../../ports/executor.ts";
import type { Log } from "../../ports/log.ts";
import { ChildLink, type Departure } from "./child-link.ts";
import { type MemoryFence, memoryFence, memoryPollMs } from "./memory-fence.ts";
import { residentKb } from "./memory-size.ts";
import type { ChildMessage } from "./messages.ts";
import { memoryReason, RunSession } from "./run-session.ts";

export interface PortableExecutorOptions {
  /** Most memory of one run, in MB; a run may ask for less. */
  readonly memoryMbMax: number;
  /** Runs, and so children, alive at once. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Rejects when not even one child can be started. */
export async function openPortableExecutor(options: PortableExecutorOptions): Promise<Executor> {
  const fence = await memoryFence(options.memoryMbMax, options.log);
  const executor = new PortableExecutor(options, fence);
  executor.keepWarm();
  return executor;
}

interface Child {
  readonly link: ChildLink;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  state: "starting" | "idle" | "busy" | "leaving";
  session: RunSession | undefined;
  runs: number;
  usedMb: number;
  /** Resident memory when it was ready for the first time. */
  firstMb: number | undefined;
  cancelTimer: () => void;
}

/** Answers that a computing child has not read pile up in the server: beyond this they are refused. */
const answerBytesWaitingMax = 4 * toolAnswerBytesMax;
/** A child whose resident memory grew by this much over its first is replaced. */
const growthMbMax = 64;

class PortableExecutor implements Executor {
  readonly name = "portable";
  readonly #options: PortableExecutorOptions;
  readonly #fence: MemoryFence;
  readonly #children = new Set<Child>();
  readonly #queue: RunSession[] = [];
  #failedStarts = 0;
  #waitingToRetry: (() => void) | undefined;
  #closed: (() => void) | undefined;
  #runsTotal = 0;
  #childrenTotal = 0;
  #crashesTotal = 0;

  constructor(options: PortableExecutorOptions, fence: MemoryFence) {
    this.#options = options;
    this.#fence = fence;
  }

  start(run: RunRequest, events: RunEvents): RunHandle {
    const session = new RunSession(run, events);
    this.#runsTotal += 1;
    if (this.#closed !== undefined || this.#queue.length >= executorQueueMax) {
      const why = this.#closed === undefined ? "too many programs wait" : "the service is stopping";
      // Not before the caller holds the handle.
      setImmediate(() => session.fail("not_started", `The program was not started: ${why}`));
    } else {
      this.#queue.push(session);
      setImmediate(() => this.#serve());
    }
    return {
      answer: (callId, answer) => this.#answer(session, callId, answer),
      stop: () => this.#stop(session),
    };
  }

  inspect(): Readonly<Record<string, number>> {
    const count = (state: Child["state"]): number =>
      [...this.#children].filter((child) => child.state === state).length;
    return {
      running: count("busy"),
      waiting: this.#queue.length,
      children: this.#children.size,
      idle: count("idle"),
      starting: count("starting"),
      runsTotal: this.#runsTotal,
      childrenTotal: this.#childrenTotal,
      crashesTotal: this.#crashesTotal,
      dataLimitKb: this.#fence.dataKbMax ?? 0,
    };
  }

  children(): readonly ExecutorChild[] {
    return [...this.#children].map(({ link, state, startedAt, session }) => ({
      pid: link.pid ?? null,
      kind: "executor",
      state,
      startedAt,
      runIds: session === undefined ? [] : [session.request.runId],
    }));
  }

  async close(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    this.#waitingToRetry?.();
    for (const session of this.#queue.splice(0)) session.stopped();
    for (const child of this.#children) {
      if (child.session !== undefined) child.session.markStopping();
      child.link.kill("the executor closes");
    }
    if (this.#children.size > 0) await gone;
  }

  /** A few children wait for the next run. */
  keepWarm(): void {
    if (this.#closed !== undefined || this.#waitingToRetry !== undefined) return;
    // One that prepares its next stage is ready in a few milliseconds; a new child takes a hundred times that.
    const isReady = ({ state, session }: Child): boolean =>
      state === "idle" || state === "starting" || (state === "busy" && session === undefined);
    const ready = [...this.#children].filter(isReady).length;
    const wanted = Math.max(this.#queue.length, executorWarmChildren) - ready;
    const room = this.#options.concurrency - this.#children.size;
    for (let left = Math.min(wanted, room); left > 0; left -= 1) this.#launch();
  }

  /** Gives waiting runs to idle children, and starts children for the rest. */
  #serve(): void {
    for (const child of this.#children) {
      if (this.#queue.length === 0) break;
      if (child.state === "idle") this.#give(child, this.#queue.shift() as RunSession);
    }
    this.keepWarm();
  }

  #give(child: Child, session: RunSession): void {
    child.cancelTimer();
    child.state = "busy";
    child.session = session;
    child.runs += 1;
    child.link.allowOutput(session.request.limits.outputBytes);
    child.link.send(session.toMessage());
    if (this.#fence.dataKbMax === undefined) this.#watchMemory(child, session);
  }

  #launch(): void {
    this.#childrenTotal += 1;
    const link = new ChildLink(
      { dataKbMax: this.#fence.dataKbMax, measure: false },
      { message: (message) => this.#take(child, message), gone: (departure) => this.#leave(child, departure) },
    );
    const child: Child = {
      link,
      startedAt: this.#options.clock.now(),
      state: "starting",
      session: undefined,
      runs: 0,
      usedMb: 0,
      firstMb: undefined,
      cancelTimer: this.#options.clock.after(executorStartMs, () => link.kill("it was not ready in time")),
    };
    this.#children.add(child);
  }

  #take(child: Child, message: ChildMessage): void {
    if (message.type === "ready") {
      if (child.state === "idle" || child.session !== undefined) child.link.kill("it broke the protocol");
      else this.#ready(child, message.usedMb);
      return;
    }
    // A run that was stopped the hard way may still speak until its child is gone.
    if (child.state === "leaving" && child.session === undefined) return;
    const reaction = child.session?.take(message) ?? "lied";
    if (reaction === "goes-on") return;
    if (child.session?.over === true) {
      child.session = undefined;
      child.cancelTimer();
      // Until it says that it is ready again it must not hang either.
      child.cancelTimer = this.#options.clock.after(executorStartMs, () =>
        child.link.kill("it was not ready again in time"),
      );
    }
    if (reaction === "lied") this.#discard(child, "it broke the protocol");
  }

  #ready(child: Child, usedMb: number): void {
    child.cancelTimer();
    if (child.state === "leaving") return;
    this.#failedStarts = 0;
    child.usedMb = usedMb;
    child.firstMb ??= usedMb;
    if (child.runs >= runsPerChildMax || usedMb > child.firstMb + growthMbMax) {
      this.#dismiss(child);
      this.#serve();
      return;
    }
    child.state = "idle";
    child.cancelTimer = this.#options.clock.after(executorIdleMs, () => this.#rest(child));
    this.#serve();
  }

  /** Idle for long: leaves, unless it is one of those kept warm. */
  #rest(child: Child): void {
    const idle = [...this.#children].filter(({ state }) => state === "idle").length;
    if (idle > executorWarmChildren) this.#dismiss(child);
    else child.cancelTimer = this.#options.clock.after(executorIdleMs, () => this.#rest(child));
  }

  #dismiss(child: Child): void {
    child.state = "leaving";
    child.link.dismiss();
    child.cancelTimer = this.#options.clock.after(stopGraceMs, () => child.link.kill("it did not leave"));
  }

  #discard(child: Child, reason: string): void {
    child.state = "leaving";
    child.link.kill(reason);
  }

  #leave(child: Child, departure: Departure): void {
    child.cancelTimer();
    this.#children.delete(child);
    const { session, state } = child;
    if (session !== undefined && this.#mayRetry(session)) this.#queue.unshift(session);
    else if (session !== undefined) {
      this.#crashesTotal += 1;
      const { code, signal, killedFor, lastWords } = departure;
      const fields = { runId: session.request.runId, code, signal, killedFor, lastWords: lastWords.slice(-500) };
      if (killedFor === undefined)
        this.#options.log.warn("executor-child-ended", "A child ended during its run", fields);
      session.lost(departure);
    } else if (state === "starting" && this.#closed === undefined) this.#startFailed(departure);
    if (this.#closed !== undefined) {
      if (this.#children.size === 0) this.#closed();
    } else this.#serve();
  }

  /** The child was gone before it took the run: nothing of the program was executed. */
  #mayRetry(session: RunSession): boolean {
    session.lostBeforeStart += 1;
    return (
      !session.started && !session.stopping && this.#closed === undefined && session.lostBeforeStart < executorStartsMax
    );
  }

  #startFailed({ code, signal, killedFor, lastWords }: Departure): void {
    this.#failedStarts += 1;
    const reason = killedFor ?? (lastWords.trim().split("\n").at(-1) || `it ended with ${signal ?? `code ${code}`}`);
    this.#options.log.error("executor-child-not-started", `A child could not be started: ${reason}`, { code, signal });
    if (this.#failedStarts >= executorStartsMax) {
      this.#failedStarts = 0;
      for (const session of this.#queue.splice(0)) {
        session.fail("not_started", "The program was not started: the executor cannot start processes");
      }
    }
    if (this.#waitingToRetry !== undefined) return;
    const wait = Math.min(executorStartBackoffMinMs * 2 ** this.#failedStarts, executorStartBackoffMaxMs);
    this.#waitingToRetry = this.#options.clock.after(wait, () => {
      this.#waitingToRetry = undefined;
      this.#serve();
    });
  }

  #childOf(session: RunSession): Child | undefined {
    return [...this.#children].find((child) => child.session === session);
  }

  #answer(session: RunSession, callId: number, answer: ToolAnswer): void {
    const child = this.#childOf(session);
    if (child === undefined) return;
    const fits = child.link.bytesWaiting <= answerBytesWaitingMax;
    const given: ToolAnswer = fits
      ? answer
      : { ok: false, message: "The program does not read its answers", code: "overloaded", status: 429 };
    const message = session.answer(callId, given);
    if (message !== undefined) child.link.send(message);
  }

  /** A child that waits stops politely and lives on; one that computes is killed, and what it gave so far is kept. */
  #stop(session: RunSession): void {
    if (session.over) return;
    const queued = this.#queue.indexOf(session);
    session.markStopping();
    if (queued >= 0) {
      this.#queue.splice(queued, 1);
      session.stopped();
      return;
    }
    const child = this.#childOf(session);
    if (child === undefined || child.state !== "busy") return;
    child.link.send({ type: "stop" });
    child.cancelTimer();
    child.cancelTimer = this.#options.clock.after(executorStopSoftMs, () =>
      this.#discard(child, "its run was stopped"),
    );
  }

  /** Where no data limit could be set from outside. */
  #watchMemory(child: Child, session: RunSession): void {
    const { pid } = child.link;
    const mostKb = (child.usedMb + session.request.limits.memoryMb + executorSlackMb) * 1024;
    const look = async (): Promise<void> => {
      const usedKb = pid === undefined ? undefined : await residentKb(pid);
      if (session.over || child.session !== session) return;
      if (usedKb !== undefined && usedKb > mostKb) this.#discard(child, memoryReason);
      else this.#options.clock.after(memoryPollMs, () => void look());
    };
    void look();
  }
}
