/**
 * Which services are ready on which adapter. One hydration per service and generation at a time; the least recently used leave
 * when there are too many, and are made again at their next call. So are those of an adapter that was replaced.
 */
import { LRUCache } from "lru-cache";
import { Failure } from "../errors/failure.ts";
import { hydratedServicesMax } from "../limits.ts";
import type { Adapter, Adapters, HydratedService } from "../ports/adapter.ts";
import type { HydrationRequest, Hydrations } from "../ports/hydrations.ts";

interface Ready {
  readonly generation: number;
  readonly adapter: Adapter;
  readonly service: HydratedService;
}

interface InFlight {
  readonly generation: number;
  readonly adapter: Adapter;
  readonly promise: Promise<HydratedService>;
}

export function openHydrations(adapters: Adapters): Hydrations {
  const ready = new LRUCache<string, Ready>({
    max: hydratedServicesMax,
    dispose: ({ service }) => service.close?.(),
  });
  const inFlight = new Map<string, InFlight>();

  async function start(adapter: Adapter, request: HydrationRequest): Promise<HydratedService> {
    const { serviceId, plan, config, secrets, generation } = request;
    const service = await adapter.hydrate({ serviceId, plan, config, secrets });
    // Dropped or overtaken meanwhile: whoever asked for it still gets it, but it is not kept.
    const running = inFlight.get(serviceId);
    if (running?.generation === generation && running.adapter === adapter) {
      ready.set(serviceId, { generation, adapter, service });
    }
    return service;
  }

  function serving(serviceId: string): Ready | undefined {
    const found = ready.get(serviceId);
    return found !== undefined && adapters.get(found.adapter.id) === found.adapter ? found : undefined;
  }

  return {
    async hydrate(request) {
      const { serviceId, generation } = request;
      const adapter = adapters.get(request.adapter);
      if (adapter === undefined) throw noAdapter(serviceId, request.adapter);
      const running = inFlight.get(serviceId);
      if (running?.generation === generation && running.adapter === adapter) return running.promise;
      const promise = start(adapter, request).finally(() => {
        if (inFlight.get(serviceId)?.promise === promise) inFlight.delete(serviceId);
      });
      inFlight.set(serviceId, { generation, adapter, promise });
      return promise;
    },

    current(serviceId, generation) {
      const found = serving(serviceId);
      return found?.generation === generation ? found.service : undefined;
    },

    latest: (serviceId) => serving(serviceId)?.service,

    drop(serviceId) {
      ready.delete(serviceId);
      inFlight.delete(serviceId);
    },
  };
}

function noAdapter(serviceId: string, adapter: string): Failure {
  return new Failure("conflict", `Cannot use service "${serviceId}": adapter "${adapter}" is missing or disabled`);
}
