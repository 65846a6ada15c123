/**
 * One child process that does work the server must not do itself, such as reading foreign documents. Invariants:
 * 1. One request is in the child at a time, so a hang or a death has exactly one culprit; the others only wait.
 * 2. A request's time starts when the child gets it. One that passes it ends the child and answers `timeout`; it is not tried again.
 * 3. A death may be the fault of earlier requests (a full heap) or of nobody (a signal from outside): the request is tried once
 *    more in a fresh child. A second death is its own fault.
 * 4. The child starts on demand, with an empty environment, in its own process group, and ends when its channel closes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Failure, type FailureDetails, type FailureKind } from "../../errors/failure.ts";
import { workerRequestsWaitingMax, workerRequestWaitMs, workerStartMs } from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";

export interface WorkerOptions {
  /** For the log and for error texts: "definition worker". */
  readonly name: string;
  /** Module the child runs; it calls `serveWorker`. */
  readonly entry: URL;
  /** Heap of the child, MiB. */
  readonly memoryMb: number;
  /** A child idle this long is ended, giving its memory back; absent: it stays. */
  readonly idleMs?: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface WorkerRequest {
  readonly method: string;
  /** Structured-cloneable. */
  readonly input: unknown;
  /** How long the child may take. */
  readonly timeoutMs: number;
  /** Opens error texts: `Definition document`. */
  readonly subject: string;
  readonly signal?: AbortSignal | undefined;
}

/** What the child says; `ready` once, then one answer to each request. */
export type WorkerReport = { readonly ready: true } | { readonly ok: true; readonly value: unknown } | WorkerRefusal;

export interface WorkerRefusal {
  readonly ok: false;
  readonly kind: FailureKind;
  readonly message: string;
  readonly fields?: FailureDetails["fields"];
}

export interface SupervisedWorker {
  /** Rejects with Failure: the child's own refusal, timeout, invalid_request (the child died of it), overloaded, unavailable, cancelled. */
  call(request: WorkerRequest): Promise<unknown>;
  inspect(): WorkerInspection;
  close(): Promise<void>;
}

export interface WorkerInspection {
  readonly name: string;
  readonly pid: number | null;
  readonly state: "starting" | "idle" | "busy" | "down";
  /** Epoch milliseconds; null while there is no child. */
  readonly startedAt: number | null;
  readonly waiting: number;
  /** Children so far. */
  readonly started: number;
  /** Why the last child that was lost ended. */
  readonly lastError: string | null;
}

interface Waiting {
  readonly request: WorkerRequest;
  deaths: number;
  settled: boolean;
  stopWaiting(): void;
  resolve(value: unknown): void;
  reject(failure: Failure): void;
}

/** Enough of stderr to recognise how the child died. */
const stderrCharactersMax = 8_192;

export function openSupervisedWorker(options: WorkerOptions): SupervisedWorker {
  const worker = new ChildWorker(options);
  open.add(worker);
  return worker;
}

/** Of this process, because that is whose children they have: for diagnostics. */
const open = new Set<ChildWorker>();

/** Every worker that is open, whichever adapter has it. */
export function inspectWorkers(): readonly WorkerInspection[] {
  return [...open].map((worker) => worker.inspect());
}

class ChildWorker implements SupervisedWorker {
  private readonly options: WorkerOptions;
  private readonly queue: Waiting[] = [];
  private current: Waiting | undefined;
  private child: ChildProcess | undefined;
  private childReady = false;
  private stderr = "";
  private started = 0;
  private startedAt = 0;
  private lastError: string | null = null;
  private closed = false;
  private stopDeadline: () => void = () => {};
  private stopIdle: () => void = () => {};

  constructor(options: WorkerOptions) {
    this.options = options;
  }

