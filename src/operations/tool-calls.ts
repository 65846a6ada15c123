/**
 * Calls of tools, from process code and from the gateway alike: the gates in their order, then the adapter. It happens in the
 * caller's own context and time; no actor waits for it.
 */
import { admitCall, type ServiceState } from "../actors/service.ts";
import { hydrationRequest } from "../actors/service-effects.ts";
import { Failure } from "../errors/failure.ts";
import type { HydratedService } from "../ports/adapter.ts";
import type { Hydrations } from "../ports/hydrations.ts";
import type { Vault } from "../ports/vault.ts";
import type { Catalogue } from "./catalogue.ts";
import { findService, type ServiceActors } from "./service-actors.ts";

export interface ToolCallsOptions {
  readonly services: ServiceActors;
  readonly catalogue: Catalogue;
  readonly hydrations: Hydrations;
  readonly vault: Vault;
}

export interface ToolRequest {
  readonly serviceId: string;
  readonly toolId: string;
  readonly parameters: unknown;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export class ToolCalls {
  readonly #options: ToolCallsOptions;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  /** Rejects with Failure; the gates close in this order: unknown, stale, disabled, parameters, adapter. */
  async call({ serviceId, toolId, parameters, timeoutMs, signal }: ToolRequest): Promise<unknown> {
    const { services, catalogue } = this.#options;
    const state = await findService(services, serviceId);
    const tools = await catalogue.toolsOf(state);
    if (!tools.has(toolId)) throw new Failure("not_found", `Service "${serviceId}" has no tool "${toolId}"`);
    admitCall(state, toolId);
    const service = await this.#ready(state);
    return service.invoke({ toolId, parameters: parameters ?? {}, timeoutMs, signal });
  }

  async #ready(state: ServiceState): Promise<HydratedService> {
    const { hydrations, vault, services } = this.#options;
    const current = hydrations.current(state.id, state.generation);
    if (current !== undefined) return current;
    try {
      return await hydrations.hydrate(hydrationRequest(state, vault, () => services.blob(state.id, "plan")));
    } catch (error) {
      // A change that could not be made ready leaves the former settings serving.
      const former = hydrations.latest(state.id);
      if (former !== undefined) return former;
      throw error;
    }
  }
}
