/**
 * The Python executor: a supervised fork server in a sandbox, and one process of it for each run.
 *
 * 1. Never more than `concurrency` runs on fork servers, counting those whose process has not left yet.
 * 2. Every session is in exactly one place: the queue, or a run. It leaves both when it is over and its process is gone.
 * 3. One fork server takes new runs. One that served its share is replaced and leaves with its last run; one that dies
 *    takes its runs with it, and another is started, with growing waits. After `executorStartsMax` failures in a row the waiting
 *    runs end `not_started`.
 */
import {
  executorQueueMax,
  executorStartBackoffMaxMs,
  executorStartBackoffMinMs,
  executorStartMs,
  executorStartsMax,
  pythonSlackMb,
  runErrorCharactersMax,
  runsPerChildMax,
  stopGraceMs,
  toolAnswerBytesMax,
  toolCallsInFlightMax,
  toolParametersCharactersMax,
} from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Executor, ExecutorChild, RunEvents, RunHandle, RunRequest, ToolAnswer } from "../../ports/executor.ts";
import type { Log } from "../../ports/log.ts";
import type { Departure } from "../portable/child-link.ts";
import type { ChildMessage } from "../portable/messages.ts";
import { RunSession } from "../portable/run-session.ts";
import { RunLink } from "./run-link.ts";
import { type PythonFacts, pythonFacts } from "./sandbox.ts";
import { type RunExit, Zygote } from "./zygote.ts";

export interface PythonExecutorOptions {
  /** Most memory of one run, in MB; a run may ask for less. */
  readonly memoryMbMax: number;
  /** Runs, and so processes, alive at once. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Default `runsPerChildMax`. */
  readonly runsPerServerMax?: number;
}

/** Rejects when the fork server cannot be started; `pythonUnavailable` says why in a sentence for operators. */
export async function openPythonExecutor(options: PythonExecutorOptions): Promise<Executor> {
  const executor = new PythonExecutor(options, await pythonFacts());
  await executor.open();
  return executor;
}

interface Run {
  readonly session: RunSession;
  readonly link: RunLink;
  /** Of its start, then of its stop. */
  cancelTimer: () => void;
}

interface Server {
  readonly zygote: Zygote;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** `lost`: it takes no connections any more, and its end has not been reported yet. */
  state: "starting" | "ready" | "leaving" | "lost";
  /** By number; the numbers count up. */
  readonly runs: Map<number, Run>;
  runsTotal: number;
  addressBytes: number;
  cancelTimer: () => void;
}

/** Answers that a computing run has not read pile up in the server: beyond this they are refused. */
const answerBytesWaitingMax = 4 * toolAnswerBytesMax;
const megabyte = 1024 * 1024;

class PythonExecutor implements Executor {
  readonly name = "python";
  readonly #options: PythonExecutorOptions;
  readonly #facts: PythonFacts;
  readonly #servers = new Set<Server>();
  readonly #queue: RunSession[] = [];
  #failedStarts = 0;
  #waitingToRetry: (() => void) | undefined;
  #opening: { resolve(): void; reject(error: Error): void } | undefined;
  #closed: (() => void) | undefined;
  #runsTotal = 0;
  #crashesTotal = 0;
  #serversTotal = 0;

