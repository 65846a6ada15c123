/** The tools of installed services, parsed and kept by generation: what lists, searches and gates look at. */
import { LRUCache } from "lru-cache";
import type { ServiceMessage, ServiceState } from "../actors/service.ts";
import { cataloguedToolsMax } from "../limits.ts";
import type { ToolSummary } from "../ports/adapter.ts";
import type { Actors } from "../runtime/actors.ts";

/** Tools of one service, by id, in ascending order of id. */
export type ServiceTools = ReadonlyMap<string, ToolSummary>;

export class Catalogue {
  readonly #services: Actors<ServiceState, ServiceMessage>;
  readonly #cache = new LRUCache<string, ServiceTools>({
    maxSize: cataloguedToolsMax,
    sizeCalculation: (tools) => tools.size + 1,
  });

  constructor(services: Actors<ServiceState, ServiceMessage>) {
    this.#services = services;
  }

  async toolsOf(service: ServiceState): Promise<ServiceTools> {
    // Each change of the content is a generation; an id can be used again after it was deleted.
    const name = `${service.id}/${service.createdAt}/${service.generation}`;
    const kept = this.#cache.get(name);
    if (kept !== undefined) return kept;
    const text = await this.#services.blob(service.id, "tools");
    const list = JSON.parse(text ?? "[]") as ToolSummary[];
    const tools: ServiceTools = new Map(list.map((tool) => [tool.id, tool]));
    this.#cache.set(name, tools);
    return tools;
  }
}
