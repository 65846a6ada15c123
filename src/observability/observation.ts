/** How a node is watched: its metrics, its traces where somebody collects them, and the parts of it through which both look. */
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher, Fetcher } from "../ports/fetcher.ts";
import type { Launcher } from "../ports/launcher.ts";
import type { Log } from "../ports/log.ts";
import type { ObserveToolCall } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import { countLog } from "./counted-log.ts";
import { EventLoopWatch } from "./event-loop-watch.ts";
import { FailingTargets, targetFailures } from "./failing-targets.ts";
import { Metrics, type OutboundPurpose } from "./metrics.ts";
import { observeFetcher } from "./observed-fetcher.ts";
import { ObservedLauncher } from "./observed-launcher.ts";
import { observeToolCalls } from "./observed-tool-calls.ts";
import { OutcomeMeter } from "./outcome-meter.ts";
import { detachTimers, openTracing } from "./tracing.ts";

export interface ObservationOptions {
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Observation {
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  /** For everything that belongs to the node. */
  readonly clock: Clock;
  readonly log: Log;
  /** Close it with the node. */
  readonly eventLoop: EventLoopWatch;
  readonly launcher: (launcher: Launcher) => ObservedLauncher;
  readonly toolCalls: (builtins: readonly string[]) => ObserveToolCall;
  /** The outbound client for one purpose. */
  readonly outbound: (
    fetcher: Fetcher & CredentialedFetcher,
    purpose: OutboundPurpose,
  ) => Fetcher & CredentialedFetcher;
  /** The outbound client for registries: they are read, and what is posted is an exchange of credentials for a token. */
  readonly registries: (fetcher: Fetcher & CredentialedFetcher) => Fetcher & CredentialedFetcher;
}

/** What alerts count the increase of. */
const outboundOutcomes: readonly string[] = ["4xx", "5xx", "upstream_failed", "timeout", "refused"];
const toolOutcomes: readonly string[] = ["ok", ...targetFailures];

/** Rejects with Failure refused when an OTLP endpoint is set that is no URL. */
export async function openObservation({ version, clock: given, log }: ObservationOptions): Promise<Observation> {
  const metrics = new Metrics(version);
  const tracing = await openTracing({ version, clock: given, log });
  const clock = detachTimers(given, tracing);
  const outbound = new OutcomeMeter(metrics.outbound, "purpose");
  for (const purpose of ["registry", "token"] satisfies OutboundPurpose[]) outbound.expect(purpose, outboundOutcomes);
  const tools = new OutcomeMeter(metrics.toolCalls, "adapter");
  const counted = countLog(log, metrics);
  const failing = new FailingTargets(counted, clock);
  return {
    metrics,
    tracing,
    clock,
    log: counted,
    eventLoop: new EventLoopWatch(clock),
    launcher: (launcher) => new ObservedLauncher({ launcher, metrics, tracing, clock }),
    toolCalls: (builtins) => {
      for (const adapter of [...builtins, "module"]) tools.expect(adapter, toolOutcomes);
      return observeToolCalls({ meter: tools, tracing, clock, failing, builtins: new Set(builtins) });
    },
    outbound: (fetcher, purpose) => observeFetcher({ fetcher, purpose, meter: outbound, tracing, clock }),
    registries: (fetcher) =>
      observeFetcher({
        fetcher,
        purpose: ({ method }) => (method === "POST" ? "token" : "registry"),
        meter: outbound,
        tracing,
        clock,
      }),
  };
}
