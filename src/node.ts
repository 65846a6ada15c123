/**
 * One node of the service, put together: the only place that knows every part. Opening goes bottom up (store, machine, work
 * owed, faces), so nobody is let in before recovery is done; closing goes top down, so that what was admitted can end.
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { moduleKind } from "./actors/module.ts";
import { processKind } from "./actors/process.ts";
import { registryKind } from "./actors/registry.ts";
import { resealAll } from "./actors/reseal-pass.ts";
import { startRetention } from "./actors/retention.ts";
import { SecretSeals } from "./actors/secret-seals.ts";
import { serviceKind } from "./actors/service.ts";
import { openHydrations } from "./adapters/hydrations.ts";
import { openParameterChecks } from "./adapters/parameter-checks/parameter-checks.ts";
import { inspectWorkers } from "./adapters/worker/supervised-worker.ts";
import { builtinModules, serverVersion } from "./builtins.ts";
import { type ControlPlaneTls, openControlPlaneTls } from "./certs/tls-settings.ts";
import { ConfigError, type Settings } from "./config.ts";
import { openControlPlane } from "./control-plane/control-plane.ts";
import { openEgress } from "./egress/egress.ts";
import { RunQueue } from "./executor/launcher.ts";
import { residentTreeKb } from "./executor/portable/memory-size.ts";
import { openGateway } from "./gateway/gateway.ts";
import { mcpRoute, mountMcp } from "./gateway/mcp-route.ts";
import { forgetPreviousKeys, proveKeys } from "./key-proof.ts";
import { storeFailingMsMax, tracesFlushMs } from "./limits.ts";
import { NodeDraining } from "./maintenance/draining.ts";
import { holdablePackages } from "./maintenance/held-packages.ts";
import { openMaintenance } from "./maintenance/maintenance.ts";
import { openMcpFace } from "./mcp-face/mcp-face.ts";
import { openModuleHost } from "./module-host/module-host.ts";
import { ActiveAdapters } from "./modules/active-adapters.ts";
import { ActiveEnvironment } from "./modules/active-environment.ts";
import { openModuleRuntime } from "./modules/module-runtime.ts";
import type { LogBook } from "./observability/log-book.ts";
import { maskSentence, maskState } from "./observability/masked-state.ts";
import { readOnCollect } from "./observability/metrics-sources.ts";
import { openObservation } from "./observability/observation.ts";
import { type Authentication, openAuthentication, parseApiKeys } from "./operations/authentication.ts";
import { startAutoUpdate } from "./operations/auto-update.ts";
import { Catalogue } from "./operations/catalogue.ts";
import { changeStreams } from "./operations/change-streams.ts";
import { diagnosticsOperations } from "./operations/diagnostics.ts";
import { IdempotentCalls } from "./operations/idempotency.ts";
import { logOperations, logStreams } from "./operations/logs.ts";
import { maintenanceStreams } from "./operations/maintenance.ts";
import { ModuleContents } from "./operations/module-contents.ts";
import { startModules } from "./operations/module-start.ts";
import { ModuleUpdates } from "./operations/module-updates.ts";
import { moduleOperations } from "./operations/modules.ts";
import { type Operation, ownContext } from "./operations/operation.ts";
import { processStreams } from "./operations/process-events.ts";
import { processOperations } from "./operations/processes.ts";
import { parseRateLimits, RateLimits } from "./operations/rate-limits.ts";
import { RefusalLog } from "./operations/refusal-log.ts";
import { registryOperations, seedRegistry } from "./operations/registries.ts";
import { Registries } from "./operations/registry-access.ts";
import { registryIconOperations } from "./operations/registry-icons.ts";
import { ServiceContents } from "./operations/service-contents.ts";
import { serviceUpdateOperations } from "./operations/service-updates.ts";
import { serviceOperations } from "./operations/services.ts";
import { ToolCalls } from "./operations/tool-calls.ts";
import { toolOperations } from "./operations/tools.ts";
import { openPackages } from "./packages/packages.ts";
import type { Clock } from "./ports/clock.ts";
import type { Log, LogLevel } from "./ports/log.ts";
import type { Store } from "./ports/store.ts";
import type { Vault } from "./ports/vault.ts";
import { NodeReadiness } from "./readiness.ts";
import { openRegistryReader } from "./registries/registry-reader.ts";
import { System } from "./runtime/system.ts";
import { loadOrMakeKeyFile } from "./secrets/key-file.ts";
import { openVault } from "./secrets/vault.ts";
import { openLevelStore } from "./store/level-store.ts";
import { openLogDisk } from "./store/log-disk.ts";

export interface NodeOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  /** Operators change its level while the node runs. */
  readonly log: Log & { level: LogLevel };
  /** The records of `log`. Whoever made it closes it, after the node. */
  readonly logBook: LogBook;
  /** The store has failed for too long: only a restart of the process can help. */
  readonly onFatal: (reason: string) => void;
}

