/** Plans of services on third-party adapters, read from their text: our own JSON, kept parsed while it is used. */
import { LRUCache } from "lru-cache";
import { modulePlansCachedCharactersMax } from "../limits.ts";
import type { PlanReference, ToolSchemas } from "../ports/adapter.ts";
import type { PlanContents } from "./definition-check.ts";

export interface Plan {
  schemasOf(toolId: string): ToolSchemas | undefined;
  readonly plan: unknown;
}

export class PlanCache {
  readonly #plans = new LRUCache<string, Plan>({ maxSize: modulePlansCachedCharactersMax });

  async read({ hash, load }: PlanReference): Promise<Plan> {
    const known = this.#plans.get(hash);
    if (known !== undefined) return known;
    const text = await load();
    const { tools, plan } = JSON.parse(text) as PlanContents;
    const read: Plan = {
      schemasOf: (toolId) => (Object.hasOwn(tools, toolId) ? tools[toolId] : undefined),
      plan,
    };
    this.#plans.set(hash, read, { size: text.length });
    return read;
  }
}
