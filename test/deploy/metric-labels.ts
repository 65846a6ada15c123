/** Every metric of the server, and what it can be asked by. */
import { failureKinds } from "../../src/errors/failure.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { readOnCollect } from "../../src/observability/metrics-sources.ts";
import { OutcomeMeter } from "../../src/observability/outcome-meter.ts";

/** Those that are of the server's own making; a histogram by its plain name. */
export function ownMetrics(labels: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return [...labels.keys()].filter((name) => name.startsWith("troupe_") && !/_(bucket|sum|count)$/.test(name));
}

/** Every name that may be asked for, with its labels, from metrics that have counted each kind of thing once. */
export async function collectLabels(): Promise<ReadonlyMap<string, readonly string[]>> {
  const metrics = new Metrics("0");
  metrics.route("GET", "/processes")(200, 1, undefined);
  metrics.rpc("troupe.v1.ProcessService/GetProcess")(undefined, 1);
  metrics.runs.duration.observe(1);
  metrics.runs.wait.observe(1);
  metrics.synced(1, 1);
  new OutcomeMeter(metrics.toolCalls, "adapter").add("openapi", "ok", 1);
  new OutcomeMeter(metrics.outbound, "purpose").add("tool", "2xx", 1);
  readOnCollect(metrics.registry, {
    runs: () => ({ waiting: 0, executing: 0, slots: 1 }),
    actors: () => [{ kind: "process", resident: 0, parked: 0, mailboxDepthMax: 0, turns: 0, crashes: 0, restarts: 0 }],
    deadLetters: () => ({ parked: 1 }),
    store: () => ({ commits: 0, queued: 0, reopens: 0, isFailing: false }),
    moduleProcesses: () => 0,
    certificates: () => [{ name: "server", untilMs: 0 }],
  });
  // What a scrape adds by itself, and what the kubelet tells of volumes.
  const scraped = ["job", "instance"];
  const labels = new Map<string, readonly string[]>([
    ["up", scraped],
    ["kubelet_volume_stats_available_bytes", ["persistentvolumeclaim"]],
    ["kubelet_volume_stats_capacity_bytes", ["persistentvolumeclaim"]],
  ]);
  const collected = (await metrics.registry.getMetricsAsJSON()) as unknown as readonly {
    name: string;
    type: string;
    values: readonly { metricName?: string; labels: Record<string, unknown> }[];
  }[];
  for (const { name, type, values } of collected) {
    const declared = metrics.registry.getSingleMetric(name) as unknown as { labelNames?: readonly string[] };
    const series = type === "histogram" ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
    for (const one of series) labels.set(one, [...scraped, ...(declared.labelNames ?? [])]);
    for (const value of values) {
      const one = value.metricName ?? name;
      labels.set(one, [...new Set([...(labels.get(one) ?? scraped), ...Object.keys(value.labels)])]);
    }
  }
  return labels;
}

/** Alternatives of a matcher; a value with other signs of a pattern, or a variable, is not looked at. */
export function valuesOf(text: string): readonly string[] {
  return /^[\w|]+$/.test(text) ? text.split("|") : [];
}

export const labelValues: Readonly<Record<string, readonly string[]>> = {
  kind: [...failureKinds, "service", "module", "registry", "process"],
  outcome: ["ok", ...failureKinds],
  purpose: ["tool", "module", "registry", "token", "document", "package"],
  exit_state: ["success", "failed", "timeout", "canceled"],
  state: ["queued", "running"],
  level: ["debug", "info", "warn", "error"],
  severity: ["page", "ticket"],
  certificate: ["server", "client_ca"],
  "troupe_runs_ended_total reason": [
    "none",
    "thrown",
    "syntax",
    "timeout",
    "memory",
    "output_too_large",
    "deadlocked",
    "executor_crashed",
    "not_started",
    "other",
  ],
};