export interface Node {
  /** `http://127.0.0.1:8080` */
  readonly http: string;
  /** `127.0.0.1:8081` */
  readonly grpc: string;
  /** Resolves with the name of a caller who wants this node to end: close it, as after SIGTERM. */
  readonly drainAsked: Promise<string>;
  /** Drains and closes; resolves within SERVICE_SHUTDOWN_TIMEOUT_MS and a little. */
  close(): Promise<void>;
}

/** Share of the shutdown time that admitted calls and running programs get before they are ended. */
const drainShare = 0.7;

/** Rejects with ConfigError, StoreOpenError, Failure refused (secrets key) or a system error (port in use). */
export async function openNode({ settings, onFatal, logBook, ...given }: NodeOptions): Promise<Node> {
  const observation = await openObservation({
    ...given,
    version: serverVersion,
  });
  const { clock, log, metrics, tracing } = observation;
  const rateLimits = rateLimitsFrom(settings, clock);
  const authentication = authenticationFrom(settings, clock, rateLimits !== undefined);
  const tls = tlsFrom(settings, clock, log);
  const certificates = () => tls?.certificates() ?? [];
  const folder = resolve(settings.SERVICE_DATA_DIR);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const vault = vaultFrom(settings, folder, log);
  const closers = new Closers();
  closers.add(() => observation.eventLoop.close());
  try {
    const store = await openLevelStore({ folder: join(folder, "store"), clock, log, metrics });
    closers.add(() => store.close());
    await proveKeys(store, vault);
    // Not before the store is open: that it is proves that the data folder is ours.
    const keep = settings.SERVICE_LOG_RETENTION;
    if (keep > 0) {
      const logs = { folder: join(folder, "logs"), keep, now: () => clock.now(), log };
      await logBook.keepOn(() => openLogDisk(logs), log);
    }

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
    const registryParts = { registries, reader, vault, clock, log };
    const access = new Registries(registryParts);
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
    const contents = new ServiceContents({
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
      serviceContents: contents,
      builtins,
      log,
    });
    await system.start();
    const started = await startModules({ modules, builtins, updates, packages, clock, log });
    // The active environment may be a package: what is queued waits for it.
    if (environment.moduleId === undefined) void started.packages.then(() => launcher.begin());
    else launcher.begin();
    closers.add(
      startAutoUpdate({
        modules,
        updates,
        services,
        contents,
        clock,
        log,
        intervalMs: settings.SERVICE_AUTO_UPDATE_INTERVAL_MS,
      }),
    );
    closers.add(startRetention({ processes, clock, log, keepMs: settings.SERVICE_PROCESS_RETENTION }));

    if (settings.SERVICE_SECRETS_PREVIOUS_KEYS.length > 0) {
      void rotate(() => resealAll({ services, registries, modules, vault, log }), store, vault, log);
    }

    const readiness = new NodeReadiness(store);
    closers.add(watchStore(store, clock, onFatal));
    const operations: readonly Operation[] = [
      ...processOperations({ processes, launcher, timeoutMsDefault: settings.SERVICE_PROCESS_TIMEOUT_MS }),
      ...registryOperations({ ...registryParts, access }),
      ...registryIconOperations({ reader, access }),
      ...moduleOperations({ modules, contents: moduleContents, updates }),
      ...serviceOperations({ services, contents, adapters }),
      ...serviceUpdateOperations({ services, contents, vault }),
      ...toolOperations({
        services,
        catalogue,
        adapters,
        toolCalls,
        environment: () => environment.environment,
        toolTimeoutMs: settings.SERVICE_TOOL_TIMEOUT_MS,
      }),
      ...logOperations(logBook),
    ];
    refuseUnknownRoutes(rateLimits, operations);
    const idempotentCalls = new IdempotentCalls({ store, clock, log });
    closers.add(() => idempotentCalls.close());
    readOnCollect(metrics.registry, {
      runs: () => launcher.inspect(),
      actors: () => system.census(),
      deadLetters: () => system.deadLetters.counts(),
      store: () => store.inspect(),
      moduleProcesses: () => host.processes().filter(({ pid }) => pid !== null).length,
      certificates,
    });
    const maintenance = openMaintenance({ snapshots: store, packages, dataDir: folder, serverVersion, clock, log });
    const draining = new NodeDraining({
      runs: () => launcher.inspect(),
      drainMs: settings.SERVICE_SHUTDOWN_TIMEOUT_MS * drainShare,
      clock,
    });
    const diagnostics = diagnosticsOperations({
      version: serverVersion,
      clock,
      readiness,
      store,
      system,
      eventLoop: observation.eventLoop,
      slots: () => launcher.inspect(),
      running: () => launcher.running(),
      environments: () => environment.alive(),
      modules: () => host.processes(),
      workers: inspectWorkers,
      memoryKb: residentTreeKb,
      mask: { state: maskState, sentence: maskSentence },
      threshold: given.log,
      configuredLevel: settings.SERVICE_LOG_LEVEL,
      certificates,
      log,
    });
    const refusals = new RefusalLog(log, clock);
    closers.add(() => refusals.close());
    const face = {
      metrics,
      tracing,
      operations,
      streams: [...processStreams({ processes, launcher }), ...logStreams(logBook)],
      authentication,
      rateLimits,
      trustedProxies: settings.SERVICE_TRUSTED_PROXIES,
      allowedHosts: settings.SERVICE_ALLOWED_HOSTS,
      corsOrigins: settings.SERVICE_CORS_ORIGINS,
      clock,
      log: refusals,
      readiness,
    };
    const mcp = openMcpFace({ operations, rateLimits, clock, log: refusals, version: serverVersion });
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
      operations: [...operations, ...diagnostics],
      streams: [
        ...face.streams,
        ...maintenanceStreams({ maintenance, draining }),
        ...changeStreams({ system, store, clock, log, registries, services, modules, processes }),
      ],
      tls,
      host: settings.SERVICE_GRPC_HOST,
      port: settings.SERVICE_GRPC_PORT,
    });
    closers.add(() => controlPlane.close(0));

    if (settings.SERVICE_DEFAULT_REGISTRY_URL !== undefined) {
      void seedInBackground(operations, settings.SERVICE_DEFAULT_REGISTRY_URL, clock, log);
    }

    return {
      http: `http://${authorityOf(gateway.address)}`,
      grpc: authorityOf(controlPlane.address),
      drainAsked: draining.asked,
      async close() {
        const totalMs = settings.SERVICE_SHUTDOWN_TIMEOUT_MS;
        const end = clock.monotonic() + totalMs;
        const drainMs = totalMs * drainShare;
        readiness.drain();
        const drained = launcher.drain();
        await Promise.all([gateway.close(drainMs), controlPlane.close(drainMs), within(clock, drainMs, drained)]);
        launcher.stopAll();
        await within(clock, end - clock.monotonic(), drained);
        await system.stop(end);
        await tracing?.close(Math.min(tracesFlushMs, end - clock.monotonic()));
        await closers.close();
      },
    };
  } catch (error) {
    await closers.close();
    throw error;
  }
}

