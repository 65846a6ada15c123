/** What is stored with a service beside its list of tools: where the server is, and the schemas. Read in the server: it is our own text. */
import { LRUCache } from "lru-cache";
import { Failure } from "../../errors/failure.ts";
import { mcpPlansCachedCharactersMax } from "../../limits.ts";
import type { JsonSchema, PlanReference, ToolSchemas } from "../../ports/adapter.ts";
import type { ServerAddress } from "./server-address.ts";

export const planVersion = 1;

export interface ToolPlan extends ToolSchemas {
  readonly id: string;
  /** As the server knows it. */
  readonly name: string;
}

export interface Plan {
  readonly version: typeof planVersion;
  readonly address: ServerAddress;
  readonly tools: readonly ToolPlan[];
}

export interface ReadPlan {
  readonly address: ServerAddress;
  readonly tools: ReadonlyMap<string, ToolPlan>;
}

export class PlanCache {
  readonly #plans = new LRUCache<string, ReadPlan>({ maxSize: mcpPlansCachedCharactersMax });
  readonly #loading = new Map<string, Promise<ReadPlan>>();

  async read(plan: PlanReference): Promise<ReadPlan> {
    return this.#plans.get(plan.hash) ?? this.#loading.get(plan.hash) ?? this.#load(plan);
  }

  #load(plan: PlanReference): Promise<ReadPlan> {
    const loading = this.#parse(plan).finally(() => this.#loading.delete(plan.hash));
    this.#loading.set(plan.hash, loading);
    return loading;
  }

  async #parse(plan: PlanReference): Promise<ReadPlan> {
    const text = await plan.load();
    const { version, address, tools } = JSON.parse(text) as Plan;
    if (version !== planVersion) throw new Failure("internal", `A plan of version ${version} cannot be read`);
    const read = { address, tools: new Map(tools.map((tool) => [tool.id, tool])) };
    this.#plans.set(plan.hash, read, { size: Math.min(text.length, mcpPlansCachedCharactersMax) });
    return read;
  }
}

/** @throws Failure not_found. */
export function toolOf({ tools }: ReadPlan, toolId: string): ToolPlan {
  const tool = tools.get(toolId);
  if (tool === undefined) throw new Failure("not_found", `No tool "${toolId}"`);
  return tool;
}

export const anyObject: JsonSchema = { type: "object" };
