/**
 * Keeps one module running. Its process starts with `start` or the first call, ends when nobody needed it for a while or another module
 * needs its place, and is started again for the next call. Invariants:
 * 1. At most one process at a time. A call that was in a process when it ended is not tried again: nobody knows what it had done.
 * 2. A crash is followed by a restart after a growing pause; `restartsMax` crashes within `restartsWindowMs` give the module up, once.
 * 3. A process that ends while programs of others run in it did not crash by its own fault: it counts for nothing and is started again on
 *    demand.
 * 4. A module that nobody calls makes no other leave its place: after a crash it is started again only where one is free.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import {
  moduleCallsMax,
  moduleIdleMs,
  moduleRestartWaitMs,
  restartBackoffMaxMs,
  restartBackoffMinMs,
  restartsMax,
  restartsWindowMs,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { ModuleMetrics } from "../ports/metrics.ts";
import type { HostedModule, ModuleProcess as HostedProcess } from "../ports/module-host.ts";
import { Masks } from "./masking.ts";
import type { ModuleProcess, ProcessEnd } from "./module-process.ts";
import type { Place, ProcessPlaces } from "./process-places.ts";
import type { ProcessStarter } from "./process-starter.ts";

export interface SupervisedOptions {
  readonly module: HostedModule;
  readonly starter: ProcessStarter;
  readonly places: ProcessPlaces;
  readonly clock: Clock;
  readonly log: Log;
  readonly idleMs?: number | undefined;
  readonly metrics?: ModuleMetrics | undefined;
}

export interface Use {
  /** For the whole of it, the wait for a start included; Infinity for none. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Opens error texts: `Tool "getPet"`. */
  readonly subject: string;
}

interface Waiter {
  readonly subject: string;
  resolve(process: ModuleProcess): void;
  reject(failure: Failure): void;
}

type State =
  /** No process; the next call starts one. */
  | { readonly name: "down" }
  | { readonly name: "starting" }
  | { readonly name: "up"; readonly process: ModuleProcess; readonly place: Place; readonly since: number }
  /** After a crash, until the restart at `until`. */
  | { readonly name: "pausing"; readonly until: number; stopTimer(): void }
  | { readonly name: "over"; readonly reason: string };

export interface ModuleInspection extends Omit<HostedProcess, "startedAt"> {
  readonly isOver: boolean;
  /** On the monotonic clock. */
  readonly upSince: number | null;
  readonly uses: number;
}

export class SupervisedModule {
  readonly id: string;
  readonly #options: SupervisedOptions;
  readonly #waiters = new Set<Waiter>();
  #state: State = { name: "down" };
  /** Aborted with the module's end: a process that starts is not waited for. */
  readonly #closing = new AbortController();
  readonly masks = new Masks();
  #uses = 0;
  #crashes: readonly number[] = [];
  #pauses = 0;
  #starts = 0;
  #lastError: string | null = null;
  #stopIdle: () => void = () => {};

  constructor(options: SupervisedOptions) {
    this.#options = options;
    this.id = options.module.modulePackage.manifest.id;
    this.masks.add(options.module.secrets);
  }

  /** The first start, not tried again. Rejects with Failure; then the module is over. */
  async start(): Promise<void> {
    this.#state = { name: "starting" };
    try {
      await this.#startIn(await this.#place());
    } catch (error) {
      this.#end("could not be set up");
      throw error;
    }
  }

  /** Gives `work` a process that is set up. Rejects with what `work` rejects with, and overloaded, unavailable, timeout, cancelled. */
  async use<T>(use: Use, work: (process: ModuleProcess, leftMs: () => number) => Promise<T>): Promise<T> {
    if (this.#uses >= moduleCallsMax) {
      throw new Failure("overloaded", `${use.subject}: module "${this.id}" has ${moduleCallsMax} calls in flight`);
    }
    const { clock } = this.#options;
    const deadline = clock.monotonic() + use.timeoutMs;
    this.#uses += 1;
    this.#stopIdle();
    try {
      const process = await this.#process(use);
      return await work(process, () => Math.max(1, deadline - clock.monotonic()));
    } finally {
      this.#uses -= 1;
      this.#endWhenIdle();
    }
  }