function rateLimitsFrom({ SERVICE_RATE_LIMITS: text }: Settings, clock: Clock): RateLimits | undefined {
  const overrides = parseRateLimits(text);
  if (typeof overrides === "string") throw new ConfigError([{ name: "SERVICE_RATE_LIMITS", reason: overrides }]);
  return overrides === null ? undefined : new RateLimits(overrides, clock);
}

function authenticationFrom(settings: Settings, clock: Clock, limited: boolean): Authentication {
  const { keys, problems } = parseApiKeys(settings.SERVICE_API_KEYS ?? "");
  if (problems.length > 0) {
    throw new ConfigError(problems.map((reason) => ({ name: "SERVICE_API_KEYS", reason })));
  }
  return openAuthentication(keys, clock, limited);
}

function tlsFrom(settings: Settings, clock: Clock, log: Log): ControlPlaneTls | undefined {
  const tls = openControlPlaneTls(settings, clock, log);
  if (typeof tls === "string") throw new ConfigError([{ name: "SERVICE_GRPC_TLS_CERT_FILE", reason: tls }]);
  return tls;
}

function refuseUnknownRoutes(rateLimits: RateLimits | undefined, operations: readonly Operation[]): void {
  const unknown = rateLimits?.unknownRoutes([mcpRoute, ...operations.map(({ route }) => route)]) ?? [];
  if (unknown.length === 0) return;
  throw new ConfigError(
    unknown.map((route) => ({ name: "SERVICE_RATE_LIMITS", reason: `there is no route "${route}"` })),
  );
}

