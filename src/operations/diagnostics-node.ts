/** A node at a glance: versions and age, the store, the event loop, memory, actors by kind, programs, certificates, and whether it takes calls. */
import { getHeapStatistics } from "node:v8";
import { z } from "zod";
import type { Clock } from "../ports/clock.ts";
import type { ActorCensus } from "../ports/metrics.ts";
import type { Store } from "../ports/store.ts";
import type { DeadLetters } from "../runtime/dead-letters.ts";
import type { Readiness } from "./call.ts";
import { logLevels } from "./log-search.ts";
import type { RpcOperation } from "./operation.ts";
import { instant, isoTime } from "./shapes.ts";

const count = z.int().nonnegative();

/** Of one kind. */
export const actorCount = z.object({
  kind: z.string(),
  resident: count,
  parked: count,
  mailboxDepthMax: count,
  turns: count,
  crashes: count,
  restarts: count,
});

/** Programs. */
export const runSlots = z.object({ waiting: count, executing: count, slots: count });

const delay = z.object({ p50Ms: z.number(), p99Ms: z.number(), maxMs: z.number(), windowSeconds: count });

const getOutput = z.object({
  node: z.object({
    version: z.string(),
    nodeVersion: z.string(),
    pid: count,
    startedAt: instant,
    uptimeSeconds: count,
    ready: z.boolean(),
    notReadyReason: z.string().optional(),
    store: z.object({
      healthy: z.boolean(),
      reason: z.string().optional(),
      failingSince: instant.optional(),
      epoch: count,
      commits: count,
      syncs: count,
      commitsQueued: count,
      reopens: count,
      revisionReads: count,
    }),
    eventLoopDelay: delay,
    eventLoopDelayBefore: delay.optional(),
    memory: z.object({
      rssBytes: count,
      heapUsedBytes: count,
      heapTotalBytes: count,
      heapLimitBytes: count,
      externalBytes: count,
      arrayBuffersBytes: count,
    }),
    actors: z.array(actorCount),
    runs: runSlots,
    deadLetters: count,
    logLevel: z.enum(logLevels),
    certificates: z.array(z.object({ name: z.string(), subject: z.string(), notAfter: instant })),
  }),
});

export interface NodeDiagnosticsParts {
  readonly version: string;
  readonly clock: Clock;
  readonly readiness: Readiness;
  readonly store: Pick<Store, "epoch" | "health"> & {
    inspect(): {
      readonly syncs: number;
      readonly commits: number;
      readonly queued: number;
      readonly reopens: number;
      readonly revisionReads: number;
    };
  };
  readonly eventLoop: {
    read(): { readonly current: z.infer<typeof delay>; readonly before: z.infer<typeof delay> | undefined };
  };
  readonly actors: () => readonly ActorCensus[];
  readonly deadLetters: Pick<DeadLetters, "countsByKind">;
  readonly runs: () => z.infer<typeof runSlots>;
  readonly logLevel: () => (typeof logLevels)[number];
  /** In use; `untilMs`: epoch milliseconds. */
  readonly certificates: () => readonly {
    readonly name: string;
    readonly subject: string;
    readonly untilMs: number;
  }[];
}

/** The node's age counts from this call. */
export function nodeDiagnostics(parts: NodeDiagnosticsParts): RpcOperation<object, z.infer<typeof getOutput>> {
  const { version, clock, readiness, store, eventLoop, actors, deadLetters, runs, logLevel, certificates } = parts;
  const startedAt = isoTime(Math.round(clock.now()));
  const started = clock.monotonic();
  return {
    name: "getNode",
    summary: "The node at a glance",
    rpcService: "DiagnosticsService",
    role: "operator",
    input: z.object({}),
    output: getOutput,
    run: async () => {
      const state = readiness.check();
      const { current, before } = eventLoop.read();
      return {
        node: {
          version,
          nodeVersion: process.version,
          pid: process.pid,
          startedAt,
          uptimeSeconds: Math.floor((clock.monotonic() - started) / 1_000),
          ready: state.ready,
          ...(state.ready ? {} : { notReadyReason: state.reason }),
          store: storeStatus(store),
          eventLoopDelay: current,
          ...(before === undefined ? {} : { eventLoopDelayBefore: before }),
          memory: memoryUse(),
          actors: [...actors()],
          runs: runs(),
          deadLetters: deadLetters.countsByKind().reduce((sum, { count: more }) => sum + more, 0),
          logLevel: logLevel(),
          certificates: certificates().map(({ name, subject, untilMs }) => ({
            name,
            subject,
            notAfter: isoTime(untilMs),
          })),
        },
      };
    },
  };
}

function storeStatus(store: NodeDiagnosticsParts["store"]) {
  const health = store.health();
  const { commits, syncs, queued, reopens, revisionReads } = store.inspect();
  return {
    healthy: health.ok,
    ...(health.ok ? {} : { reason: health.reason, failingSince: isoTime(Math.round(health.since)) }),
    epoch: store.epoch,
    commits,
    syncs,
    commitsQueued: queued,
    reopens,
    revisionReads,
  };
}

function memoryUse() {
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
  return {
    rssBytes: rss,
    heapUsedBytes: heapUsed,
    heapTotalBytes: heapTotal,
    heapLimitBytes: getHeapStatistics().heap_size_limit,
    externalBytes: external,
    arrayBuffersBytes: arrayBuffers,
  };
}
