/**
 * Another version of a module takes over, and its services with it. The machine has put it in service when the actor says so; what is
 * here looks after the services of an adapter: they are made again from their documents, and if one that worked no longer does, the
 * former version takes over again and nothing of the services has changed.
 */
import type { ModuleMessage, ModuleState } from "../actors/module.ts";
import { moduleFault } from "../actors/module.ts";
import { type ServiceContent, type ServiceState, toolsText } from "../actors/service.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import { moduleServicesAtOnce, modulesStartedAtOnce } from "../limits.ts";
import type { BuiltinModule } from "../ports/builtin-module.ts";
import type { Log } from "../ports/log.ts";
import { askModule, type ModuleActors } from "./module-actors.ts";
import type { ModuleContents } from "./module-contents.ts";
import type { CallContext } from "./operation.ts";
import { askService, type ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";
import { atMost, eachActor } from "./walk-actors.ts";

export interface ModuleUpdatesOptions {
  readonly modules: ModuleActors;
  readonly contents: ModuleContents;
  readonly services: ServiceActors;
  readonly serviceContents: ServiceContents;
  readonly builtins: readonly BuiltinModule[];
  readonly log: Log;
}

export interface Started {
  readonly modules: number;
  readonly faulty: number;
}

export class ModuleUpdates {
  readonly #options: ModuleUpdatesOptions;

  constructor(options: ModuleUpdatesOptions) {
    this.#options = options;
  }

  /** The state after the update, or undefined when there is nothing newer. */
  async update(state: ModuleState, context: CallContext, skip?: string | null): Promise<ModuleState | undefined> {
    const { contents } = this.#options;
    const found = await contents.newer(state, context, skip);
    if (found === undefined) return undefined;
    const { source, content } = found;
    try {
      const after = await this.#ask(state.id, { type: "replace", source, content }, context);
      await this.#carryServices(after, context);
      return after;
    } finally {
      // Not taken over, or gone back from.
      await contents.discard(state.id, content.hash);
    }
  }

  async rollBack(id: string, context: CallContext): Promise<ModuleState> {
    const after = await this.#ask(id, { type: "rollBack" }, context);
    await this.#remakeServices(after, context);
    return after;
  }

  /** A module keeps crashing: its actor may go back to the version before, and then its services go back as well. */
  async failed(id: string, hash: string, reason: string, context: CallContext): Promise<void> {
    const { modules, log } = this.#options;
    log.error("module-failed", `Module "${id}" was given up: ${reason}`, { moduleId: id });
    await modules.ask(id, { type: "fail", hash, reason }, { deadline: context.deadline });
    const { state } = await modules.query(id);
    if (state !== null && state.hash !== hash) await this.#remakeServices(state, context);
  }

  /** Looks at each module as it is on disk now, and puts the enabled ones in service. No module holds up another. */
  async startAll(context: CallContext, which: "all" | "installed" = "all"): Promise<Started> {
    const { modules, builtins, contents, log } = this.#options;
    const missingOf = new Map(builtins.map(({ id, missing }) => [id, missing]));
    const counts = { modules: 0, faulty: 0 };
    await atMost(modulesStartedAtOnce, eachActor(modules), async (state) => {
      if (which === "installed" && state.isBuiltin) return;
      counts.modules++;
      try {
        const missing = state.isBuiltin
          ? (missingOf.get(state.id) ??
            (missingOf.has(state.id) ? null : "This version of the server does not have it"))
          : await contents.fault(state);
        const after = await this.#ask(state.id, { type: "start", missing }, context);
        if (moduleFault(after) !== null) counts.faulty++;
      } catch (error) {
        counts.faulty++;
        if (!isFailure(error)) log.error("module-start-failed", `Module "${state.id}" could not be started`, { error });
      }
    });
    return counts;
  }

  /** Before anything of a service is changed, all of them are tried. */
  async #carryServices(module: ModuleState, context: CallContext): Promise<void> {
    if (module.type !== "adapter" || !module.enabled) return;
    const tried = await this.#tryServices(module.id);
    const broken = tried.filter(({ service, failure }) => failure !== undefined && service.enabled);
    const [first] = broken;
    if (first?.failure !== undefined) {
      await this.#ask(module.id, { type: "rollBack" }, context);
      const message = `Module "${module.id}" version ${module.version} cannot serve service "${first.service.id}": ${first.failure.message}. The former version is active again`;
      throw new Failure("upstream_failed", message, { cause: first.failure });
    }
    await this.#store(tried, context);
  }

  /** As far as it goes: a service that cannot be made is marked stale. */
  async #remakeServices(module: ModuleState, context: CallContext): Promise<void> {
    if (module.type !== "adapter" || !module.enabled) return;
    await this.#store(await this.#tryServices(module.id), context);
  }

  async #tryServices(adapter: string): Promise<readonly Tried[]> {
    const { services, serviceContents } = this.#options;
    const tried: Tried[] = [];
    await atMost(moduleServicesAtOnce, eachActor(services), async (service) => {
      if (service.adapter !== adapter) return;
      try {
        const document = (await services.blob(service.id, "document")) ?? "";
        const content = await serviceContents.remade(service, document);
        tried.push({ service, content });
      } catch (error) {
        const message = `Its tools cannot be made: the adapter failed`;
        tried.push({ service, failure: isFailure(error) ? error : new Failure("internal", message, { cause: error }) });
      }
    });
    return tried;
  }

  async #store(tried: readonly Tried[], context: CallContext): Promise<void> {
    const { services, log } = this.#options;
    await atMost(moduleServicesAtOnce, tried, async ({ service, content, failure }) => {
      const { id: serviceId } = service;
      try {
        // Anything else may pass: what was made before is still there.
        if (failure !== undefined && failure.kind !== "invalid_request") throw failure;
        if (failure !== undefined) {
          await askService(services, serviceId, { type: "markStale", reason: failure.message }, context);
        } else if (content !== undefined && !(await this.#isSame(service, content))) {
          await askService(services, serviceId, { type: "replace", content }, context);
        }
      } catch (error) {
        log.warn("service-not-remade", `Service "${serviceId}" keeps what the former version of its adapter made`, {
          serviceId,
          error,
        });
      }
    });
  }

  /** Then there is nothing to write, and nothing to hydrate again but what the new instance does anyway. */
  async #isSame(service: ServiceState, { hash, planHash, definition }: ServiceContent): Promise<boolean> {
    const { name, summary, description, configSchema, secretsSchema } = definition;
    const made = { hash, planHash, name, summary, description, configSchema, secretsSchema };
    const kept = Object.fromEntries(Object.keys(made).map((field) => [field, service[field as keyof typeof made]]));
    if (service.stale !== null || JSON.stringify(made) !== JSON.stringify(kept)) return false;
    return (await this.#options.services.blob(service.id, "tools")) === toolsText(definition);
  }

  #ask(id: string, message: ModuleMessage, context: CallContext): Promise<ModuleState> {
    return askModule(this.#options.modules, id, message, context);
  }
}

interface Tried {
  readonly service: ServiceState;
  readonly content?: ServiceContent;
  readonly failure?: Failure;
}
