/** Calls of tools, counted by adapter and outcome, and traced with the ids of service and tool. */
import { isFailure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { ObserveToolCall } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import type { FailingTargets } from "./failing-targets.ts";
import type { OutcomeMeter } from "./outcome-meter.ts";

export interface ObservedToolCallsOptions {
  readonly meter: OutcomeMeter;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
  readonly failing: FailingTargets;
  /** Ids of the adapters that come with the server; all others count as `module`, of which anybody may install many. */
  readonly builtins: ReadonlySet<string>;
}

export function observeToolCalls({
  meter,
  tracing,
  clock,
  failing,
  builtins,
}: ObservedToolCallsOptions): ObserveToolCall {
  return async (call, work) => {
    const begun = clock.monotonic();
    let adapter = "none";
    const parent = tracing?.current();
    const attributes = { "troupe.service.id": call.serviceId, "troupe.tool.id": call.toolId };
    const span = parent && tracing?.start("tool call", "internal", attributes, parent);
    const through = (adapterId: string): void => {
      adapter = builtins.has(adapterId) ? adapterId : "module";
      span?.set({ "troupe.adapter.id": adapterId });
    };
    try {
      const result = await (span && tracing ? tracing.within(span.place, () => work(through)) : work(through));
      meter.add(adapter, "ok", clock.monotonic() - begun);
      span?.end();
      return result;
    } catch (error) {
      const kind = isFailure(error) ? error.kind : "internal";
      meter.add(adapter, kind, clock.monotonic() - begun);
      failing.failed(call, error);
      span?.end(kind);
      throw error;
    }
  };
}
