/**
 * Calls of tools, from process code and from the gateway alike: the gates in their order, then the adapter. It happens in the
 * caller's own context and time; no actor waits for it.
 */
import { admitCall, type ServiceState } from "../actors/service.ts";
import { hydrationRequest } from "../actors/service-effects.ts";
import { Failure } from "../errors/failure.ts";
import { toSnakeCase } from "../json/snake-case.ts";
import type { Adapters, HydratedService } from "../ports/adapter.ts";
import type { Hydrations } from "../ports/hydrations.ts";
import type { ObserveToolCall } from "../ports/metrics.ts";
import type { Vault } from "../ports/vault.ts";
import type { Catalogue, ServiceTools } from "./catalogue.ts";
import { findService, type ServiceActors } from "./service-actors.ts";

export interface ToolCallsOptions {
  readonly services: ServiceActors;
  readonly catalogue: Catalogue;
  readonly adapters: Adapters;
  readonly hydrations: Hydrations;
  readonly vault: Vault;
  readonly observe?: ObserveToolCall | undefined;
}

export interface ToolRequest {
  readonly serviceId: string;
  readonly toolId: string;
  readonly parameters: unknown;
  /** How the program's language spells ids: then a tool may be meant that is spelled otherwise. */
  readonly spelling?: "snake_case" | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export class ToolCalls {
  readonly #options: ToolCallsOptions;
  readonly #snakeCased = new WeakMap<ServiceTools, Map<string, string[]>>();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  /** Rejects with Failure; the gates close in this order: unknown, stale, disabled, parameters, adapter. */
  call(request: ToolRequest): Promise<unknown> {
    const { observe } = this.#options;
    if (observe === undefined) return this.#call(request);
    return observe(request, (through) => this.#call(request, through));
  }

  async #call(
    { serviceId, toolId: spelled, parameters, spelling, timeoutMs, signal }: ToolRequest,
    through?: (adapterId: string) => void,
  ): Promise<unknown> {
    const { services, catalogue } = this.#options;
    const state = await findService(services, serviceId);
    through?.(state.adapter);
    const tools = await catalogue.toolsOf(state);
    const toolId = tools.has(spelled) || spelling === undefined ? spelled : this.#meant(state, tools, spelled);
    if (!tools.has(toolId)) throw new Failure("not_found", `Service "${serviceId}" has no tool "${toolId}"`);
    admitCall(state, toolId);
    const service = await this.#ready(state);
    return service.invoke({ toolId, parameters: parameters ?? {}, timeoutMs, signal });
  }

  /** The tool that is spelled like this in snake_case; of several nobody knows which. */
  #meant({ id }: ServiceState, tools: ServiceTools, spelled: string): string {
    let byName = this.#snakeCased.get(tools);
    if (byName === undefined) {
      byName = Map.groupBy(tools.keys(), toSnakeCase);
      this.#snakeCased.set(tools, byName);
    }
    const [toolId, ...others] = byName.get(spelled) ?? [spelled];
    if (others.length === 0) return toolId ?? spelled;
    const all = [toolId, ...others].map((one) => `"${one}"`).join(", ");
    throw new Failure("invalid_request", `Tool "${spelled}" of service "${id}" may be ${all}: call it by its exact id`);
  }

  async #planOf(serviceId: string): Promise<string> {
    const plan = await this.#options.services.blob(serviceId, "plan");
    // Between reading its record and this, somebody has deleted it.
    if (plan === undefined) throw new Failure("not_found", `There is no service "${serviceId}"`);
    return plan;
  }

  async #ready(state: ServiceState): Promise<HydratedService> {
    const { adapters, hydrations, vault } = this.#options;
    if (adapters.get(state.adapter) === undefined) {
      throw new Failure(
        "unavailable",
        `Cannot call service "${state.id}": adapter "${state.adapter}" is not in service`,
      );
    }
    const current = hydrations.current(state.id, state.generation);
    if (current !== undefined) return current;
    try {
      return await hydrations.hydrate(hydrationRequest(state, vault, () => this.#planOf(state.id)));
    } catch (error) {
      // A change that could not be made ready leaves the former settings serving.
      const former = hydrations.latest(state.id);
      if (former !== undefined) return former;
      throw error;
    }
  }
}
