/** The parts that count, held against prom-client's own and against what callers can make up. */
import fc from "fast-check";
import { Histogram, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { Failure, failureKinds } from "../../src/errors/failure.ts";
import { countLog } from "../../src/observability/counted-log.ts";
import { FailingTargets } from "../../src/observability/failing-targets.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { readOnCollect } from "../../src/observability/metrics-sources.ts";
import { TalliedHistogram } from "../../src/observability/metrics-tallies.ts";
import { observeToolCalls } from "../../src/observability/observed-tool-calls.ts";
import { OutcomeMeter } from "../../src/observability/outcome-meter.ts";
import { isFromHere } from "../../src/operations/client-address.ts";
import type { LogLevel } from "../../src/ports/log.ts";
import type { ActorCensus } from "../../src/ports/metrics.ts";
import { quietLog, realClock } from "../egress/fixtures.ts";
import "../property-seed.ts";
import { readExposition } from "./exposition.ts";

describe("a tallied histogram", () => {
  it("exposes what prom-client's own would of the same durations", async () => {
    const bounds = [0.005, 0.01, 0.5, 2];
    const durationsMs = fc.array(
      fc.oneof(fc.constantFrom(0, 5, 10, 500, 2_000), fc.double({ min: 0, max: 5_000, noNaN: true })),
    );
    await fc.assert(
      fc.asyncProperty(durationsMs, async (durations) => {
        const [ours, theirs] = [new Registry(), new Registry()];
        const about = { name: "h_seconds", help: "h", labelNames: ["route"] };
        const tally = new TalliedHistogram({ ...about, registry: ours, boundsSeconds: bounds }).holder({ route: "/a" });
        const histogram = new Histogram({ ...about, registers: [theirs], buckets: bounds });
        for (const ms of durations) {
          tally.observe(ms);
          histogram.observe({ route: "/a" }, ms / 1_000);
        }
        const [a, b] = [readExposition(await ours.metrics()), readExposition(await theirs.metrics())];
        const bucket = (of: typeof a, le: string) => of.sum("h_seconds_bucket", { le });
        for (const le of [...bounds.map(String), "+Inf"]) expect(bucket(a, le)).toBe(bucket(b, le));
        expect(a.sum("h_seconds_count")).toBe(b.sum("h_seconds_count"));
        expect(a.sum("h_seconds_sum")).toBeCloseTo(b.sum("h_seconds_sum"), 6);
        expect(a.types).toEqual(b.types);
      }),
    );
  });
});

describe("the metrics", () => {
  it("name every kind of failure once and every method outside of the known ones alike", async () => {
    const metrics = new Metrics("1.2.3");
    const route = metrics.route("GET", "/things/{id}");
    for (const kind of failureKinds) route(500, 1, kind);
    for (const method of ["PROPFIND", "MKCOL", "NONSENSE"]) metrics.route(method, undefined)(404, 1, "not_found");
    const seen = readExposition(await metrics.collect());
    for (const kind of failureKinds)
      expect(seen.sum("troupe_refusals_total", { face: "rest", kind })).toBeGreaterThan(0);
    expect(seen.sum("troupe_http_requests_total", { method: "other", route: "unmatched" })).toBe(3);
    expect(seen.sum("troupe_build_info", { version: "1.2.3" })).toBe(1);
  });

  it("give an rpc one series for each code, also when it is asked for again", async () => {
    const metrics = new Metrics("1");
    metrics.rpc("S/M")(undefined, 1);
    metrics.rpc("S/M")("conflict", 1);
    metrics.rpc("S/M")("refused", 1);
    const seen = readExposition(await metrics.collect());
    expect(seen.values.get('troupe_rpc_requests_total{rpc="S/M",code="FAILED_PRECONDITION"}')).toBe(2);
    expect(seen.values.get('troupe_rpc_requests_total{rpc="S/M",code="OK"}')).toBe(1);
    expect(seen.values.get('troupe_rpc_request_duration_seconds_count{rpc="S/M"}')).toBe(3);
  });

  it("count log records that are written at the level of that moment, and pass on all", async () => {
    const metrics = new Metrics("1");
    const passed: string[] = [];
    const note = (level: string) => (event: string) => void passed.push(`${level} ${event}`);
    let level: LogLevel = "warn";
    const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
    const writes = (asked: LogLevel): boolean => levels.indexOf(asked) >= levels.indexOf(level);
    const log = countLog(
      { writes, debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") },
      metrics,
    );
    log.debug("a", "");
    log.info("b", "");
    log.warn("c", "");
    log.error("d", "");
    log.error("e", "");
    level = "info";
    log.debug("f", "");
    log.info("g", "");
    const seen = readExposition(await metrics.collect());
    const of = (level: string) => seen.sum("troupe_log_records_total", { level });
    expect(levels.map(of)).toEqual([0, 1, 1, 2]);
    expect(passed).toEqual(["debug a", "info b", "warn c", "error d", "error e", "debug f", "info g"]);
  });

  it("gain no series by 10,000 services, tools and adapters", async () => {
    const metrics = new Metrics("1");
    const meter = new OutcomeMeter(metrics.toolCalls, "adapter");
    const observe = observeToolCalls({
      meter,
      tracing: undefined,
      clock: realClock,
      failing: new FailingTargets(quietLog, realClock),
      builtins: new Set(["openapi"]),
    });
    for (let n = 0; n < 10_000; n += 1) {
      await observe({ serviceId: `s${n}`, toolId: `t${n}` }, async (through) => {
        through(n % 2 === 0 ? "openapi" : `adapter-${n}`);
        if (n % 3 === 0) throw new Failure("timeout", "Too slow");
        if (n % 5 === 0) throw new Error("A crash");
      }).catch(() => undefined);
    }
    const seen = readExposition(await metrics.collect());
    const series = [...seen.values.keys()].filter((name) => name.startsWith("troupe_tool_calls_total"));
    expect(series.length).toBe(6);
    expect(seen.sum("troupe_tool_calls_total")).toBe(10_000);
    expect(seen.sum("troupe_tool_calls_total", { adapter: "module", outcome: "ok" })).toBe(2_666);
  });

  it("read what the parts know of themselves, walking over the actors once for each collection", async () => {
    const metrics = new Metrics("1");
    let walks = 0;
    const kind: ActorCensus = {
      kind: "process",
      resident: 7,
      parked: 1,
      mailboxDepthMax: 12,
      turns: 40,
      crashes: 3,
      restarts: 2,
    };
    readOnCollect(metrics.registry, {
      runs: () => ({ waiting: 4, executing: 2, slots: 16 }),
      actors: () => {
        walks += 1;
        return [kind];
      },
      deadLetters: () => ({ expired: 5 }),
      store: () => ({ commits: 9, queued: 1, reopens: 0, isFailing: true }),
      moduleProcesses: () => 3,
      certificates: () => [{ name: "server", untilMs: 1_800_000_000_000 }],
    });
    for (const _ of [1, 2]) {
      const { values } = readExposition(await metrics.collect());
      const expected = {
        'troupe_processes{state="queued"}': 4,
        'troupe_processes{state="running"}': 2,
        troupe_run_slots: 16,
        'troupe_actors_resident{kind="process"}': 7,
        'troupe_actors_parked{kind="process"}': 1,
        'troupe_actor_mailbox_depth_max{kind="process"}': 12,
        'troupe_actor_turns_total{kind="process"}': 40,
        'troupe_actor_crashes_total{kind="process"}': 3,
        'troupe_actor_restarts_total{kind="process"}': 2,
        'troupe_dead_letters_total{reason="expired"}': 5,
        troupe_store_commits_total: 9,
        troupe_store_commits_queued: 1,
        troupe_store_reopens_total: 0,
        troupe_store_failing: 1,
        troupe_module_processes: 3,
        'troupe_certificate_expires_timestamp_seconds{certificate="server"}': 1_800_000_000,
      };
      expect(Object.fromEntries(Object.keys(expected).map((series) => [series, values.get(series)]))).toEqual(expected);
    }
    expect(walks).toBe(2);
  });
});

describe("a request from this machine itself", () => {
  it.each<[string | undefined, Record<string, string>, boolean]>([
    ["127.0.0.1", {}, true],
    ["127.8.9.10", {}, true],
    ["::1", {}, true],
    ["::ffff:127.0.0.1", {}, true],
    ["10.0.0.1", {}, false],
    ["::ffff:10.0.0.1", {}, false],
    ["192.0.2.7", {}, false],
    ["fe80::1%eth0", {}, false],
    [undefined, {}, false],
    ["127.0.0.1", { "x-forwarded-for": "127.0.0.1" }, false],
    ["127.0.0.1", { forwarded: "for=127.0.0.1" }, false],
    ["127.0.0.1", { via: "1.1 proxy" }, false],
    ["127.0.0.1", { "x-real-ip": "" }, false],
    ["127.0.0.1", { host: "localhost" }, true],
  ])("%s with headers %o: %s", (address, headers, expected) => {
    expect(isFromHere(address, headers)).toBe(expected);
  });
});
