/** Where spans hang when work changes hands, and whom a place in a trace is told to; with the real tracing, and a collector of the test. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { RunQueue } from "../../src/executor/launcher.ts";
import { Metrics, type OutboundPurpose } from "../../src/observability/metrics.ts";
import { observeFetcher } from "../../src/observability/observed-fetcher.ts";
import { ObservedLauncher } from "../../src/observability/observed-launcher.ts";
import { OutcomeMeter } from "../../src/observability/outcome-meter.ts";
import { detachTimers, openTracing } from "../../src/observability/tracing.ts";
import type { Tracing } from "../../src/ports/tracing.ts";
import { client, get, quietLog, realClock, serve } from "../egress/fixtures.ts";
import { ScriptedExecutor } from "../executor/scripted-executor.ts";
import { type Collector, openCollector } from "./collector.ts";
import { readExposition } from "./exposition.ts";

const parts = { version: "1.2.3", clock: realClock, log: quietLog };
let collector: Collector;
beforeAll(async () => {
  collector = await openCollector();
});
afterAll(() => collector.close());
afterEach(() => {
  vi.unstubAllEnvs();
});

async function open(): Promise<Tracing> {
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.origin);
  vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "20");
  const tracing = await openTracing(parts);
  if (tracing === undefined) throw new Error("There is no tracing");
  return tracing;
}

describe("traces", () => {
  it.each<[string, Record<string, string>]>([
    ["nothing", {}],
    ["an empty endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: " " }],
    ["a disabled SDK", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", OTEL_SDK_DISABLED: "TRUE" }],
    ["no exporter", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:4318", OTEL_TRACES_EXPORTER: "none" }],
    ["another exporter", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", OTEL_TRACES_EXPORTER: "console" }],
  ])("are not collected when the settings say %s", async (_, environment) => {
    expect(await openTracing(parts, environment)).toBeUndefined();
  });

  it.each(["localhost:4318", "4318", "grpc://collector:4317", "/v1/traces"])(
    "refuse an endpoint such as %s",
    async (url) => {
      const refusal = openTracing(parts, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url });
      await expect(refusal).rejects.toThrow("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an http or https URL");
    },
  );

  it("end within the time given when the collector takes nothing", async () => {
    const silent = await serve(() => undefined);
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", silent.url);
    const tracing = await openTracing(parts);
    tracing?.start("lost", "internal", {}, undefined).end();
    const begun = performance.now();
    await tracing?.close(300);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});

describe("an outbound request", () => {
  async function send(purpose: OutboundPurpose, headers: Record<string, string> = {}, isTraced = true) {
    const tracing = await open();
    const origin = await serve((_, response) => response.end("ok"));
    const meter = new OutcomeMeter(new Metrics("1").outbound, "purpose");
    const fetcher = observeFetcher({ fetcher: client(), purpose, meter, tracing, clock: realClock });
    const span = tracing.start("caller", "server", {}, undefined);
    const work = () => fetcher.fetch(get(origin.url, { headers }));
    await (isTraced ? tracing.within(span.place, work) : work());
    span.end();
    await tracing.close(1_000);
    return { sent: origin.requests[0]?.headers.traceparent, place: tracing.traceparent(span.place) };
  }

  it.each(["tool", "registry"] as const)("to a %s tells the place in the trace, of its own span", async (purpose) => {
    const { sent, place } = await send(purpose);
    const [, traceId, spanId] = String(sent).split("-");
    expect(traceId).toBe(place.split("-")[1]);
    const span = collector.spans().find((one) => one.spanId === spanId);
    expect([span?.name, span?.parentSpanId]).toEqual(["GET", place.split("-")[2]]);
  });

  it.each(["token", "document", "package", "module"] as const)("for a %s tells no place", async (purpose) => {
    expect((await send(purpose)).sent).toBeUndefined();
  });

  it("leaves a header of that name as the caller gave it, and adds none outside of traces", async () => {
    const own = "00-11111111111111111111111111111111-2222222222222222-01";
    expect((await send("tool", { TraceParent: own })).sent).toBe(own);
    expect((await send("tool", {}, false)).sent).toBeUndefined();
  });

  it("loses it on a redirect to another origin, and keeps it within one", async () => {
    const tracing = await open();
    const other = await serve((_, response) => response.end("ok"));
    const first = await serve((request, response) => {
      const location = request.url === "/" ? "/again" : other.url;
      response.writeHead(302, { location }).end();
    });
    const meter = new OutcomeMeter(new Metrics("1").outbound, "purpose");
    const fetcher = observeFetcher({ fetcher: client(), purpose: "registry", meter, tracing, clock: realClock });
    const span = tracing.start("caller", "server", {}, undefined);
    await tracing.within(span.place, () => fetcher.fetchAs(get(first.url), () => ({ authorization: "Bearer t" })));
    const sent = [...first.requests, ...other.requests].map(({ headers }) => headers.traceparent !== undefined);
    expect(sent).toEqual([true, true, false]);
    await tracing.close(1_000);
  });
});

describe("a run", () => {
  it("keeps the place of whoever had it enqueued, whoever ends before it and lets it in", async () => {
    const tracing = await open();
    const executor = new ScriptedExecutor();
    const metrics = new Metrics("1");
    const queue = new RunQueue({
      executor,
      clock: realClock,
      concurrency: 1,
      queueMax: 10,
      limits: { memoryMb: 16, outputBytes: 1_024, cpuMs: null },
      toolTimeoutMs: 1_000,
      callTool: async () => {
        throw new Failure("not_found", "There are no tools");
      },
    });
    const launcher = new ObservedLauncher({ launcher: queue, metrics, tracing, clock: realClock });
    const callers = [1, 2, 3].map(() => tracing.start("caller", "server", {}, undefined));
    const seen: Record<string, string | undefined> = {};
    const traceOfCode = (): string | undefined => {
      const place = tracing.current();
      return place === undefined ? undefined : tracing.traceparent(place).split("-")[1];
    };
    const enqueue = (processId: number): void => {
      const run = { processId, run: 1 };
      launcher.enqueue(run, () => {
        seen[`admitted ${processId}`] = traceOfCode();
        launcher.execute({ ...run, code: "", envConfig: {}, timeoutMs: null }, () => {
          seen[`ended ${processId}`] = traceOfCode();
        });
        seen[`works ${processId}`] = launcher.within(processId, traceOfCode);
      });
    };
    for (const [place, caller] of callers.entries()) tracing.within(caller.place, () => enqueue(place + 1));
    enqueue(4);
    for (let place = 0; place < 4; place += 1) executor.runs[place]?.end();
    for (const [place, caller] of callers.entries()) {
      const traceId = tracing.traceparent(caller.place).split("-")[1];
      const told = ["admitted", "works", "ended"].map((when) => seen[`${when} ${place + 1}`]);
      expect(told).toEqual([traceId, traceId, traceId]);
    }
    expect(seen["admitted 4"]).toBeUndefined();
    expect(seen["works 4"]).toMatch(/^[0-9a-f]{32}$/);
    await tracing.close(1_000);
    const root = collector.spans().find(({ traceId }) => traceId === seen["works 4"]);
    expect([root?.name, root?.parentSpanId]).toEqual(["run", undefined]);
    const counted = readExposition(await metrics.collect());
    expect(counted.sum("troupe_runs_ended_total", { exit_state: "success", reason: "none" })).toBe(4);
    expect(counted.sum("troupe_run_queue_wait_seconds_count")).toBe(4);
  });
});

describe("a timer", () => {
  it("belongs to no trace, whoever set it", async () => {
    const tracing = await open();
    const clock = detachTimers(realClock, tracing);
    const span = tracing.start("caller", "server", {}, undefined);
    const place = await tracing.within(
      span.place,
      () => new Promise((resolve) => clock.after(1, () => resolve(tracing.current()))),
    );
    expect(place).toBeUndefined();
    await tracing.close(1_000);
  });
});
