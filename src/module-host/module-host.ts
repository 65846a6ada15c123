/** Third-party modules, each in a supervised process of its own: chooses how processes are kept apart, and opens what modules offer. */
import { Failure } from "../errors/failure.ts";
import { schemaProblem } from "../json/schema.ts";
import { moduleStartsMax } from "../limits.ts";
import type { JsonSchema } from "../ports/adapter.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { ModuleMetrics } from "../ports/metrics.ts";
import type { HostedModule, ModuleDeclaration, ModuleHost, ModuleProcess } from "../ports/module-host.ts";
import type { ModulePackage } from "../ports/packages.ts";
import type { ParameterChecks } from "../ports/parameter-checks.ts";
import { HostedAdapter } from "./adapter-facade.ts";
import { noSettings } from "./definition-check.ts";
import { HostedEnvironment } from "./environment-facade.ts";
import { chooseIsolation, defaultLayers, type Isolation, type IsolationLayer, runner } from "./isolation.ts";
import { dataKbMax } from "./memory-fence.ts";
import { ProcessPlaces } from "./process-places.ts";
import { ProcessStarter } from "./process-starter.ts";
import { runnerSources } from "./runner-sources.ts";
import { StartGate } from "./start-gate.ts";
import { SupervisedModule } from "./supervised-module.ts";

export interface ModuleHostOptions {
  readonly fetcher: Fetcher;
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
  readonly log: Log;
  /** Run modules even where nothing keeps them apart from the server. */
  readonly unsandboxed: boolean;
  readonly toolTimeoutMs: number;
  readonly metrics?: ModuleMetrics | undefined;
  /** Tried in this order; tests force one. */
  readonly layers?: readonly IsolationLayer[] | undefined;
  /** In place of the bounds of `limits.ts`, for tests. */
  readonly startMs?: number | undefined;
  readonly unresponsiveMs?: number | undefined;
  readonly idleMs?: number | undefined;
  readonly processesMax?: number | undefined;
}

export async function openModuleHost(options: ModuleHostOptions): Promise<ModuleHost> {
  const [chosen, dataKb] = await Promise.all([
    chooseIsolation(options.layers ?? defaultLayers(), options.unsandboxed),
    dataKbMax(),
  ]);
  if ("unavailable" in chosen) {
    options.log.warn("modules-unavailable", chosen.unavailable);
    return new UnavailableHost(chosen.unavailable);
  }
  const { isolation } = chosen;
  if (isolation.name !== "bubblewrap") {
    options.log.warn("modules-weakly-isolated", `Third-party modules run with the isolation "${isolation.name}"`);
  }
  return new ProcessHost(options, isolation, dataKb);
}

class ProcessHost implements ModuleHost {
  readonly unavailable = null;
  readonly #options: ModuleHostOptions;
  readonly #starter: ProcessStarter;
  readonly #places: ProcessPlaces;
  readonly #modules = new Set<SupervisedModule>();
  readonly #closing = new AbortController();

  constructor(options: ModuleHostOptions, isolation: Isolation, dataKb: number | undefined) {
    this.#options = options;
    this.#places = new ProcessPlaces(options.clock, options.processesMax);
    const gate = new StartGate(moduleStartsMax);
    this.#starter = new ProcessStarter({
      ...options,
      isolation,
      dataKbMax: dataKb,
      sources: runnerSources(runner),
      gate,
    });
  }

  async inspect(modulePackage: ModulePackage): Promise<ModuleDeclaration> {
    this.#requireOpen();
    const { id } = modulePackage.manifest;
    const { signal } = this.#closing;
    const place = await this.#places.take(id, signal);
    const { process, hello } = await this.#starter.start(modulePackage, undefined, (text) => text, place, signal);
    process.kill("was only inspected");
    await process.gone;
    return {
      configSchema: declared(id, "configSchema", hello.configSchema),
      secretsSchema: declared(id, "secretsSchema", hello.secretsSchema),
    };
  }

  async openAdapter(hosted: HostedModule): Promise<HostedAdapter> {
    const { parameterChecks, toolTimeoutMs, clock, log } = this.#options;
    return new HostedAdapter({ module: await this.#open(hosted), parameterChecks, toolTimeoutMs, clock, log });
  }

  async openEnvironment(hosted: HostedModule): Promise<HostedEnvironment> {
    return new HostedEnvironment({ module: await this.#open(hosted), clock: this.#options.clock });
  }

  processes(): readonly ModuleProcess[] {
    this.#forgetEnded();
    const { clock } = this.#options;
    return [...this.#modules].map((module) => {
      const { moduleId, pid, state, upSince, restarts, lastError } = module.inspect();
      const startedAt = upSince === null ? null : Math.round(clock.now() - (clock.monotonic() - upSince));
      return { moduleId, pid, state, startedAt, restarts, lastError };
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#modules].map((module) => module.close()));
    await this.#starter.close();
  }

  async #open(hosted: HostedModule): Promise<SupervisedModule> {
    this.#requireOpen();
    this.#forgetEnded();
    const { clock, log, idleMs, metrics } = this.#options;
    const parts = { starter: this.#starter, places: this.#places, clock, log, idleMs, metrics };
    const module = new SupervisedModule({ module: hosted, ...parts });
    this.#modules.add(module);
    if (hosted.start !== "when-used") await module.start();
    return module;
  }

  #forgetEnded(): void {
    for (const module of this.#modules) if (module.inspect().isOver) this.#modules.delete(module);
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw new Failure("unavailable", "The module host is closed");
  }
}

/** Where nothing keeps a module apart. */
class UnavailableHost implements ModuleHost {
  readonly unavailable: string;

  constructor(reason: string) {
    this.unavailable = reason;
  }

  inspect = () => this.#refuse();
  openAdapter = () => this.#refuse();
  openEnvironment = () => this.#refuse();
  processes = () => [];
  close = async () => {};

  async #refuse(): Promise<never> {
    throw new Failure("unavailable", this.unavailable);
  }
}

function declared(moduleId: string, name: string, schema: unknown): JsonSchema {
  if (schema === undefined) return noSettings;
  const fault = schemaProblem(schema);
  if (fault !== undefined) {
    throw new Failure("invalid_request", `Module "${moduleId}" declares a ${name} that cannot be used: ${fault}`);
  }
  return schema as JsonSchema;
}
