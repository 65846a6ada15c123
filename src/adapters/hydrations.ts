/**
 * Which services are ready on which adapter. One hydration per service and generation at a time; the least recently used leave
 * when there are too many, and are made again at their next call.
 */
import { LRUCache } from "lru-cache";
import { Failure } from "../errors/failure.ts";
import { hydratedServicesMax } from "../limits.ts";
import type { Adapter, HydratedService } from "../ports/adapter.ts";
import type { HydrationRequest, Hydrations } from "../ports/hydrations.ts";

interface Ready {
  readonly generation: number;
  readonly service: HydratedService;
}

interface InFlight {
  readonly generation: number;
  readonly promise: Promise<HydratedService>;
}

export function openHydrations(adapters: readonly Adapter[]): Hydrations {
  const byId = new Map(adapters.map((adapter) => [adapter.id, adapter]));
  const ready = new LRUCache<string, Ready>({ max: hydratedServicesMax });
  const inFlight = new Map<string, InFlight>();

  async function start(request: HydrationRequest): Promise<HydratedService> {
    const adapter = byId.get(request.adapter);
    if (adapter === undefined) {
      throw new Failure(
        "conflict",
        `Cannot use service "${request.serviceId}": adapter "${request.adapter}" is missing`,
      );
    }
    const { serviceId, plan, config, secrets, generation } = request;
    const service = await adapter.hydrate({ serviceId, plan, config, secrets });
    // Dropped or overtaken meanwhile: whoever asked for it still gets it, but it is not kept.
    if (inFlight.get(serviceId)?.generation === generation) ready.set(serviceId, { generation, service });
    return service;
  }

  return {
    adapters: new Set(byId.keys()),

    hydrate(request) {
      const running = inFlight.get(request.serviceId);
      if (running?.generation === request.generation) return running.promise;
      const promise = start(request).finally(() => {
        if (inFlight.get(request.serviceId)?.promise === promise) inFlight.delete(request.serviceId);
      });
      inFlight.set(request.serviceId, { generation: request.generation, promise });
      return promise;
    },

    current(serviceId, generation) {
      const found = ready.get(serviceId);
      return found?.generation === generation ? found.service : undefined;
    },

    latest: (serviceId) => ready.get(serviceId)?.service,

    drop(serviceId) {
      ready.delete(serviceId);
      inFlight.delete(serviceId);
    },
  };
}