  inspect(): ModuleInspection {
    const { name } = this.#state;
    return {
      moduleId: this.id,
      pid: this.#state.name === "up" ? this.#state.process.pid : null,
      restarts: Math.max(0, this.#starts - 1),
      lastError: this.#lastError,
      isOver: name === "over",
      state: name === "up" ? (this.#uses > 0 ? "busy" : "idle") : name === "starting" ? "starting" : "down",
      upSince: this.#state.name === "up" ? this.#state.since : null,
      uses: this.#uses,
    };
  }

  async close(): Promise<void> {
    const state = this.#state;
    this.#end("was closed");
    if (state.name !== "up") return;
    state.process.dismiss();
    await state.process.gone;
  }

  #process(use: Use): Promise<ModuleProcess> {
    const state = this.#state;
    const { clock } = this.#options;
    if (use.signal?.aborted) return Promise.reject(this.#cancelled(use));
    switch (state.name) {
      case "up":
        // One that is being ended is waited for, and then for the next.
        return state.process.isEnding ? this.#wait(use) : Promise.resolve(state.process);
      case "over":
        return Promise.reject(new Failure("unavailable", `${use.subject}: module "${this.id}" ${state.reason}`));
      case "pausing": {
        const leftMs = state.until - clock.monotonic();
        return leftMs <= moduleRestartWaitMs ? this.#wait(use) : Promise.reject(this.#tooFar(use.subject, leftMs));
      }
      case "down": {
        const process = this.#wait(use);
        void this.#restart();
        return process;
      }
      case "starting":
        return this.#wait(use);
    }
  }

  #wait(use: Use): Promise<ModuleProcess> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        this.#waiters.delete(waiter);
        stopTimer();
        use.signal?.removeEventListener("abort", onAbort);
        act();
      };
      const waiter: Waiter = {
        subject: use.subject,
        resolve: (process) => settle(() => resolve(process)),
        reject: (failure) => settle(() => reject(failure)),
      };
      const onAbort = () => waiter.reject(this.#cancelled(use));
      use.signal?.addEventListener("abort", onAbort);
      const stopTimer = Number.isFinite(use.timeoutMs)
        ? this.#options.clock.after(use.timeoutMs, () =>
            waiter.reject(
              new Failure("timeout", `${use.subject}: module "${this.id}" was not ready within ${use.timeoutMs} ms`),
            ),
          )
        : () => {};
      this.#waiters.add(waiter);
    });
  }

  #cancelled({ subject }: Use): Failure {
    return new Failure("cancelled", `${subject}: the caller went away`);
  }

  #tooFar(subject: string, leftMs: number): Failure {
    const retryAfterSeconds = Math.ceil(leftMs / 1_000);
    const message = `${subject}: module "${this.id}" is restarted in ${retryAfterSeconds} s; its process ${this.#lastError}`;
    return new Failure("unavailable", message, { retryAfterSeconds });
  }

  #place(): Promise<Place> {
    return this.#options.places.take(this.id, this.#closing.signal);
  }

  async #startIn(place: Place): Promise<void> {
    const { module, starter } = this.#options;
    const { signal } = this.#closing;
    const { process } = await starter.start(module.modulePackage, module, this.masks.apply, place, signal);
    if (this.#state.name !== "starting") {
      process.kill("was closed");
      throw new Failure("unavailable", `Module "${this.id}" was closed`);
    }
    this.#starts += 1;
    if (this.#starts > 1) this.#options.metrics?.processRestarted();
    this.#up(process, place);
  }

  /** Never rejects: those who wait are told. */
  async #restart(): Promise<void> {
    this.#state = { name: "starting" };
    let place: Place | undefined;
    try {
      place = await this.#place();
      await this.#startIn(place);
    } catch (error) {
      if (this.#state.name !== "starting") return;
      const failure = isFailure(error) ? error : new Failure("unavailable", String(error));
      // That there is no place is not the module's fault.
      const refusal = place === undefined ? failure : new Failure("unavailable", failure.message);
      this.#state = { name: "down" };
      this.#refuseWaiters(() => refusal);
      if (place !== undefined) this.#crashed(`could not be started: ${failure.message}`);
    }
  }

  #refuseWaiters(failure: (subject: string) => Failure): void {
    for (const waiter of [...this.#waiters]) waiter.reject(failure(waiter.subject));
  }

  #up(process: ModuleProcess, place: Place): void {
    this.#state = { name: "up", process, place, since: this.#options.clock.monotonic() };
    process.onGone = (end) => this.#lost(process, end);
    for (const waiter of [...this.#waiters]) waiter.resolve(process);
    this.#endWhenIdle();
    // Gone in the moment between its last word and this one.
    if (process.isGone) void process.gone.then((end) => this.#lost(process, end));
  }

  #lost(process: ModuleProcess, { reason, withRuns }: ProcessEnd): void {
    const state = this.#state;
    if (state.name !== "up" || state.process !== process) return;
    this.#options.metrics?.processLost();
    this.#forget();
    // Now, so that the next process of it finds a place.
    state.place.release();
    if (this.#options.clock.monotonic() - state.since >= restartsWindowMs) this.#pauses = 0;
    if (withRuns) {
      this.#lastError = reason;
      this.#state = { name: "down" };
      this.#warn("module-lost", `The process of module "${this.id}" ${reason} while programs ran in it`);
      if (this.#waiters.size > 0) void this.#restart();
    } else this.#crashed(reason);
  }

  #crashed(reason: string): void {
    const now = this.#options.clock.monotonic();
    this.#lastError = reason;
    this.#crashes = [...this.#crashes.filter((at) => now - at < restartsWindowMs), now];
    if (this.#crashes.length >= restartsMax) {
      this.#giveUp(reason);
      return;
    }
    const pauseMs = Math.min(restartBackoffMaxMs, restartBackoffMinMs * 2 ** this.#pauses) * (0.75 + Math.random() / 4);
    this.#pauses += 1;
    this.#warn("module-crashed", `The process of module "${this.id}" ${reason}; it is started again`);
    const stopTimer = this.#options.clock.after(pauseMs, () => this.#pauseOver());
    this.#state = { name: "pausing", until: now + pauseMs, stopTimer };
    if (pauseMs > moduleRestartWaitMs) this.#refuseWaiters((subject) => this.#tooFar(subject, pauseMs));
  }

  /** Invariant 4. */
  #pauseOver(): void {
    if (this.#waiters.size > 0 || this.#options.places.hasFree) void this.#restart();
    else this.#state = { name: "down" };
  }

  #giveUp(reason: string): void {
    const crashes = `crashed ${restartsMax} times within ${restartsWindowMs / 1_000} s; last its process ${reason}`;
    this.#end(`was given up: it ${crashes}`);
    this.#options.log.error("module-failed", `Module "${this.id}" ${crashes}`, { moduleId: this.id });
    this.#options.module.onFailed(crashes);
  }

  #end(reason: string): void {
    this.#stopIdle();
    if (this.#state.name === "pausing") this.#state.stopTimer();
    if (this.#state.name !== "over") this.#state = { name: "over", reason };
    this.#closing.abort();
    const failure = new Failure("unavailable", `Module "${this.id}" ${reason}`);
    this.#refuseWaiters(() => failure);
  }

  #endWhenIdle(): void {
    this.#stopIdle();
    const state = this.#state;
    if (this.#uses > 0 || state.name !== "up") return;
    const { process, place } = state;
    const leave = () => {
      stopTimer();
      if (this.#state !== state) return;
      this.#state = { name: "down" };
      this.#forget();
      process.dismiss();
    };
    const stopTimer = this.#options.clock.after(this.#options.idleMs ?? moduleIdleMs, leave);
    this.#stopIdle = () => {
      stopTimer();
      place.busy();
    };
    place.idle(leave);
  }

  /** Of a process that is not this module's any more: hundreds of them would keep their streams in memory. */
  #forget(): void {
    this.#stopIdle();
    this.#stopIdle = () => {};
  }

  #warn(event: string, message: string): void {
    this.#options.log.warn(event, message, { moduleId: this.id });
  }
}
