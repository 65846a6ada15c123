/**
 * The environment that new runs start in. Another one takes over in a single step; the former keeps what it runs and is closed when
 * the last of it has ended. To the run queue all of this is one executor.
 */
import { Failure } from "../errors/failure.ts";
import type { Environment } from "../ports/environment.ts";
import type { Executor, RunEvents, RunHandle, RunRequest } from "../ports/executor.ts";
import type { Log } from "../ports/log.ts";

interface Held {
  readonly moduleId: string;
  readonly environment: Environment;
  runs: number;
  draining: boolean;
}

export interface AliveEnvironment {
  readonly moduleId: string;
  readonly executor: Executor;
  readonly runs: number;
  readonly draining: boolean;
}

export class ActiveEnvironment implements Executor {
  readonly name = "active environment";
  readonly #log: Log;
  readonly #closing = new Set<Promise<void>>();
  readonly #draining = new Set<Held>();
  #current: Held | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** @throws Failure unavailable when there is none. */
  get environment(): Environment {
    if (this.#current === undefined) throw new Failure("unavailable", noEnvironment);
    return this.#current.environment;
  }

  get moduleId(): string | undefined {
    return this.#current?.moduleId;
  }

  switchTo(moduleId: string, environment: Environment): void {
    const former = this.#current;
    this.#current = { moduleId, environment, runs: 0, draining: false };
    if (former !== undefined) this.#drain(former);
  }

  /** Runs of it go on to their end; new ones find no environment. Another module's is left alone. */
  leave(moduleId: string): void {
    const former = this.#current;
    if (former?.moduleId !== moduleId) return;
    this.#current = undefined;
    this.#drain(former);
  }

  start(run: RunRequest, events: RunEvents): RunHandle {
    const held = this.#current;
    if (held === undefined) {
      queueMicrotask(() => events.ended({ kind: "failed", reason: "not_started", error: noEnvironment, output: "{}" }));
      return { answer: () => {}, stop: () => {} };
    }
    held.runs++;
    return held.environment.executor.start(run, {
      ...events,
      ended: (end) => {
        held.runs--;
        if (held.draining && held.runs === 0) this.#close(held);
        events.ended(end);
      },
    });
  }

  inspect(): Readonly<Record<string, number>> {
    return { draining: this.#draining.size, ...this.#current?.environment.executor.inspect() };
  }

  /** Every environment that is still alive, the one for new runs first; for diagnostics. */
  alive(): readonly AliveEnvironment[] {
    const held = [...(this.#current === undefined ? [] : [this.#current]), ...this.#draining];
    return held.map(({ moduleId, environment, runs, draining }) => ({
      moduleId,
      executor: environment.executor,
      runs,
      draining,
    }));
  }

  async close(): Promise<void> {
    for (const held of this.#draining) this.#close(held);
    if (this.#current !== undefined) this.#close(this.#current);
    this.#current = undefined;
    await Promise.all(this.#closing);
  }

  #drain(held: Held): void {
    held.draining = true;
    this.#draining.add(held);
    if (held.runs === 0) this.#close(held);
  }

  #close(held: Held): void {
    this.#draining.delete(held);
    const closing: Promise<void> = held.environment
      .close()
      .catch((error: unknown) =>
        this.#log.warn("environment-close-failed", "A former environment did not close cleanly", {
          moduleId: held.moduleId,
          error,
        }),
      )
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

const noEnvironment = "There is no active environment: enable a module of type environment";