  call(request: WorkerRequest): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.closed) throw new Failure("unavailable", `The ${this.options.name} is closed`);
      if (request.signal?.aborted) throw new Failure("cancelled", `${request.subject}: the caller went away`);
      if (this.queue.length >= workerRequestsWaitingMax) {
        throw new Failure("overloaded", `The ${this.options.name} has ${workerRequestsWaitingMax} requests waiting`);
      }
      this.queue.push(this.waiting(request, resolve, reject));
      this.advance();
    });
  }

  inspect(): WorkerInspection {
    return {
      name: this.options.name,
      pid: this.child?.pid ?? null,
      state: !this.child ? "down" : !this.childReady ? "starting" : this.current ? "busy" : "idle",
      startedAt: this.child ? this.startedAt : null,
      waiting: this.queue.length,
      started: this.started,
      lastError: this.lastError,
    };
  }

  async close(): Promise<void> {
    this.closed = true;
    open.delete(this);
    const failure = new Failure("unavailable", `The ${this.options.name} is closed`);
    for (const waiting of [...this.queue.splice(0), ...(this.current ? [this.current] : [])]) waiting.reject(failure);
    this.current = undefined;
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
    this.discardChild();
    await exited;
  }

  private waiting(
    request: WorkerRequest,
    resolve: (value: unknown) => void,
    reject: (failure: Failure) => void,
  ): Waiting {
    const settle = () => {
      waiting.settled = true;
      stopTimer();
      request.signal?.removeEventListener("abort", onAbort);
      const index = this.queue.indexOf(waiting);
      if (index >= 0) this.queue.splice(index, 1);
    };
    const waiting: Waiting = {
      request,
      deaths: 0,
      settled: false,
      stopWaiting: () => stopTimer(),
      resolve: (value) => {
        if (waiting.settled) return;
        settle();
        resolve(value);
      },
      reject: (failure) => {
        if (waiting.settled) return;
        settle();
        reject(failure);
      },
    };
    const onAbort = () => waiting.reject(new Failure("cancelled", `${request.subject}: the caller went away`));
    request.signal?.addEventListener("abort", onAbort);
    const stopTimer = this.options.clock.after(workerRequestWaitMs, () =>
      waiting.reject(new Failure("unavailable", `The ${this.options.name} was busy for ${workerRequestWaitMs} ms`)),
    );
    return waiting;
  }

  /** Gives the child its next request, starting a child first if there is none. */
  private advance(): void {
    if (this.closed || this.current) return;
    if (this.queue.length === 0) {
      this.scheduleIdleEnd();
      return;
    }
    this.stopIdle();
    if (!this.child) {
      this.startChild();
      return;
    }
    if (!this.childReady) return;
    const waiting = this.queue.shift()!;
    waiting.stopWaiting();
    this.current = waiting;
    const { method, input, timeoutMs } = waiting.request;
    this.stopDeadline = this.options.clock.after(timeoutMs, () => this.endHung(waiting));
    try {
      this.child.send({ method, input });
    } catch (error) {
      this.finish(() => waiting.reject(cannotSend(waiting.request, error)));
    }
  }

  private startChild(): void {
    this.started += 1;
    this.startedAt = this.options.clock.now();
    this.childReady = false;
    this.stderr = "";
    const child = fork(fileURLToPath(this.options.entry), [], {
      execPath: process.execPath,
      // The flag only silences Node's note about running TypeScript sources.
      execArgv: [`--max-old-space-size=${this.options.memoryMb}`, "--disable-warning=ExperimentalWarning"],
      env: {},
      serialization: "advanced",
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.child = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      if (this.child === child) this.stderr = (this.stderr + chunk.toString("utf8")).slice(-stderrCharactersMax);
    });
    child.on("message", (report: WorkerReport) => {
      if (this.child === child) this.report(report);
    });
    child.on("error", (error) => {
      if (this.child === child) this.lose(error.message);
    });
    // `close` comes after stderr has been read to its end, so the cause of death is known.
    child.on("close", (code, signal) => {
      if (this.child === child) this.lose(signal ? `signal ${signal}` : `exit code ${code}`);
    });
    this.stopDeadline = this.options.clock.after(workerStartMs, () => {
      if (this.child === child) this.failStart(`not ready within ${workerStartMs} ms`);
    });
  }

  private report(report: WorkerReport): void {
    if ("ready" in report) {
      this.childReady = true;
      this.stopDeadline();
      this.advance();
      return;
    }
    const waiting = this.current;
    if (!waiting) return;
    this.finish(() => {
      if (report.ok) waiting.resolve(report.value);
      else waiting.reject(this.refusal(waiting.request, report));
    });
  }

  private refusal(request: WorkerRequest, report: WorkerRefusal): Failure {
    if (report.kind !== "internal")
      return new Failure(report.kind, report.message, report.fields ? { fields: report.fields } : {});
    const message = `${request.subject} failed inside the ${this.options.name}`;
    this.options.log.error("worker-crashed", message, { error: new Error(report.message) });
    return new Failure("internal", message, { cause: report.message });
  }

  private finish(settle: () => void): void {
    this.stopDeadline();
    this.current = undefined;
    settle();
    this.advance();
  }

  private endHung(waiting: Waiting): void {
    const { subject, timeoutMs } = waiting.request;
    this.lastError = `was ended: ${subject} took longer than ${timeoutMs} ms`;
    this.options.log.warn(
      "worker-hung",
      `The ${this.options.name} was ended: ${subject} took longer than ${timeoutMs} ms`,
    );
    this.discardChild();
    this.finish(() => waiting.reject(new Failure("timeout", `${subject} took longer than ${timeoutMs} ms`)));
  }

  /** The child died by itself. */
  private lose(how: string): void {
    const reason = this.stderr.includes("heap out of memory") ? "ran out of memory" : `ended with ${how}`;
    const wasReady = this.childReady;
    this.lastError = reason;
    this.options.log.warn("worker-died", `The ${this.options.name} ${reason}`);
    this.discardChild();
    if (!wasReady) {
      this.failStart(reason);
      return;
    }
    const waiting = this.current;
    this.stopDeadline();
    this.current = undefined;
    if (waiting && !waiting.settled) this.retryOrReject(waiting, reason);
    this.advance();
  }

  private retryOrReject(waiting: Waiting, reason: string): void {
    waiting.deaths += 1;
    if (waiting.deaths === 1) {
      this.queue.unshift(waiting);
      return;
    }
    const { subject } = waiting.request;
    waiting.reject(
      new Failure("invalid_request", `${subject} is too complex: the ${this.options.name} ${reason} twice`),
    );
  }

  /** Nobody's fault among the callers, and trying again for each of them would only start more broken children. */
  private failStart(reason: string): void {
    const cause = this.stderr;
    this.lastError = `did not start: ${reason}`;
    this.discardChild();
    this.options.log.error("worker-start-failed", `The ${this.options.name} did not start: ${reason}`, {
      error: new Error(cause),
    });
    const failure = new Failure("unavailable", `The ${this.options.name} did not start: ${reason}`);
    for (const waiting of this.queue.splice(0)) waiting.reject(failure);
  }

  private scheduleIdleEnd(): void {
    this.stopIdle();
    const { idleMs, clock } = this.options;
    if (idleMs === undefined || !this.child) return;
    this.stopIdle = clock.after(idleMs, () => {
      if (!this.current && this.queue.length === 0) this.discardChild();
    });
  }

  private discardChild(): void {
    this.stopDeadline();
    this.stopIdle();
    const child = this.child;
    this.child = undefined;
    this.childReady = false;
    if (child && child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  }
}

function cannotSend(request: WorkerRequest, error: unknown): Failure {
  return new Failure(
    "invalid_request",
    `${request.subject} cannot be passed on: it is nested too deeply or is not plain JSON`,
    {
      cause: error,
    },
  );
}
