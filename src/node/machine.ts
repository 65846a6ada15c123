/** The parts that do the work, wired to each other: actors of every kind, what they ask of the world, and the queue that runs programs. */
import { join } from "node:path";
import { type ModuleMessage, type ModuleState, moduleKind } from "../actors/module.ts";
import { type ProcessMessage, type ProcessState, processKind } from "../actors/process.ts";
import { type RegistryMessage, type RegistryState, registryKind } from "../actors/registry.ts";
import { SecretSeals } from "../actors/secret-seals.ts";
import { type ServiceMessage, type ServiceState, serviceKind } from "../actors/service.ts";
import { openHydrations } from "../adapters/hydrations.ts";
import { openParameterChecks } from "../adapters/parameter-checks/parameter-checks.ts";
import type { Settings } from "../config.ts";
import { openEgress } from "../egress/egress.ts";
import { RunQueue } from "../executor/launcher.ts";
import { type HeldPackages, holdablePackages } from "../maintenance/held-packages.ts";
import { openModuleHost } from "../module-host/module-host.ts";
import { ActiveAdapters } from "../modules/active-adapters.ts";
import { ActiveEnvironment } from "../modules/active-environment.ts";
import { openModuleRuntime } from "../modules/module-runtime.ts";
import type { Observation } from "../observability/observation.ts";
import { Catalogue } from "../operations/catalogue.ts";
import { ModuleContents } from "../operations/module-contents.ts";
import { ModuleUpdates } from "../operations/module-updates.ts";
import { ownContext } from "../operations/operation.ts";
import { Registries } from "../operations/registry-access.ts";
import { ServiceContents } from "../operations/service-contents.ts";
import { ToolCalls } from "../operations/tool-calls.ts";
import { openPackages } from "../packages/packages.ts";
import type { BuiltinModule } from "../ports/builtin-module.ts";
import type { ModuleHost } from "../ports/module-host.ts";
import type { RegistryReader } from "../ports/registry-reader.ts";
import type { Vault } from "../ports/vault.ts";
import { openRegistryReader } from "../registries/registry-reader.ts";
import type { Actors } from "../runtime/actors.ts";
import { System } from "../runtime/system.ts";
import type { DurableStore } from "../store/durable-store.ts";
import { builtinModules, serverVersion } from "./builtins.ts";
import type { Closers } from "./closers.ts";

export interface MachineOptions {
  readonly settings: Settings;
  readonly observation: Observation;
  /** The data folder. */
  readonly folder: string;
  readonly store: DurableStore;
  readonly vault: Vault;
  readonly closers: Closers;
}

export interface Machine {
  readonly system: System;
  readonly registries: Actors<RegistryState, RegistryMessage>;
  readonly services: Actors<ServiceState, ServiceMessage>;
  readonly modules: Actors<ModuleState, ModuleMessage>;
  readonly processes: Actors<ProcessState, ProcessMessage>;
  readonly builtins: readonly BuiltinModule[];
  readonly packages: HeldPackages;
  readonly host: ModuleHost;
  readonly adapters: ActiveAdapters;
  readonly environment: ActiveEnvironment;
  readonly launcher: RunQueue;
  readonly catalogue: Catalogue;
  readonly toolCalls: ToolCalls;
  readonly reader: RegistryReader;
  readonly access: Registries;
  readonly serviceContents: ServiceContents;
  readonly moduleContents: ModuleContents;
  readonly updates: ModuleUpdates;
}

