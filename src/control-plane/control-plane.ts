/**
 * The RPC face: gRPC, gRPC-Web and Connect on one port, a loop over the rpcs of troupe.v1 and the rows that serve them, with
 * health and reflection beside it.
 *
 * 1. A caller is admitted before any of its message is read.
 * 2. Errors carry google.rpc details; what crashed says "internal" and nothing more.
 * 3. After `close()` no call is admitted, streams end, admitted calls finish up to the limit given.
 */
import type { DescService } from "@bufbuild/protobuf";
import { createConnectRouter } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { bodyBytesMax, rpcAnswerBytesMax, rpcRecursionMax } from "../limits.ts";
import { type Authentication, originRules } from "../operations/authentication.ts";
import type { Readiness } from "../operations/call.ts";
import { clientAddresses } from "../operations/client-address.ts";
import { OpenStreams } from "../operations/open-streams.ts";
import type { Operation, RpcOperation, RpcStream, StreamOperation } from "../operations/operation.ts";
import type { RateLimits, RouteLimit } from "../operations/rate-limits.ts";
import { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import { type AdmissionOptions, admissionGate, admitRpc } from "./admission.ts";
import { addHealth } from "./health.ts";
import { nodeHandler } from "./node-handler.ts";
import { addReflection, reflectionServices } from "./reflection.ts";
import { addRpcs, unaryRpcs } from "./rpc-routes.ts";
import { listenForRpcs, type TlsOptions } from "./rpc-server.ts";
import { troupeServices } from "./services.ts";
import { unaryGrpc } from "./unary-grpc.ts";

export interface ControlPlaneOptions {
  /** Those with a route count against its limit, those without against that of `*`. */
  readonly operations: readonly (Operation | RpcOperation)[];
  readonly streams?: readonly (StreamOperation | RpcStream)[] | undefined;
  /** Streams of rows open at once; absent: `eventStreamsMax`. */
  readonly streamsMax?: number | undefined;
  readonly authentication: Authentication;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Absent: plain text, HTTP/2 by prior knowledge. */
  readonly tls?: TlsOptions | undefined;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  /** Absent: none. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Absent: nothing is limited. */
  readonly rateLimits?: RateLimits | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly readiness: Readiness;
  readonly metrics?: FaceMetrics | undefined;
  readonly tracing?: Tracing | undefined;
  /** The services to serve; those of troupe.v1 unless a test says otherwise. */
  readonly services?: readonly DescService[] | undefined;
}

export interface ControlPlane {
  readonly address: { readonly host: string; readonly port: number };
  /** Resolves when the last connection is gone, at the latest shortly after `limitMs`. */
  close(limitMs: number): Promise<void>;
}

/** Rejects when the address cannot be bound. */
export async function openControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { clock, log, readiness, operations, streams, authentication, metrics, tracing } = options;
  const services = options.services ?? troupeServices;
  const listed = [...services, Health, ...reflectionServices];
  const closing = new AbortController();
  const mutualTls = options.tls?.clientCa !== undefined;
  const origins = originRules({
    boundHost: options.host,
    allowedHosts: options.allowedHosts,
    corsOrigins: options.corsOrigins,
  });
  const untakenAnswers = new UntakenAnswers(clock);
  const admission: AdmissionOptions = {
    untakenAnswers,
    authentication,
    origins,
    clientAddress: clientAddresses(options.trustedProxies ?? []),
    limitOf: limitsOfRpcs(options),
    log,
    metrics,
    tracing,
    isClosing: () => closing.signal.aborted,
  };
  const router = createConnectRouter({
    acceptCompression: [compressionGzip],
    // Answers go as they are: most callers are near, and zlib was the largest cost of streams and backups.
    compressMinBytes: rpcAnswerBytesMax,
    readMaxBytes: bodyBytesMax,
    writeMaxBytes: rpcAnswerBytesMax,
    binaryOptions: { recursionLimit: rpcRecursionMax },
    jsonOptions: { recursionLimit: rpcRecursionMax },
    requestGate: admissionGate(admission),
  });
  const openStreams = new OpenStreams(clock, options.streamsMax);
  const unary = unaryRpcs(services, operations, { clock, log, metrics, tracing });
  addRpcs(router, { services, unary, streams, openStreams, clock, log, metrics, tracing });
  addHealth(router, { services: listed, readiness, closing: closing.signal });
  addReflection(router, listed, closing.signal);
  const server = await listenForRpcs({
    host: options.host,
    port: options.port,
    tls: options.tls,
    clock,
    stream: unaryGrpc({
      rpcs: unary,
      mutualTls,
      untakenAnswers,
      clock,
      log,
      admit: (method, arrival, tell) => admitRpc(admission, method, arrival, tell),
    }),
    handler: nodeHandler({
      handlers: router.handlers,
      origins,
      mutualTls,
      untakenAnswers,
      clock,
      log,
      closing: closing.signal,
      metrics,
    }),
  });
  return {
    address: server.address,
    async close(limitMs) {
      closing.abort();
      openStreams.close();
      await server.close(limitMs);
    },
  };
}

function rpcOf(service: string, operation: string): string {
  return `troupe.v1.${service}/${operation.charAt(0).toUpperCase()}${operation.slice(1)}`;
}

/** An rpc counts with the route of its operation; reflection, and rpcs without one, with whatever has no route. */
function limitsOfRpcs({
  rateLimits,
  operations,
  streams = [],
}: ControlPlaneOptions): ((rpc: string) => RouteLimit) | undefined {
  if (rateLimits === undefined) return undefined;
  const limits = new Map(
    [...operations, ...streams]
      .filter(hasRoute)
      .map((row) => [rpcOf(row.rpcService, row.name), rateLimits.ofOperation(row)] as const),
  );
  return (rpc) => limits.get(rpc) ?? rateLimits.elsewhere;
}

function hasRoute(row: RpcOperation | RpcStream): row is Operation | StreamOperation {
  return "route" in row;
}
