/**
 * One process of one module, from its start to its end. Invariants:
 * 1. Every call settles exactly once: by its answer, its deadline, its caller's signal, or the end of the process.
 * 2. Ids of calls are ours and only grow. An answer to an id that was never given ends the process; one that comes late is dropped.
 * 3. While something is asked of the process, or was and timed out, it is asked for a sign of life; without one it is ended.
 */
import { Failure } from "../errors/failure.ts";
import { moduleBytesWaitingMax, moduleFetchesMax, moduleUnresponsiveMs } from "../limits.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import { ChildLink, type LinkOptions } from "./child-link.ts";
import { FetchService } from "./fetch-service.ts";
import type { Mask } from "./masking.ts";
import { moduleFailure, shownMessage, type ThrownInModule } from "./module-errors.ts";
import { ModuleLines } from "./printed-lines.ts";
import {
  type ChildMessage,
  type ChildMessageOf,
  childFrameBounds,
  type HostMessage,
  type ModuleMethod,
  protocolVersion,
} from "./protocol.ts";
import { SignOfLife } from "./sign-of-life.ts";

export interface ProcessOptions extends LinkOptions {
  readonly moduleId: string;
  readonly mask: Mask;
  readonly fetcher: Fetcher;
  readonly toolTimeoutMs: number;
  readonly log: Log;
  /** Silence that ends the process, ms. */
  readonly unresponsiveMs?: number | undefined;
}

export interface ModuleCall {
  readonly method: ModuleMethod;
  readonly input: unknown;
  /** Infinity: the caller ends it by its signal or by the end of the process. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Opens error texts: `Tool "getPet"`. */
  readonly subject: string;
}

/** Messages of a run, whose `execute` call they carry the id of. */
export type RunMessage = ChildMessageOf<"printed" | "output" | "tool-call">;

export interface ProcessEnd {
  /** As the rest of a sentence: "ran out of memory". */
  readonly reason: string;
  /** Programs of others ran in it. */
  readonly withRuns: boolean;
}

export interface RunListener {
  /** False: the process may not say that. */
  take(message: RunMessage): boolean;
}

/** The module itself said no, or its process ended: what that is to the caller depends on the step. */
export class StartRefused extends Error {
  readonly thrown: ThrownInModule;
  constructor(thrown: ThrownInModule) {
    super(thrown.message);
    this.thrown = thrown;
  }
}

interface Pending {
  settle(outcome: { readonly value: unknown } | { readonly failure: Failure }): void;
  readonly call: ModuleCall;
  readonly listener: RunListener | undefined;
}

type Step = { resolve(message: ChildMessage): void; reject(error: Error): void; readonly expects: "hello" | "ready" };