function vaultFrom(settings: Settings, folder: string, log: Log): Vault {
  const key = settings.SERVICE_SECRETS_KEY ?? loadOrMakeKeyFile(join(folder, "secrets.key"), log);
  return openVault({ key, previousKeys: settings.SERVICE_SECRETS_PREVIOUS_KEYS });
}

/** In the background; until it is done every start needs the previous keys as well. */
async function rotate(resealAllOnce: () => Promise<boolean>, store: Store, vault: Vault, log: Log): Promise<void> {
  try {
    if (!(await resealAllOnce())) return;
    await forgetPreviousKeys(store, vault);
    log.info("secrets-rotated", "The previous secrets keys are not needed any more");
  } catch (error) {
    log.warn("secrets-reseal-incomplete", "Keep the previous secrets keys: the next start goes on", { error });
  }
}

async function seedInBackground(
  operations: readonly Operation[],
  baseUrl: string,
  clock: Clock,
  log: Log,
): Promise<void> {
  try {
    const added = await seedRegistry(operations, baseUrl, ownContext("default-registry", clock));
    if (added) log.info("default-registry-added", `The registry at "${baseUrl}" was added`);
  } catch (error) {
    log.warn("default-registry-failed", `The registry at "${baseUrl}" could not be added; the next start tries again`, {
      error,
    });
  }
}

function watchStore(store: Store, clock: Clock, onFatal: (reason: string) => void): () => void {
  let cancel: (() => void) | undefined;
  const unsubscribe = store.onHealth((health) => {
    cancel?.();
    cancel = undefined;
    if (!health.ok) cancel = clock.after(storeFailingMsMax, () => onFatal(`The store keeps failing: ${health.reason}`));
  });
  return () => {
    unsubscribe();
    cancel?.();
  };
}

function authorityOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve: giveUp } = Promise.withResolvers<void>();
  const cancel = clock.after(Math.max(0, ms), giveUp);
  await Promise.race([work, promise]);
  cancel();
}

/** What was opened, closed in the opposite order, each even if another fails. */
class Closers {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) {
      try {
        await close();
      } catch {
        // The next one must still be closed; whatever failed here cannot be used any more either way.
      }
    }
  }
}
