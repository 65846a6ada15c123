/** Calls of an adapter, inside the module process. Hydrated services are known by the number that the host gave them. */
import type { DocumentInput, JsonObject, ModuleAdapter, ServiceToHydrate } from "../../sdk/sdk.ts";

export interface HydrateInput extends ServiceToHydrate {
  readonly hydration: number;
}

export interface InvokeInput {
  readonly hydration: number;
  readonly toolId: string;
  readonly parameters: JsonObject;
}

export interface DehydrateInput {
  readonly hydration: number;
}

export class AdapterCalls {
  readonly #adapter: ModuleAdapter;
  readonly #hydrated = new Map<number, unknown>();

  constructor(adapter: ModuleAdapter) {
    this.#adapter = adapter;
  }

  async call(method: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    switch (method) {
      case "generateDefinition":
        return this.#adapter.generateDefinition(input as DocumentInput);
      case "hydrate": {
        const { hydration, ...service } = input as HydrateInput;
        this.#hydrated.set(hydration, await this.#adapter.hydrate(service));
        return null;
      }
      case "invoke": {
        const { hydration, toolId, parameters } = input as InvokeInput;
        if (!this.#hydrated.has(hydration)) throw new Error("The service is not ready in this process");
        return this.#adapter.invoke(this.#hydrated.get(hydration), { toolId, parameters, signal });
      }
      case "dehydrate": {
        const { hydration } = input as DehydrateInput;
        if (!this.#hydrated.has(hydration)) return null;
        const hydrated = this.#hydrated.get(hydration);
        this.#hydrated.delete(hydration);
        await this.#adapter.dehydrate?.(hydrated);
        return null;
      }
      default:
        throw new Error(`An adapter has no method "${method}"`);
    }
  }
}
