/**
 * The sweep: modules and services that take part are brought to the newest version their registry offers within their constraint.
 * One sweep at a time; one failure never stops the rest; never downward, and never again to a version that was gone back from.
 */
import type { ModuleState } from "../actors/module.ts";
import type { ServiceState } from "../actors/service.ts";
import { sweepJitter, updateMs, updatesAtOnce } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { ModuleActors } from "./module-actors.ts";
import type { ModuleUpdates } from "./module-updates.ts";
import { type CallContext, ownContext } from "./operation.ts";
import type { ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";
import { updateService } from "./service-updates.ts";
import { atMost, eachActor } from "./walk-actors.ts";

export interface AutoUpdateOptions {
  readonly modules: ModuleActors;
  readonly updates: ModuleUpdates;
  readonly services: ServiceActors;
  readonly contents: ServiceContents;
  readonly clock: Clock;
  readonly log: Log;
  /** Between the end of a sweep and the next; 0: none. */
  readonly intervalMs: number;
  /** In [0, 1), for jitter. */
  readonly random?: () => number;
}

/** `skipped`: nothing newer. */
export interface SweepTotals {
  checked: number;
  updated: number;
  failed: number;
  skipped: number;
}

/** The answer stops it, also in the middle of a sweep. */
export function startAutoUpdate(options: AutoUpdateOptions): () => void {
  const { clock, intervalMs, random = Math.random } = options;
  if (intervalMs === 0) return () => {};
  const stopped = new AbortController();
  let cancel: (() => void) | undefined;
  const later = (): void => {
    if (stopped.signal.aborted) return;
    const delayMs = intervalMs * (1 + sweepJitter * (2 * random() - 1));
    cancel = clock.after(delayMs, () => void sweep(options, stopped.signal).finally(later));
  };
  later();
  return () => {
    cancel?.();
    stopped.abort();
  };
}

/** Never rejects. */
async function sweep(options: AutoUpdateOptions, signal: AbortSignal): Promise<SweepTotals> {
  const { modules, services, updates, clock, log } = options;
  const totals: SweepTotals = { checked: 0, updated: 0, failed: 0, skipped: 0 };
  const startedAt = clock.monotonic();

  async function one(what: Readonly<Record<string, string>>, update: () => Promise<object | undefined>): Promise<void> {
    totals.checked++;
    try {
      if ((await update()) === undefined) totals.skipped++;
      else totals.updated++;
    } catch (error) {
      totals.failed++;
      log.warn("auto-update-failed", "An update could not be made; the next sweep tries again", { ...what, error });
    }
  }

  const context = (): CallContext => {
    const own = ownContext("auto-update", clock, updateMs);
    return { ...own, signal: AbortSignal.any([signal, own.signal]) };
  };

  try {
    await atMost(updatesAtOnce, takingPart<ModuleState>(eachActor(modules), signal), (state) =>
      one({ moduleId: state.id }, () => updates.update(state, context(), state.brokenVersion)),
    );
    await atMost(updatesAtOnce, takingPart<ServiceState>(eachActor(services), signal), (state) =>
      one({ serviceId: state.id }, () => updateService(options, state, context())),
    );
  } catch (error) {
    log.warn("auto-update-cut-off", "The sweep could not look at everything; the next one starts anew", { error });
  }
  log.info("auto-update-sweep", "Modules and services were looked at for updates", {
    ...totals,
    durationMs: Math.round(clock.monotonic() - startedAt),
  });
  return totals;
}

async function* takingPart<State extends { readonly autoUpdate: boolean; readonly registry: object | null }>(
  states: AsyncIterable<State>,
  signal: AbortSignal,
): AsyncGenerator<State> {
  for await (const state of states) {
    if (signal.aborted) return;
    if (state.autoUpdate && state.registry !== null) yield state;
  }
}
