/**
 * Puts modules in service and takes them out again. Opens first, switches then, closes last: whatever fails on the way leaves the
 * former in service. What is done to one module is done in the order it was asked for.
 */
import { Failure } from "../errors/failure.ts";
import { adapterRetireMs } from "../limits.ts";
import type { Adapter } from "../ports/adapter.ts";
import type { BuiltinModule } from "../ports/builtin-module.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { HostedModule, ModuleHost } from "../ports/module-host.ts";
import type { ModuleActivation, ModuleRuntime } from "../ports/module-runtime.ts";
import type { Packages } from "../ports/packages.ts";
import type { ActiveAdapters } from "./active-adapters.ts";
import type { ActiveEnvironment } from "./active-environment.ts";

export interface ModuleRuntimeOptions {
  readonly builtins: readonly BuiltinModule[];
  readonly packages: Packages;
  readonly host: ModuleHost;
  readonly adapters: ActiveAdapters;
  readonly environment: ActiveEnvironment;
  readonly clock: Clock;
  readonly log: Log;
  /** A third-party module keeps crashing; `hash` is the package that does. */
  onFailed(moduleId: string, hash: string, reason: string): void;
}

export interface OpenModuleRuntime extends ModuleRuntime {
  close(): Promise<void>;
}

export function openModuleRuntime(options: ModuleRuntimeOptions): OpenModuleRuntime {
  return new PluggedModules(options);
}

class PluggedModules implements OpenModuleRuntime {
  readonly #options: ModuleRuntimeOptions;
  readonly #builtins: ReadonlyMap<string, BuiltinModule>;
  /** The end of what is being done to a module now. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #retiring = new Map<Adapter, () => void>();

  constructor(options: ModuleRuntimeOptions) {
    this.#options = options;
    this.#builtins = new Map(options.builtins.map((builtin) => [builtin.id, builtin]));
  }

  activate(activation: ModuleActivation): Promise<void> {
    return this.#inTurn(activation.moduleId, () => this.#activate(activation));
  }

  deactivate(moduleId: string): void {
    void this.#inTurn(moduleId, async () => {
      this.#retire(this.#options.adapters.take(moduleId));
      this.#options.environment.leave(moduleId);
    });
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#turns.values());
    const { adapters, environment, host } = this.#options;
    for (const closeNow of this.#retiring.values()) closeNow();
    await environment.close();
    await Promise.allSettled(adapters.ids().map((id) => adapters.take(id)?.close()));
    await host.close();
  }

  async #activate(activation: ModuleActivation): Promise<void> {
    const { adapters, environment } = this.#options;
    const { moduleId, type, hash, config, secrets } = activation;
    if (hash === null) {
      const builtin = this.#builtins.get(moduleId);
      if (builtin === undefined) throw new Failure("conflict", `This server has no built-in module "${moduleId}"`);
      if (builtin.missing !== null) throw new Failure("conflict", builtin.missing);
      if (builtin.type === "adapter") this.#retire(adapters.put(moduleId, await builtin.open({ config, secrets })));
      else environment.switchTo(moduleId, await builtin.open({ config, secrets }));
      return;
    }
    const hosted = await this.#hosted(activation, hash);
    const { host } = this.#options;
    if (type === "adapter") {
      this.#retire(adapters.put(moduleId, await host.openAdapter({ ...hosted, start: activation.start })));
    } else environment.switchTo(moduleId, await host.openEnvironment(hosted));
  }

  async #hosted({ moduleId, config, secrets }: ModuleActivation, hash: string): Promise<HostedModule> {
    const { host, packages, onFailed } = this.#options;
    if (host.unavailable !== null) throw new Failure("conflict", host.unavailable);
    const modulePackage = await packages.open(moduleId, hash);
    return { modulePackage, config, secrets, onFailed: (reason) => onFailed(moduleId, hash, reason) };
  }

  /** Calls in flight get their time; then it is closed. */
  #retire(adapter: Adapter | undefined): void {
    if (adapter === undefined) return;
    const close = (): void => {
      this.#retiring.delete(adapter);
      adapter.close().catch((error: unknown) =>
        this.#options.log.warn("adapter-close-failed", "A former adapter did not close cleanly", {
          moduleId: adapter.id,
          error,
        }),
      );
    };
    const cancel = this.#options.clock.after(adapterRetireMs, close);
    this.#retiring.set(adapter, () => {
      cancel();
      close();
    });
  }

  #inTurn(moduleId: string, work: () => Promise<void>): Promise<void> {
    const before = this.#turns.get(moduleId) ?? Promise.resolve();
    const turn = before.then(work, work);
    const settled = turn
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(moduleId) === settled) this.#turns.delete(moduleId);
      });
    this.#turns.set(moduleId, settled);
    return turn;
  }
}