  constructor(options: PythonExecutorOptions, facts: PythonFacts) {
    this.#options = options;
    this.#facts = facts;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#opening = { resolve, reject };
      this.#launch();
    });
  }

  start(request: RunRequest, events: RunEvents): RunHandle {
    const session = new RunSession(request, events);
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
    return {
      running: this.#running(),
      waiting: this.#queue.length,
      servers: this.#servers.size,
      runsTotal: this.#runsTotal,
      serversTotal: this.#serversTotal,
      crashesTotal: this.#crashesTotal,
    };
  }

  children(): readonly ExecutorChild[] {
    return [...this.#servers].map(({ zygote, state, startedAt, runs }) => ({
      pid: zygote.pid ?? null,
      kind: "forkServer",
      state: state === "ready" ? (runs.size === 0 ? "idle" : "busy") : state === "starting" ? "starting" : "leaving",
      startedAt,
      runIds: [...runs.values()].map(({ session }) => session.request.runId),
    }));
  }

  async close(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    this.#waitingToRetry?.();
    for (const session of this.#queue.splice(0)) session.stopped();
    for (const { zygote, runs } of this.#servers) {
      for (const { session } of runs.values()) session.markStopping();
      zygote.kill("the executor closes");
    }
    if (this.#servers.size > 0) await gone;
  }

  #running(): number {
    return [...this.#servers].reduce((sum, { runs }) => sum + runs.size, 0);
  }

  /** Gives waiting runs to the fork server that takes them, and sees that there is one. */
  #serve(): void {
    if (this.#closed !== undefined) return;
    const ready = [...this.#servers].find(({ state }) => state === "ready");
    if (ready !== undefined) {
      while (this.#queue.length > 0 && this.#running() < this.#options.concurrency) {
        this.#give(ready, this.#queue.shift() as RunSession);
      }
    }
    const starting = [...this.#servers].some(({ state }) => state === "starting");
    const enough = ready !== undefined && ready.runsTotal < (this.#options.runsPerServerMax ?? runsPerChildMax);
    if (!enough && !starting && this.#waitingToRetry === undefined) this.#launch();
  }

  #give(server: Server, session: RunSession): void {
    server.runsTotal += 1;
    const number = server.runsTotal;
    const { limits } = session.request;
    const memoryMb = Math.min(limits.memoryMb, this.#options.memoryMbMax);
    const request = {
      ...session.toMessage(),
      memoryMb,
      addressBytes: Math.floor(server.addressBytes + (memoryMb + pythonSlackMb) * megabyte),
      errorCharactersMax: runErrorCharactersMax,
      parametersCharactersMax: toolParametersCharactersMax,
      callsInFlightMax: toolCallsInFlightMax,
    };
    const { zygote } = server;
    const { clock } = this.#options;
    const link = new RunLink(
      { zygote, number, request, outputBytes: limits.outputBytes, clock },
      {
        message: (message) => this.#take(run, message),
        gone: (exit, killedFor) => this.#leave(server, run, exit, killedFor),
      },
    );
    const cancelTimer = clock.after(executorStartMs, () => link.kill("its process did not start in time"));
    const run: Run = { session, link, cancelTimer };
    server.runs.set(number, run);
  }

  #take({ session, link, cancelTimer }: Run, message: ChildMessage): void {
    if (session.over) return;
    if (message.type === "started" && !session.stopping) cancelTimer();
    const reaction = session.take(message);
    if (reaction === "lied") link.kill("it broke the protocol");
    else if (reaction === "ended") link.settle();
  }

  #leave(server: Server, { session, link, cancelTimer }: Run, exit: RunExit, killedFor: string | undefined): void {
    cancelTimer();
    server.runs.delete(link.number);
    // Before anybody else is sent there: the queue would be used up against a closed door.
    if (!link.isConnected && !session.stopping && server.state === "ready") {
      server.state = "lost";
      server.zygote.kill("it takes no connections");
    }
    if (!session.over) {
      if (this.#mayRetry(session)) this.#queue.unshift(session);
      else this.#ended(session, exit, killedFor);
    } else if (session.started) this.#failedStarts = 0;
    if (server.state === "leaving" && server.runs.size === 0) server.zygote.dismiss();
    this.#serve();
  }

  /** The process was gone before it took the run: nothing of the program was executed. */
  #mayRetry(session: RunSession): boolean {
    session.lostBeforeStart += 1;
    return (
      !session.started && !session.stopping && this.#closed === undefined && session.lostBeforeStart < executorStartsMax
    );
  }

  /** The process left before it said how the run ended. */
  #ended(session: RunSession, { code, signal, cpuMs }: RunExit, killedFor: string | undefined): void {
    const cpuMsMax = session.request.limits.cpuMs;
    // The timer's signals, which nobody else can send; behind them stands the kernel's own limit.
    const byTime =
      signal === "SIGPROF" || signal === "SIGXCPU" || (signal === "SIGKILL" && cpuMs >= (cpuMsMax ?? Infinity));
    if (killedFor === undefined && byTime) {
      session.fail("thrown", `The program used more than its limit of ${cpuMsMax} ms of CPU time`);
    } else if (killedFor === undefined && code !== null && session.started) {
      session.fail("thrown", `The program ended its own process with exit code ${code}`);
    } else {
      this.#crashesTotal += 1;
      const { runId } = session.request;
      if (killedFor === undefined && !session.stopping)
        this.#options.log.warn("executor-run-crashed", "The process of a run ended", { runId, code, signal });
      session.lost({ code, signal: signal as NodeJS.Signals | null, lastWords: "", killedFor });
    }
  }

  #launch(): void {
    this.#serversTotal += 1;
    const zygote = new Zygote(this.#facts, {
      ready: () => this.#ready(server),
      exited: (number, exit) => server.runs.get(number)?.link.exited(exit),
      gone: (departure) => this.#lose(server, departure),
    });
    const server: Server = {
      zygote,
      startedAt: this.#options.clock.now(),
      state: "starting",
      runs: new Map(),
      runsTotal: 0,
      addressBytes: 0,
      cancelTimer: this.#options.clock.after(executorStartMs, () => zygote.kill("it was not ready in time")),
    };
    this.#servers.add(server);
  }

  #ready(server: Server): void {
    const { addressBytes } = server.zygote;
    if (server.state !== "starting" || addressBytes === undefined) {
      server.zygote.kill(addressBytes === undefined ? "its memory cannot be read" : "it broke the protocol");
      return;
    }
    server.cancelTimer();
    server.addressBytes = addressBytes;
    for (const former of this.#servers) {
      if (former.state === "ready") this.#retire(former);
    }
    server.state = "ready";
    this.#opening?.resolve();
    this.#opening = undefined;
    this.#serve();
  }

  /** It takes no more runs, and leaves with its last. */
  #retire(server: Server): void {
    server.state = "leaving";
    if (server.runs.size === 0) server.zygote.dismiss();
  }

  #lose(server: Server, departure: Departure): void {
    server.cancelTimer();
    this.#servers.delete(server);
    const expected = server.state === "leaving" && server.runs.size === 0;
    if (!expected && this.#closed === undefined) this.#failed(server, departure);
    for (const { link } of [...server.runs.values()]) link.lost();
    if (this.#closed !== undefined) {
      if (this.#servers.size === 0) this.#closed();
    } else this.#serve();
  }

  #failed(server: Server, { code, signal, killedFor, lastWords }: Departure): void {
    this.#failedStarts += 1;
    const reason = killedFor ?? (lastWords.trim().split("\n").at(-1) || `it ended with ${signal ?? `code ${code}`}`);
    if (this.#opening !== undefined) {
      this.#closed = () => undefined;
      this.#opening.reject(new Error(`Cannot start the fork server of Python: ${reason}`));
      return;
    }
    const what = server.state === "starting" ? "could not be started" : "ended";
    this.#options.log.error("executor-server-ended", `The fork server of Python ${what}: ${reason}`, { code, signal });
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

  #runOf(session: RunSession): Run | undefined {
    for (const { runs } of this.#servers) {
      for (const run of runs.values()) if (run.session === session) return run;
    }
    return undefined;
  }

  #answer(session: RunSession, callId: number, answer: ToolAnswer): void {
    const run = this.#runOf(session);
    if (run === undefined) return;
    const fits = run.link.bytesWaiting <= answerBytesWaitingMax;
    const given: ToolAnswer = fits
      ? answer
      : { ok: false, message: "The program does not read its answers", code: "overloaded", status: 429 };
    const message = session.answer(callId, given);
    if (message !== undefined) run.link.send(message);
  }

  /** The process is killed whatever it does; what it gave so far is kept. */
  #stop(session: RunSession): void {
    if (session.over) return;
    session.markStopping();
    const queued = this.#queue.indexOf(session);
    if (queued >= 0) {
      this.#queue.splice(queued, 1);
      session.stopped();
      return;
    }
    const run = this.#runOf(session);
    if (run === undefined) return;
    run.cancelTimer();
    // Should the process, against all odds, not be gone by then, the caller is told all the same.
    run.cancelTimer = this.#options.clock.after(stopGraceMs, () => session.stopped());
    run.link.kill("its run was stopped");
  }
}
