/** The ways in, opened over the same rows: REST with MCP mounted on it, and the control plane. */
import type { Settings } from "../config.ts";
import { openControlPlane } from "../control-plane/control-plane.ts";
import { openGateway } from "../gateway/gateway.ts";
import { mountMcp } from "../gateway/mcp-route.ts";
import { openMcpFace } from "../mcp-face/mcp-face.ts";
import type { Observation } from "../observability/observation.ts";
import { IdempotentCalls } from "../operations/idempotency.ts";
import { RefusalLog } from "../operations/refusal-log.ts";
import type { Store } from "../ports/store.ts";
import { serverVersion } from "./builtins.ts";
import type { Closers } from "./closers.ts";
import type { Entrance } from "./from-settings.ts";
import type { NodeReadiness } from "./readiness.ts";
import type { OperatorRows, Rows } from "./rows.ts";

export interface FacesOptions {
  readonly settings: Settings;
  readonly observation: Observation;
  readonly store: Store;
  readonly rows: Rows;
  readonly operatorRows: OperatorRows;
  readonly entrance: Entrance;
  readonly readiness: NodeReadiness;
  readonly closers: Closers;
}

export interface Faces {
  /** `http://127.0.0.1:8080` */
  readonly http: string;
  /** `127.0.0.1:8081` */
  readonly grpc: string;
  /** Lets what was admitted finish, up to the limit. */
  close(limitMs: number): Promise<void>;
}

/** Rejects when an address cannot be bound. */
export async function openFaces(options: FacesOptions): Promise<Faces> {
  const { settings, observation, store, rows, operatorRows, entrance, readiness, closers } = options;
  const { clock, log, metrics, tracing } = observation;
  const { authentication, rateLimits, tls } = entrance;
  const refusals = new RefusalLog(log, clock);
  closers.add(() => refusals.close());
  const idempotentCalls = new IdempotentCalls({ store, clock, log });
  closers.add(() => idempotentCalls.close());
  const face = {
    ...rows,
    metrics,
    tracing,
    authentication,
    rateLimits,
    trustedProxies: settings.SERVICE_TRUSTED_PROXIES,
    allowedHosts: settings.SERVICE_ALLOWED_HOSTS,
    corsOrigins: settings.SERVICE_CORS_ORIGINS,
    clock,
    log: refusals,
    readiness,
  };
  const mcp = openMcpFace({ operations: rows.operations, rateLimits, clock, log: refusals, version: serverVersion });
  const gateway = await openGateway({
    ...face,
    idempotentCalls,
    mount: (app, { canAnswer }) => mountMcp(app, { answer: mcp.answer, canAnswer, log }),
    documents: {
      needsKey: settings.SERVICE_API_KEYS !== undefined,
      timeoutMsDefault: settings.SERVICE_PROCESS_TIMEOUT_MS,
      memoryMb: settings.SERVICE_PROCESS_MEMORY_MB,
      outputBytes: settings.SERVICE_PROCESS_OUTPUT_BYTES,
      toolTimeoutMs: settings.SERVICE_TOOL_TIMEOUT_MS,
      isRateLimited: rateLimits !== undefined,
    },
    host: settings.SERVICE_HTTP_HOST,
    port: settings.SERVICE_HTTP_PORT,
  });
  closers.add(() => gateway.close(0));
  const controlPlane = await openControlPlane({
    ...face,
    operations: [...rows.operations, ...operatorRows.operations],
    streams: [...rows.streams, ...operatorRows.streams],
    tls,
    host: settings.SERVICE_GRPC_HOST,
    port: settings.SERVICE_GRPC_PORT,
  });
  closers.add(() => controlPlane.close(0));
  return {
    http: `http://${authorityOf(gateway.address)}`,
    grpc: authorityOf(controlPlane.address),
    async close(limitMs) {
      await Promise.all([gateway.close(limitMs), controlPlane.close(limitMs)]);
    },
  };
}

function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
