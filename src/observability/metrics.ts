/**
 * The metrics of one node, for Prometheus: names begin with `troupe_`, units are seconds and bytes. What belongs to the process as such
 * (memory, CPU, event loop, garbage collection) has the names that prom-client and its dashboards give it.
 *
 * 1. Labels come from closed sets. Whatever callers can make up (ids, tools, unknown paths) adds no series.
 * 2. What happens with every request costs additions of plain numbers (`metrics-tallies.ts`); everything else that somebody counts already is
 *    read when it is collected (`metrics-sources.ts`).
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { catalogue } from "../errors/catalogue.ts";
import { type FailureKind, failureKinds } from "../errors/failure.ts";
import type { FaceMetrics, ModuleMetrics, RouteMeter, RpcMeter, StoreMetrics } from "../ports/metrics.ts";
import { TalliedCounter, TalliedHistogram, type Tally } from "./metrics-tallies.ts";

/** From a read out of memory to the longest wait there is. */
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const runSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
const syncSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchCommits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

/**
 * tool: the target of a service, by an adapter that is built in. module: whatever a third-party adapter asks. registry, token: a registry, and
 * its token endpoint. document, package: a definition or a module from a URL that somebody gave.
 */
export type OutboundPurpose = "tool" | "module" | "registry" | "token" | "document" | "package";

