/**
 * The launcher, with its runs counted and traced. A run waits in a queue and lives in a child process, so it takes its place in the trace
 * along: from whoever had it enqueued to the run, and from the run to the tools it calls.
 */
import type { Clock } from "../ports/clock.ts";
import type { Launch, Launcher, Recording, RunIdentity, RunResult } from "../ports/launcher.ts";
import type { Span, TracePlace, Tracing } from "../ports/tracing.ts";
import type { Metrics } from "./metrics.ts";
import type { Tally } from "./metrics-tallies.ts";

export interface ObservedLauncherOptions {
  readonly launcher: Launcher;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
}

interface Waiting {
  readonly since: number;
  readonly place: TracePlace | undefined;
}

const exitStates = { success: "success", failed: "failed", timeout: "timeout", stopped: "canceled" } as const;

/** Why a run failed. */
const failedReasons = [
  "thrown",
  "syntax",
  "memory",
  "output_too_large",
  "deadlocked",
  "executor_crashed",
  "not_started",
] as const;

/** Any other that an environment should come up with counts as `other`. */
const reasons: ReadonlySet<string> = new Set(["none", "timeout", ...failedReasons]);

export class ObservedLauncher implements Launcher {
  readonly #options: ObservedLauncherOptions;
  /** From being enqueued until being executed or released. */
  readonly #waiting = new Map<string, Waiting>();
  /** By process: it has one run at a time. */
  readonly #spans = new Map<number, Span>();
  readonly #ended = new Map<string, Tally>();

  constructor(options: ObservedLauncherOptions) {
    this.#options = options;
    // There from the start: alerts count increases, and a series that begins with its first runs has none by them.
    this.#tally("success", "none");
    this.#tally("timeout", "timeout");
    for (const reason of failedReasons) this.#tally("failed", reason);
  }

  enqueue(run: RunIdentity, admitted: () => void): void {
    const { launcher, metrics, tracing, clock } = this.#options;
    if (launcher.knows(run)) return;
    const waiting = { since: clock.monotonic(), place: tracing?.current() };
    this.#waiting.set(nameOf(run), waiting);
    launcher.enqueue(run, () => {
      metrics.runs.wait.observe(clock.monotonic() - waiting.since);
      if (tracing === undefined) admitted();
      else tracing.within(waiting.place, admitted);
    });
  }

  release(run: RunIdentity): void {
    this.#waiting.delete(nameOf(run));
    this.#options.launcher.release(run);
  }

  execute(launch: Launch, ended: (result: RunResult) => void): void {
    const { launcher, metrics, tracing, clock } = this.#options;
    const name = nameOf(launch);
    const started = clock.monotonic();
    const span = tracing?.start(
      "run",
      "internal",
      { "troupe.process.id": launch.processId, "troupe.run.number": launch.run },
      this.#waiting.get(name)?.place,
    );
    this.#waiting.delete(name);
    if (span !== undefined) this.#spans.set(launch.processId, span);
    const settle = (result: RunResult): void => {
      metrics.runs.duration.observe(clock.monotonic() - started);
      this.#tally(exitStates[result.ending], result.reason ?? "none").count += 1;
      if (span === undefined || tracing === undefined) {
        ended(result);
        return;
      }
      if (this.#spans.get(launch.processId) === span) this.#spans.delete(launch.processId);
      span.set({ "troupe.run.exit_state": exitStates[result.ending] });
      span.end(result.ending === "success" ? undefined : (result.reason ?? exitStates[result.ending]));
      tracing.within(span.place, () => ended(result));
    };
    // At no place: what the executor keeps for later runs (children, timers) belongs to none of them.
    if (tracing === undefined) launcher.execute(launch, settle);
    else tracing.within(undefined, () => launcher.execute(launch, settle));
  }

  /** Runs `work` for a run of this process: what it does is traced as done by the run. */
  within<Result>(processId: number, work: () => Result): Result {
    const { tracing } = this.#options;
    return tracing === undefined ? work() : tracing.within(this.#spans.get(processId)?.place, work);
  }

  reserve(): () => void {
    return this.#options.launcher.reserve();
  }

  stop(run: RunIdentity): void {
    this.#options.launcher.stop(run);
  }

  knows(run: RunIdentity): boolean {
    return this.#options.launcher.knows(run);
  }

  live(run: RunIdentity): { readonly stdout: string; readonly stderr: string } | undefined {
    return this.#options.launcher.live(run);
  }

  recording(run: RunIdentity): Recording | undefined {
    return this.#options.launcher.recording(run);
  }

  onRecorded(run: RunIdentity, wake: () => void): () => void {
    return this.#options.launcher.onRecorded(run, wake);
  }

  #tally(exitState: string, given: string): Tally {
    const reason = reasons.has(given) ? given : "other";
    const name = `${exitState} ${reason}`;
    let tally = this.#ended.get(name);
    if (tally === undefined) {
      tally = this.#options.metrics.runs.ended.holder({ exit_state: exitState, reason });
      this.#ended.set(name, tally);
    }
    return tally;
  }
}

function nameOf(run: RunIdentity): string {
  return `${run.processId}#${run.run}`;
}
