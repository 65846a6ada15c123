/** Alerts and dashboard ask for what the server has, and raise what they should. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readOnCollect } from "../../src/observability/metrics-sources.ts";
import { openObservation } from "../../src/observability/observation.ts";
import type { Launcher } from "../../src/ports/launcher.ts";
import { noDeadLetters } from "../../src/runtime/dead-letters.ts";
import { quietLog, realClock } from "../egress/fixtures.ts";
import { compose, type Document, deploy, documents, isProgramThere, manifest, started, text } from "./deploy-files.ts";
import { collectLabels, labelValues, ownMetrics, valuesOf } from "./metric-labels.ts";
import { readQuery } from "./promql.ts";

const metricLabels = await collectLabels();

describe("what watches the server", () => {
  const rules: readonly Document[] = documents("monitoring/alerts.yaml")[0].groups.flatMap(
    (group: Document) => group.rules,
  );
  const dashboard: Document = JSON.parse(text("monitoring/dashboard.json"));
  const panels: readonly Document[] = dashboard.panels;
  const queries = [
    ...rules.map((rule) => [rule.alert, rule.expr]),
    ...panels.flatMap((panel) => (panel.targets ?? []).map((target: Document) => [panel.title, target.expr])),
    ...dashboard.annotations.list.map((one: Document) => [one.name, one.expr]),
  ] as readonly [string, string][];

  it("asks for metrics that the server has, by labels that they have", () => {
    const metrics = metricLabels;
    const faults = queries.flatMap(([where, expression]) => {
      const { selectors, groupedBy } = readQuery(expression);
      expect(selectors.length).toBeGreaterThan(0);
      const known = new Set(selectors.flatMap(({ metric }) => metrics.get(metric) ?? []));
      const unknown = selectors.flatMap(({ metric, matchers }) => {
        const labels = metrics.get(metric);
        if (labels === undefined) return [`${where}: no metric ${metric}`];
        return matchers.flatMap(({ label, value }) => {
          if (!labels.includes(label)) return [`${where}: ${metric} has no label ${label}`];
          const values = labelValues[label === "reason" ? `${metric} reason` : label];
          return values === undefined
            ? []
            : valuesOf(value)
                .filter((one) => !values.includes(one))
                .map((one) => `${where}: ${label}=${one}`);
        });
      });
      return [...unknown, ...groupedBy.filter((label) => !known.has(label)).map((label) => `${where}: by ${label}`)];
    });
    expect(faults).toEqual([]);
  });

  it("finds what it asks the increase of at nothing before it happens for the first time", async () => {
    const series = await seriesOfNewServer();
    // Of a series that begins with its first five failures, five are no increase.
    const faults = rules.flatMap(({ alert, expr }) =>
      readQuery(expr)
        .selectors.filter(({ metric }) => metric.endsWith("_total"))
        .flatMap(({ metric, matchers }) => {
          const asked = matchers.reduce<readonly Record<string, string>[]>(
            (each, { label, operator, value }) =>
              each.flatMap((one) =>
                operator.startsWith("!")
                  ? [one]
                  : value.split("|").map((alternative) => ({ ...one, [label]: alternative })),
              ),
            [{}],
          );
          return asked
            .filter((labels) => !series.some((one) => one.metric === metric && isPartOf(labels, one.labels)))
            .map((labels) => `${alert}: ${metric} ${JSON.stringify(labels)}`);
        }),
    );
    expect(faults).toEqual([]);
  });

  it("shows every metric of the server's own on the dashboard", () => {
    const shown = new Set(
      panels.flatMap((panel) =>
        (panel.targets ?? []).flatMap((target: Document) =>
          readQuery(target.expr).selectors.map(({ metric }) => metric),
        ),
      ),
    );
    const own = ownMetrics(metricLabels);
    const unseen = own.filter((name) => !["", "_bucket", "_sum", "_count"].some((suffix) => shown.has(name + suffix)));
    expect(unseen).toEqual([]);
  });

  it("names a severity, a summary and a runbook that is there for each alert", () => {
    const anchors = [...text("README.md").matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    );
    for (const { alert, labels, annotations } of rules) {
      expect(["page", "ticket"]).toContain(labels.severity);
      expect(annotations.summary).toMatch(/^\S/);
      expect([alert, anchors.includes(annotations.runbook.replace("deploy/README.md#", ""))]).toEqual([alert, true]);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it("lays the dashboard out without two panels in one place", () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`);
    });
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  it("scrapes the path and port of the image, with a key", () => {
    const [scrape] = documents("monitoring/prometheus.yaml")[0].scrape_configs;
    expect(scrape).toMatchObject({ metrics_path: "/metrics", static_configs: [{ targets: ["troupe:8080"] }] });
    expect(scrape.authorization.credentials_file).toMatch(/^\//);
    expect(started(compose.environment).SERVICE_ALLOWED_HOSTS).toContain("troupe");
    expect(started(manifest("ConfigMap").data).SERVICE_ALLOWED_HOSTS).toContain("troupe");
  });

  it.runIf(isProgramThere("promtool"))("raises the alerts it should (needs promtool)", () => {
    const folder = join(deploy, "monitoring");
    execFileSync("promtool", ["check", "rules", join(folder, "alerts.yaml")], { stdio: "pipe" });
    execFileSync("promtool", ["check", "config", "--syntax-only", join(folder, "prometheus.yaml")], { stdio: "pipe" });
    execFileSync("promtool", ["test", "rules", join(folder, "alerts.test.yaml")], { stdio: "pipe" });
  });

  it("tests no alert that there is not", () => {
    const tested = documents("monitoring/alerts.test.yaml")[0].tests.flatMap((test: Document) =>
      test.alert_rule_test.map((one: Document) => one.alertname),
    );
    const named = new Set(rules.map(({ alert }) => alert));
    expect(tested.filter((name: string) => !named.has(name))).toEqual([]);
  });
});

function isPartOf(labels: Readonly<Record<string, string>>, of: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(labels).every(([name, value]) => of[name] === value);
}

/** As it is scraped before anything has happened. */
async function seriesOfNewServer(): Promise<
  readonly { readonly metric: string; readonly labels: Readonly<Record<string, unknown>> }[]
> {
  const { metrics, eventLoop, launcher, toolCalls } = await openObservation({
    version: "0",
    clock: realClock,
    log: quietLog,
  });
  eventLoop.close();
  launcher({} as Launcher);
  toolCalls(["openapi"]);
  const actors = { resident: 0, parked: 0, mailboxDepthMax: 0, turns: 0, crashes: 0, restarts: 0 };
  readOnCollect(metrics.registry, {
    runs: () => ({ waiting: 0, executing: 0, slots: 1 }),
    actors: () => [{ kind: "process", ...actors }],
    deadLetters: () => noDeadLetters,
    store: () => ({ commits: 0, queued: 0, reopens: 0, isFailing: false }),
    moduleProcesses: () => 0,
    certificates: () => [],
  });
  const collected = (await metrics.registry.getMetricsAsJSON()) as unknown as readonly {
    readonly name: string;
    readonly values: readonly { readonly labels: Readonly<Record<string, unknown>> }[];
  }[];
  return collected.flatMap(({ name, values }) => values.map(({ labels }) => ({ metric: name, labels })));
}
