/**
 * What the log says of targets that do not answer: metrics tell that calls fail, this tells of which service. Programs can fail a thousand
 * times a second, so a service has a line when it begins to fail and then at most one each minute, and so many services are told apart.
 */
import { isFailure } from "../errors/failure.ts";
import { failingServicesToldMax, failingServiceTellMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

/** Outcomes of a call that say something of its target; all others are between the caller and the server. */
export const targetFailures: readonly string[] = ["upstream_failed", "timeout", "unavailable"];

export interface FailingTool {
  readonly serviceId: string;
  readonly toolId: string;
}

export class FailingTargets {
  readonly #log: Log;
  readonly #clock: Clock;
  /** By service, the one told of longest ago first. */
  readonly #told = new Map<string, { readonly at: number; more: number }>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  failed({ serviceId, toolId }: FailingTool, error: unknown): void {
    if (!isFailure(error) || !targetFailures.includes(error.kind)) return;
    const now = this.#clock.monotonic();
    const known = this.#told.get(serviceId);
    if (known !== undefined && now - known.at < failingServiceTellMs) {
      known.more += 1;
      return;
    }
    if (known === undefined && !this.#makeRoom(now)) return;
    this.#told.delete(serviceId);
    this.#told.set(serviceId, { at: now, more: 0 });
    const fields = { serviceId, tool: toolId, code: error.kind, more: known?.more ?? 0 };
    this.#log.warn("tool-call-failed", `A call of "${toolId}" failed: ${error.message}`, fields);
  }

  /** Whoever was told of within the minute keeps its place: else many services that fail by turns would have a line each time. */
  #makeRoom(now: number): boolean {
    if (this.#told.size < failingServicesToldMax) return true;
    for (const [serviceId, { at }] of this.#told) {
      if (now - at < failingServiceTellMs) return false;
      this.#told.delete(serviceId);
      return true;
    }
    return false;
  }
}
