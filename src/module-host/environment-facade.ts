/**
 * A third-party environment as the server sees it. Many programs share its process: one that does not end when it is told to takes the
 * others with it, which is reported to each.
 */
import { Failure } from "../errors/failure.ts";
import { documentParseMs, moduleDocsCharactersMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { DocumentedTool, Environment } from "../ports/environment.ts";
import type { Executor, RunEvents, RunHandle, RunRequest } from "../ports/executor.ts";
import { HostedRun, messageOf } from "./hosted-run.ts";
import type { SupervisedModule } from "./supervised-module.ts";

export interface EnvironmentOptions {
  readonly module: SupervisedModule;
  readonly clock: Clock;
}

export class HostedEnvironment implements Environment, Executor {
  readonly id: string;
  readonly name: string;
  readonly #options: EnvironmentOptions;
  readonly #runs = new Set<HostedRun>();

  constructor(options: EnvironmentOptions) {
    this.#options = options;
    this.id = options.module.id;
    this.name = options.module.id;
  }

  get executor(): Executor {
    return this;
  }

  docs(): Promise<string> {
    return this.#markdown("docs", undefined);
  }

  toolDocs(tool: DocumentedTool): Promise<string> {
    return this.#markdown("toolDocs", tool);
  }

  start(request: RunRequest, events: RunEvents): RunHandle {
    const run = new HostedRun(request, events, this.#options.clock);
    this.#runs.add(run);
    const waiting = new AbortController();
    void this.#execute(run, waiting.signal);
    return {
      answer: (callId, answer) => run.answer(callId, answer),
      stop: () => {
        if (run.isOver) return;
        run.stop();
        waiting.abort();
      },
    };
  }

  inspect(): Readonly<Record<string, number>> {
    return { running: this.#runs.size, restarts: this.#options.module.inspect().restarts };
  }

  close(): Promise<void> {
    return this.#options.module.close();
  }

  async #execute(run: HostedRun, stop: AbortSignal): Promise<void> {
    // The signal ends the wait for a process; a program that runs is ended by its own `stop`.
    const use = { timeoutMs: Number.POSITIVE_INFINITY, signal: stop, subject: "The program" };
    try {
      await this.#options.module.use(use, async (process) => {
        if (stop.aborted) run.stopped();
        else await run.execute(process);
      });
    } catch (error) {
      if (stop.aborted) run.stopped();
      else run.fail("not_started", messageOf(error));
    } finally {
      this.#runs.delete(run);
    }
  }

  async #markdown(method: "docs" | "toolDocs", input: unknown): Promise<string> {
    const subject = `Documentation of environment "${this.id}"`;
    const text = await this.#options.module.use({ timeoutMs: documentParseMs, subject }, (process, leftMs) =>
      process.call({ method, input, timeoutMs: leftMs(), subject }),
    );
    if (typeof text !== "string") throw new Failure("upstream_failed", `${subject} is no text`);
    if (text.length > moduleDocsCharactersMax) {
      throw new Failure("upstream_failed", `${subject} is longer than ${moduleDocsCharactersMax} characters`);
    }
    return text.toWellFormed();
  }
}