export class ModuleProcess {
  readonly moduleId: string;
  /** Resolves once. */
  readonly gone: Promise<ProcessEnd>;
  /** Told before the calls in it are answered, so that whoever calls again at once does not meet the dead process. */
  onGone: (end: ProcessEnd) => void = () => {};
  readonly mask: Mask;
  readonly #options: ProcessOptions;
  readonly #link: ChildLink;
  readonly #fetches: FetchService;
  readonly #life: SignOfLife;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #goneReason: string | undefined;
  #step: Step | undefined;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.moduleId = options.moduleId;
    this.mask = options.mask;
    const lines = new ModuleLines(options.moduleId, options.log, options.clock, this.mask);
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    this.gone = promise;
    this.#link = new ChildLink(options, {
      message: (message) => this.#take(message, lines),
      printed: (line) => lines.line("info", "module-printed", line),
      gone: (reason) => {
        const withRuns = [...this.#pending.values()].some(({ listener }) => listener !== undefined);
        const end = { reason: shownMessage(reason, this.mask), withRuns };
        this.#lose(end);
        resolve(end);
      },
    });
    const silentMsMax = options.unresponsiveMs ?? moduleUnresponsiveMs;
    this.#life = new SignOfLife(options.clock, silentMsMax, {
      ping: (pingId) => this.#send({ type: "ping", id: pingId }),
      isBusy: () => this.#pending.size > 0,
      silent: () => this.#link.kill(`answered nothing for ${silentMsMax} ms`),
    });
    this.#fetches = new FetchService(options.fetcher, options.toolTimeoutMs, this.#link);
  }

  get pid(): number | null {
    return this.#link.pid;
  }

  get isGone(): boolean {
    return this.#goneReason !== undefined;
  }

  /** Gone, or about to be: nothing should be asked of it any more. */
  get isEnding(): boolean {
    return this.isGone || this.#link.isEnding;
  }

  /** Rejects with StartRefused when it throws or ends. The caller sets the time limit and kills. */
  async load(main: string): Promise<ChildMessageOf<"hello">> {
    const hello = this.#expect("hello");
    this.#send({ type: "load", protocol: protocolVersion, main, bounds: childFrameBounds });
    return (await hello) as ChildMessageOf<"hello">;
  }

  async setUp(config: object, secrets: object): Promise<void> {
    const ready = this.#expect("ready");
    this.#send({ type: "setup", config, secrets, fetchesMax: moduleFetchesMax });
    await ready;
  }

  /** Rejects with Failure: what the module threw, timeout, cancelled, overloaded, upstream_failed when the process ends meanwhile. */
  call(call: ModuleCall, listener?: RunListener): Promise<unknown> {
    return new Promise((resolve, reject) => this.start(call, listener, resolve, reject));
  }

  /** As `call`; the answer is the id of the call, by which messages of a run are known. */
  start(
    call: ModuleCall,
    listener: RunListener | undefined,
    resolve: (value: unknown) => void,
    reject: (failure: Failure) => void,
  ): number {
    const { signal, subject, timeoutMs, method, input } = call;
    const id = ++this.#lastId;
    const onAbort = () => this.#giveUp(id, new Failure("cancelled", `${subject}: the caller went away`));
    let stopTimer = () => {};
    this.#pending.set(id, {
      call,
      listener,
      settle: (outcome) => {
        this.#pending.delete(id);
        stopTimer();
        signal?.removeEventListener("abort", onAbort);
        if ("value" in outcome) resolve(outcome.value);
        else reject(outcome.failure);
      },
    });
    if (this.#goneReason !== undefined) this.#settleLost(id, this.#goneReason);
    else if (signal?.aborted) onAbort();
    else if (this.#link.bytesWaiting > moduleBytesWaitingMax) {
      this.#settle(id, new Failure("overloaded", `${subject}: module "${this.moduleId}" does not take its messages`));
    } else {
      signal?.addEventListener("abort", onAbort);
      if (Number.isFinite(timeoutMs)) stopTimer = this.#options.clock.after(timeoutMs, () => this.#timeOut(id));
      this.#send({ type: "call", id, method, input });
      this.#life.watch();
    }
    return id;
  }

  send(message: HostMessage): void {
    this.#send(message);
  }

  dismiss(): void {
    this.#link.dismiss();
  }

  kill(reason: string): void {
    this.#link.kill(reason);
  }

  #send(message: HostMessage): void {
    if (this.#goneReason === undefined) this.#link.send(message);
  }

  #expect(expects: Step["expects"]): Promise<ChildMessage> {
    return new Promise((resolve, reject) => {
      if (this.#goneReason !== undefined) reject(new StartRefused({ message: `its process ${this.#goneReason}` }));
      else this.#step = { resolve, reject, expects };
    });
  }

  #take(message: ChildMessage, lines: ModuleLines): void {
    switch (message.type) {
      case "hello":
      case "ready":
        if (this.#step?.expects === message.type) this.#takeStep((step) => step.resolve(message));
        else this.#breach(`"${message.type}" out of turn`);
        return;
      case "refused":
        if (this.#step) this.#takeStep((step) => step.reject(new StartRefused(message)));
        else this.#breach(`"refused" out of turn`);
        return;
      case "answer":
        this.#answered(message.id, (pending) => pending.settle({ value: message.value }));
        return;
      case "failed":
        this.#answered(message.id, ({ call, settle }) =>
          settle({ failure: moduleFailure(call.subject, message, this.mask) }),
        );
        return;
      case "log":
        lines.line(message.level, "module-log", message.message);
        return;
      case "fetch":
        if (!this.#fetches.take(message)) this.#breach("a fetch with a forged id");
        return;
      case "printed":
      case "output":
      case "tool-call":
        this.#runMessage(message);
        return;
      case "pong":
        this.#life.answered(message.id);
    }
  }

  #takeStep(act: (step: Step) => void): void {
    const step = this.#step as Step;
    this.#step = undefined;
    act(step);
  }

  #answered(id: number, act: (pending: Pending) => void): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined) act(pending);
    else if (id > this.#lastId) this.#breach("an answer to a call that was never made");
  }

  #runMessage(message: RunMessage): void {
    const listener = this.#pending.get(message.run)?.listener;
    const isLate = listener === undefined && message.run <= this.#lastId;
    if (!isLate && listener?.take(message) !== true) this.#breach(`"${message.type}" that its run may not send`);
  }

  #breach(what: string): void {
    this.#link.kill(`broke the protocol: ${what}`);
  }

  #timeOut(id: number): void {
    const { call } = this.#pending.get(id) as Pending;
    this.#giveUp(id, new Failure("timeout", `${call.subject} took longer than ${Math.ceil(call.timeoutMs)} ms`));
    this.#life.doubt();
  }

  #giveUp(id: number, failure: Failure): void {
    this.#send({ type: "cancel", id });
    this.#settle(id, failure);
  }

  #settle(id: number, failure: Failure): void {
    this.#pending.get(id)?.settle({ failure });
  }

  #settleLost(id: number, reason: string): void {
    const subject = this.#pending.get(id)?.call.subject ?? "";
    this.#settle(id, new Failure("upstream_failed", `${subject}: the process of module "${this.moduleId}" ${reason}`));
  }

  #lose(end: ProcessEnd): void {
    const { reason } = end;
    this.#goneReason = reason;
    this.onGone(end);
    this.#fetches.close();
    this.#life.stop();
    if (this.#step) this.#takeStep((step) => step.reject(new StartRefused({ message: `its process ${reason}` })));
    for (const id of [...this.#pending.keys()]) this.#settleLost(id, reason);
  }
}
