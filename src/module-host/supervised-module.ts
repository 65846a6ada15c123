/**
 * Keeps one module running. Its process starts with `start`, ends when nobody needed it for a while, and is started again for the next
 * call. Invariants:
 * 1. At most one process at a time. A call that was in a process when it ended is not tried again: nobody knows what it had done.
 * 2. A crash is followed by a restart after a growing pause; `restartsMax` crashes within `restartsWindowMs` give the module up, once.
 * 3. A process that ends while programs of others run in it did not crash by its own fault: it counts for nothing and is started again on
 *    demand.
 */
import { Failure } from "../errors/failure.ts";
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
import type { HostedModule } from "../ports/module-host.ts";
import { Masks } from "./masking.ts";
import type { ModuleProcess, ProcessEnd } from "./module-process.ts";
import type { ProcessStarter } from "./process-starter.ts";

export interface SupervisedOptions {
  readonly module: HostedModule;
  readonly starter: ProcessStarter;
  readonly clock: Clock;
  readonly log: Log;
  readonly idleMs?: number | undefined;
}

export interface Use {
  /** For the whole of it, the wait for a start included; Infinity for none. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Opens error texts: `Tool "getPet"`. */
  readonly subject: string;
}

interface Waiter {
  resolve(process: ModuleProcess): void;
  reject(failure: Failure): void;
}

type State =
  /** No process; the next call starts one. */
  | { readonly name: "down" }
  | { readonly name: "starting" }
  | { readonly name: "up"; readonly process: ModuleProcess; readonly since: number }
  /** After a crash, until the restart at `until`. */
  | { readonly name: "pausing"; readonly until: number; stopTimer(): void }
  | { readonly name: "over"; readonly reason: string };

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
  #restarts = 0;
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
      this.#up(await this.#startProcess());
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

  inspect() {
    const { name } = this.#state;
    return {
      moduleId: this.id,
      pid: this.#state.name === "up" ? this.#state.process.pid : null,
      restarts: this.#restarts,
      lastError: this.#lastError,
      isOver: name === "over",
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
        return Promise.resolve(state.process);
      case "over":
        return Promise.reject(new Failure("unavailable", `${use.subject}: module "${this.id}" ${state.reason}`));
      case "pausing": {
        const leftMs = state.until - clock.monotonic();
        if (leftMs <= moduleRestartWaitMs) return this.#wait(use);
        const retryAfterSeconds = Math.ceil(leftMs / 1_000);
        return Promise.reject(
          new Failure(
            "unavailable",
            `${use.subject}: module "${this.id}" is restarted in ${retryAfterSeconds} s; its process ${this.#lastError}`,
            { retryAfterSeconds },
          ),
        );
      }
      case "down":
        this.#restart();
        return this.#wait(use);
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

  async #startProcess(): Promise<ModuleProcess> {
    const { module, starter } = this.#options;
    const { process } = await starter.start(module.modulePackage, module, this.masks.apply, this.#closing.signal);
    if (this.#state.name !== "starting") {
      process.kill("was closed");
      throw new Failure("unavailable", `Module "${this.id}" was closed`);
    }
    return process;
  }

  #restart(): void {
    this.#state = { name: "starting" };
    this.#startProcess().then(
      (process) => {
        this.#restarts += 1;
        this.#up(process);
      },
      (error: unknown) => {
        if (this.#state.name !== "starting") return;
        const reason = error instanceof Error ? error.message : String(error);
        for (const waiter of [...this.#waiters]) waiter.reject(new Failure("unavailable", reason));
        this.#crashed(`could not be started again: ${reason}`);
      },
    );
  }

  #up(process: ModuleProcess): void {
    this.#state = { name: "up", process, since: this.#options.clock.monotonic() };
    process.onGone = (end) => this.#lost(process, end);
    for (const waiter of [...this.#waiters]) waiter.resolve(process);
    this.#endWhenIdle();
    // Gone in the moment between its last word and this one.
    if (process.isGone) void process.gone.then((end) => this.#lost(process, end));
  }

  #lost(process: ModuleProcess, { reason, withRuns }: ProcessEnd): void {
    const state = this.#state;
    if (state.name !== "up" || state.process !== process) return;
    if (this.#options.clock.monotonic() - state.since >= restartsWindowMs) this.#pauses = 0;
    if (withRuns) {
      this.#lastError = reason;
      this.#state = { name: "down" };
      this.#warn("module-lost", `The process of module "${this.id}" ${reason} while programs ran in it`);
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
    const stopTimer = this.#options.clock.after(pauseMs, () => this.#restart());
    this.#state = { name: "pausing", until: now + pauseMs, stopTimer };
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
    for (const waiter of [...this.#waiters]) waiter.reject(failure);
  }

  #endWhenIdle(): void {
    this.#stopIdle();
    if (this.#uses > 0 || this.#state.name !== "up") return;
    this.#stopIdle = this.#options.clock.after(this.#options.idleMs ?? moduleIdleMs, () => {
      const state = this.#state;
      if (this.#uses > 0 || state.name !== "up") return;
      this.#state = { name: "down" };
      state.process.dismiss();
    });
  }

  #warn(event: string, message: string): void {
    this.#options.log.warn(event, message, { moduleId: this.id });
  }
}
