/**
 * `troupe/client`: the operations of a running service, typed, over its control plane. One property for each service, two helpers for
 * what everybody does (run a program, wait for it), one error.
 */
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { SecureContextOptions } from "node:tls";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { DiagnosticsService } from "../gen/troupe/v1/diagnostics_service_pb.ts";
import { EventService } from "../gen/troupe/v1/event_service_pb.ts";
import { LogService } from "../gen/troupe/v1/log_service_pb.ts";
import { MaintenanceService } from "../gen/troupe/v1/maintenance_service_pb.ts";
import { ModuleService } from "../gen/troupe/v1/module_service_pb.ts";
import type { Process } from "../gen/troupe/v1/process_pb.ts";
import { ProcessService } from "../gen/troupe/v1/process_service_pb.ts";
import { RegistryService } from "../gen/troupe/v1/registry_service_pb.ts";
import { ServiceService } from "../gen/troupe/v1/service_service_pb.ts";
import { ToolService } from "../gen/troupe/v1/tool_service_pb.ts";
import { type RunOptions, type RunResult, runProcess, type WaitOptions, waitForProcess } from "./process-runs.ts";
import { retrying } from "./retries.ts";
import { serviceClient } from "./service-client.ts";

export { type Process, ProcessExitState, ProcessState } from "../gen/troupe/v1/process_pb.ts";
export type { RunOptions, RunResult, WaitOptions } from "./process-runs.ts";
export { TroupeError, type TroupeErrorDetails } from "./troupe-error.ts";

export interface TroupeClientOptions {
  /** Of the control plane: `http://127.0.0.1:8081`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** How calls travel. Default: `connect`, over HTTP/1.1; `grpc` puts all of them on one HTTP/2 connection. */
  readonly protocol?: "connect" | "grpc" | undefined;
  /** For a server with a certificate of its own, and for mutual TLS. */
  readonly tls?: Pick<SecureContextOptions, "ca" | "cert" | "key"> | undefined;
  /** Milliseconds a call may take, all its tries together, unless it is given its own; streams have no end. Default: 150 s, above the server's. */
  readonly timeoutMs?: number | undefined;
  /** Further tries of a call that is safe to try again. Default: 3. */
  readonly retriesMax?: number | undefined;
}

export interface TroupeClient {
  readonly processes: Client<typeof ProcessService>;
  readonly services: Client<typeof ServiceService>;
  readonly modules: Client<typeof ModuleService>;
  readonly registries: Client<typeof RegistryService>;
  readonly tools: Client<typeof ToolService>;
  readonly logs: Client<typeof LogService>;
  readonly events: Client<typeof EventService>;
  readonly diagnostics: Client<typeof DiagnosticsService>;
  readonly maintenance: Client<typeof MaintenanceService>;
  /** Resolves with the process once it is idle. Rejects with TroupeError. */
  waitForProcess(id: bigint | number, options?: WaitOptions): Promise<Process>;
  /** Creates a process, waits for its end and reads its results. Rejects with TroupeError. */
  runProcess(options: RunOptions): Promise<RunResult>;
  /** Closes all connections: calls in flight fail, and so do later ones. A client left open does not keep Node running. */
  close(): void;
}

const timeoutMsDefault = 150_000;
const retriesMaxDefault = 3;
/** Connections over HTTP/1.1; further calls wait for one of them. */
const connectionsMax = 256;

/** Opens no connection before the first call. Throws TypeError when `baseUrl` is no URL. */
export function createTroupeClient(options: TroupeClientOptions): TroupeClient {
  const { transport, close } = openTransport(options);
  const processes = serviceClient(ProcessService, transport);
  return {
    processes,
    services: serviceClient(ServiceService, transport),
    modules: serviceClient(ModuleService, transport),
    registries: serviceClient(RegistryService, transport),
    tools: serviceClient(ToolService, transport),
    logs: serviceClient(LogService, transport),
    events: serviceClient(EventService, transport),
    diagnostics: serviceClient(DiagnosticsService, transport),
    maintenance: serviceClient(MaintenanceService, transport),
    waitForProcess: (id, waiting) => waitForProcess(processes, id, waiting),
    runProcess: (run) => runProcess(processes, run),
    close,
  };
}

function openTransport(options: TroupeClientOptions): { readonly transport: Transport; readonly close: () => void } {
  const { apiKey, tls = {}, timeoutMs = timeoutMsDefault, retriesMax = retriesMaxDefault } = options;
  const { href, protocol } = new URL(options.baseUrl);
  const closed = new AbortController();
  const interceptors = [retrying(retriesMax, closed.signal), ...(apiKey === undefined ? [] : [withKey(apiKey)])];
  const common = { baseUrl: href.replace(/\/$/, ""), interceptors, defaultTimeoutMs: timeoutMs };
  if (options.protocol === "grpc") {
    const sessionManager = new Http2SessionManager(href, {}, tls);
    const close = (): void => {
      closed.abort();
      sessionManager.abort();
    };
    return { transport: createGrpcTransport({ ...common, sessionManager }), close };
  }
  const pool = { keepAlive: true, maxSockets: connectionsMax };
  const agent = protocol === "https:" ? new TlsAgent({ ...pool, ...tls }) : new Agent(pool);
  const transport = createConnectTransport({ ...common, httpVersion: "1.1", nodeOptions: { agent } });
  const close = (): void => {
    closed.abort();
    agent.destroy();
  };
  return { transport, close };
}

function withKey(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}