/** Nothing runs yet: `system.start()` takes up what is owed, `launcher.begin()` what is queued. */
export async function openMachine({
  settings,
  observation,
  folder,
  store,
  vault,
  closers,
}: MachineOptions): Promise<Machine> {
  const { clock, log, metrics, tracing } = observation;
  const fetcher = openEgress({
    allowedCidrs: settings.SERVICE_EGRESS_ALLOWED_CIDRS,
    blockedCidrs: settings.SERVICE_EGRESS_BLOCKED_CIDRS,
    clock,
    log,
  });
  closers.add(() => fetcher.close());
  const parameterChecks = openParameterChecks({ clock, log });
  closers.add(() => parameterChecks.close());
  const packages = holdablePackages(openPackages({ folder: join(folder, "modules"), serverVersion, log }), log);
  const host = await openModuleHost({
    fetcher: observation.outbound(fetcher, "module"),
    metrics,
    parameterChecks,
    clock,
    log,
    unsandboxed: settings.SERVICE_MODULES_UNSANDBOXED,
    toolTimeoutMs: settings.SERVICE_TOOL_TIMEOUT_MS,
  });
  const builtins = await builtinModules({
    settings,
    fetcher: observation.outbound(fetcher, "tool"),
    parameterChecks,
    clock,
    log,
  });
  const adapters = new ActiveAdapters();
  const environment = new ActiveEnvironment(log);
  const runtime = openModuleRuntime({
    builtins,
    packages,
    host,
    adapters,
    environment,
    clock,
    log,
    onFailed: (id, hash, reason) => {
      metrics.modulesFailed.inc();
      updates.failed(id, hash, reason, ownContext("module-failed", clock)).catch((error: unknown) => {
        log.error("module-failure-not-stored", "What is to follow from the failure of a module was not decided", {
          moduleId: id,
          error,
        });
      });
    },
  });
  closers.add(() => runtime.close());

  const system = new System({ store, clock, log, tracing });
  const hydrations = openHydrations(adapters);
  const seals = new SecretSeals(vault);
  const services = system.register(serviceKind, { vault, seals, hydrations });
  const catalogue = new Catalogue(services);
  const modules = system.register(moduleKind, { vault, seals, runtime, packages, log });
  const toolCalls = new ToolCalls({
    services,
    catalogue,
    adapters,
    hydrations,
    vault,
    observe: observation.toolCalls(builtins.map(({ id }) => id)),
  });
  const reader = openRegistryReader({
    egress: observation.registries(fetcher),
    insecureCidrs: settings.SERVICE_REGISTRY_AUTH_INSECURE_CIDRS,
    clock,
    log,
  });
  const registries = system.register(registryKind, { vault, reader });
  const access = new Registries({ registries, reader, vault, clock, log });
  const launcher = new RunQueue({
    executor: environment,
    held: true,
    clock,
    concurrency: settings.SERVICE_PROCESS_CONCURRENCY,
    queueMax: settings.SERVICE_PROCESS_QUEUE_MAX,
    limits: {
      memoryMb: settings.SERVICE_PROCESS_MEMORY_MB,
      outputBytes: settings.SERVICE_PROCESS_OUTPUT_BYTES,
      cpuMs: null,
    },
    toolTimeoutMs: settings.SERVICE_TOOL_TIMEOUT_MS,
    callTool: (call, context) => observed.within(context.processId, () => toolCalls.call({ ...call, ...context })),
  });
  const observed = observation.launcher(launcher);
  const processes = system.register(processKind, { launcher: observed });
  const serviceContents = new ServiceContents({
    adapters,
    modules,
    services,
    fetcher: observation.outbound(fetcher, "document"),
    reader,
    access,
    log,
  });
  const moduleContents = new ModuleContents({
    modules,
    packages,
    host,
    fetcher: observation.outbound(fetcher, "package"),
    reader,
    access,
    serverVersion,
  });
  const updates = new ModuleUpdates({
    modules,
    contents: moduleContents,
    services,
    serviceContents,
    builtins,
    log,
  });
  return {
    system,
    services,
    modules,
    registries,
    processes,
    builtins,
    packages,
    host,
    adapters,
    environment,
    launcher,
    catalogue,
    toolCalls,
    reader,
    access,
    serviceContents,
    moduleContents,
    updates,
  };
}