export class Metrics implements FaceMetrics, StoreMetrics, ModuleMetrics {
  readonly registry = new Registry();
  readonly #counted = (name: string, help: string, labelNames: readonly string[]): TalliedCounter =>
    new TalliedCounter({ registry: this.registry, name, help, labelNames });
  readonly #timed = (
    name: string,
    help: string,
    labelNames: readonly string[],
    boundsSeconds: readonly number[] = requestSeconds,
  ): TalliedHistogram => new TalliedHistogram({ registry: this.registry, name, help, labelNames, boundsSeconds });

  readonly #httpRequests = this.#counted("troupe_http_requests_total", "Requests answered over REST", [
    "method",
    "route",
    "status",
  ]);
  readonly #httpDuration = this.#timed("troupe_http_request_duration_seconds", "From arrival to answer, over REST", [
    "method",
    "route",
  ]);
  readonly #rpcRequests = this.#counted("troupe_rpc_requests_total", "Calls answered over gRPC, gRPC-Web and Connect", [
    "rpc",
    "code",
  ]);
  readonly #rpcDuration = this.#timed("troupe_rpc_request_duration_seconds", "From arrival to answer, of an rpc", [
    "rpc",
  ]);
  readonly #refusals = this.#counted("troupe_refusals_total", "Requests refused, by kind of failure", ["face", "kind"]);
  readonly #routes = new Map<string, RouteMeter>();
  readonly #rpcs = new Map<string, RpcMeter>();
  readonly #refusedOverRest = this.#refusalsOf("rest");
  readonly #refusedOverRpc = this.#refusalsOf("rpc");
  readonly #moduleRestarts = this.#counter(
    "troupe_module_process_restarts_total",
    "Processes of modules started again, after a crash or when they were needed again",
  );
  readonly #moduleCrashes = this.#counter(
    "troupe_module_process_crashes_total",
    "Processes of modules that ended by themselves",
  );

  readonly runs = {
    ended: this.#counted("troupe_runs_ended_total", "Runs of processes that ended", ["exit_state", "reason"]),
    duration: this.#timed(
      "troupe_run_duration_seconds",
      "From the start of a program to its end",
      [],
      runSeconds,
    ).holder({}),
    wait: this.#timed("troupe_run_queue_wait_seconds", "In the queue, until a slot was free", [], runSeconds).holder(
      {},
    ),
  };
  readonly toolCalls = {
    total: this.#counted("troupe_tool_calls_total", "Calls of tools, by programs and callers", ["adapter", "outcome"]),
    duration: this.#timed("troupe_tool_call_duration_seconds", "Calls of tools", ["adapter"]),
  };
  readonly outbound = {
    total: this.#counted("troupe_outbound_requests_total", "HTTP requests sent", ["purpose", "outcome"]),
    duration: this.#timed("troupe_outbound_request_duration_seconds", "HTTP requests sent, redirects included", [
      "purpose",
    ]),
  };
  readonly modulesFailed = this.#counter("troupe_modules_failed_total", "Modules given up after too many crashes");
  readonly logRecords = this.#counted("troupe_log_records_total", "Records written to the log", ["level"]);

  readonly #storeBatch = new Histogram({
    name: "troupe_store_batch_commits",
    help: "Commits that shared one synced batch",
    buckets: batchCommits,
    registers: [this.registry],
  });
  readonly #storeSync = this.#timed(
    "troupe_store_sync_duration_seconds",
    "Writing and syncing one batch",
    [],
    syncSeconds,
  );
  readonly #storeSyncs = this.#storeSync.holder({});

  constructor(version: string) {
    collectDefaultMetrics({ register: this.registry });
    new Gauge({
      name: "troupe_build_info",
      help: "Always 1; the labels say what runs",
      labelNames: ["version", "node"],
      registers: [this.registry],
    }).set({ version, node: process.version }, 1);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** In the text format of Prometheus. */
  collect(): Promise<string> {
    return this.registry.metrics();
  }

  /** The same one for the same labels. */
  route(method: string, path: string | undefined): RouteMeter {
    const labels = { method: knownMethods.has(method) ? method : "other", route: path ?? "unmatched" };
    const name = `${labels.method} ${labels.route}`;
    let meter = this.#routes.get(name);
    if (meter === undefined) {
      meter = this.#makeRoute(labels);
      this.#routes.set(name, meter);
    }
    return meter;
  }

  #makeRoute(labels: Readonly<Record<string, string>>): RouteMeter {
    const byStatus = new Map<number, Tally>();
    const duration = this.#httpDuration.holder(labels);
    const refusals = this.#refusedOverRest;
    return (status, durationMs, refused) => {
      let tally = byStatus.get(status);
      if (tally === undefined) {
        tally = this.#httpRequests.holder({ ...labels, status: String(status) });
        byStatus.set(status, tally);
      }
      tally.count += 1;
      duration.observe(durationMs);
      if (refused !== undefined) refusals[refused].count += 1;
    };
  }

  /** The same one for the same name. */
  rpc(name: string): RpcMeter {
    let meter = this.#rpcs.get(name);
    if (meter === undefined) {
      meter = this.#makeRpc(name);
      this.#rpcs.set(name, meter);
    }
    return meter;
  }

  #makeRpc(name: string): RpcMeter {
    const byCode = new Map<number, Tally>();
    const duration = this.#rpcDuration.holder({ rpc: name });
    return (refused, durationMs) => {
      const code = refused === undefined ? 0 : catalogue[refused].grpc;
      let tally = byCode.get(code);
      if (tally === undefined) {
        tally = this.#rpcRequests.holder({ rpc: name, code: rpcCodes[code] ?? "UNKNOWN" });
        byCode.set(code, tally);
      }
      tally.count += 1;
      duration.observe(durationMs);
      if (refused !== undefined) this.#refusedOverRpc[refused].count += 1;
    };
  }

  synced(commits: number, durationMs: number): void {
    this.#storeBatch.observe(commits);
    this.#storeSyncs.observe(durationMs);
  }

  processRestarted(): void {
    this.#moduleRestarts.inc();
  }

  processLost(): void {
    this.#moduleCrashes.inc();
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.registry] });
  }

  #refusalsOf(face: string): Readonly<Record<FailureKind, Tally>> {
    const tallies = failureKinds.map((kind) => [kind, this.#refusals.holder({ face, kind })] as const);
    return Object.fromEntries(tallies) as Record<FailureKind, Tally>;
  }
}

const knownMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Names of google.rpc.Code by number. */
const rpcCodes = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;
