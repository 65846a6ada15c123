/** What callers may ask of a node: the rows of both faces, those of the control plane alone, and the diagnoses of this machine. */
import { inspectWorkers } from "../adapters/worker/supervised-worker.ts";
import type { CertificateInUse } from "../certs/certificates-in-use.ts";
import type { Settings } from "../config.ts";
import { residentTreeKb } from "../executor/portable/memory-size.ts";
import type { NodeDraining } from "../maintenance/draining.ts";
import { openMaintenance } from "../maintenance/maintenance.ts";
import type { LogBook } from "../observability/log-book.ts";
import { maskSentence, maskState } from "../observability/masked-state.ts";
import type { Observation } from "../observability/observation.ts";
import { changeStreams } from "../operations/change-streams.ts";
import { diagnosticsOperations } from "../operations/diagnostics.ts";
import { logOperations, logStreams } from "../operations/logs.ts";
import { maintenanceStreams } from "../operations/maintenance.ts";
import { moduleOperations } from "../operations/modules.ts";
import type { Operation, RpcOperation, RpcStream, StreamOperation } from "../operations/operation.ts";
import { processStreams } from "../operations/process-events.ts";
import { processOperations } from "../operations/processes.ts";
import { registryOperations } from "../operations/registries.ts";
import { registryIconOperations } from "../operations/registry-icons.ts";
import { serviceUpdateOperations } from "../operations/service-updates.ts";
import { serviceOperations } from "../operations/services.ts";
import { toolOperations } from "../operations/tools.ts";
import type { LogLevel } from "../ports/log.ts";
import type { Vault } from "../ports/vault.ts";
import type { DurableStore } from "../store/durable-store.ts";
import { serverVersion } from "./builtins.ts";
import type { Machine } from "./machine.ts";
import type { NodeReadiness } from "./readiness.ts";

export interface RowsOptions {
  readonly settings: Settings;
  readonly machine: Machine;
  readonly observation: Observation;
  readonly store: DurableStore;
  readonly vault: Vault;
  readonly logBook: LogBook;
}

/** Served by both faces. */
export interface Rows {
  readonly operations: readonly Operation[];
  readonly streams: readonly StreamOperation[];
}

export function rowsOf({ settings, machine, observation, vault, logBook }: RowsOptions): Rows {
  const { clock, log } = observation;
  const { registries, services, modules, processes, launcher, adapters, reader, access } = machine;
  const toolTimeoutMs = settings.SERVICE_TOOL_TIMEOUT_MS;
  return {
    operations: [
      ...processOperations({ processes, launcher, timeoutMsDefault: settings.SERVICE_PROCESS_TIMEOUT_MS }),
      ...registryOperations({ registries, reader, vault, access, clock, log }),
      ...registryIconOperations({ reader, access }),
      ...moduleOperations({ modules, contents: machine.moduleContents, updates: machine.updates }),
      ...serviceOperations({ services, contents: machine.serviceContents, adapters }),
      ...serviceUpdateOperations({ services, contents: machine.serviceContents, vault }),
      ...toolOperations({
        services,
        catalogue: machine.catalogue,
        adapters,
        toolCalls: machine.toolCalls,
        environment: () => machine.environment.environment,
        toolTimeoutMs,
      }),
      ...logOperations(logBook),
    ],
    streams: [...processStreams({ processes, launcher }), ...logStreams(logBook)],
  };
}

export interface OperatorRowsOptions extends RowsOptions {
  readonly readiness: NodeReadiness;
  readonly draining: NodeDraining;
  readonly certificates: () => readonly CertificateInUse[];
  /** Its level is changed while the node runs. */
  readonly threshold: { level: LogLevel };
  /** The data folder. */
  readonly folder: string;
}

/** Served by the control plane alone. */
export interface OperatorRows {
  readonly operations: readonly RpcOperation[];
  readonly streams: readonly RpcStream[];
}

export function operatorRowsOf(options: OperatorRowsOptions): OperatorRows {
  const { settings, machine, observation, store, readiness, draining, certificates, threshold, folder } = options;
  const { clock, log } = observation;
  const { system, registries, services, modules, processes, launcher, packages } = machine;
  const maintenance = openMaintenance({ snapshots: store, packages, dataDir: folder, serverVersion, clock, log });
  return {
    operations: diagnosticsOperations({
      version: serverVersion,
      clock,
      readiness,
      store,
      system,
      eventLoop: observation.eventLoop,
      slots: () => launcher.inspect(),
      running: () => launcher.running(),
      environments: () => machine.environment.alive(),
      modules: () => machine.host.processes(),
      workers: inspectWorkers,
      memoryKb: residentTreeKb,
      mask: { state: maskState, sentence: maskSentence },
      threshold,
      configuredLevel: settings.SERVICE_LOG_LEVEL,
      certificates,
      log,
    }),
    streams: [
      ...maintenanceStreams({ maintenance, draining }),
      ...changeStreams({ system, store, clock, log, registries, services, modules, processes }),
    ],
  };
}
