/**
 * GraphQL schemas as tools: one for each field of the query and mutation types. Schemas and selections are handled in schema
 * workers, parameters by the shared checks, neither of them in the server, which keeps credentials and makes the request.
 */
import type {
  Adapter,
  Definition,
  DiscoveryTarget,
  HydratedService,
  Hydration,
  PlanReference,
  ToolSchemas,
} from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher } from "../../ports/fetcher.ts";
import type { Log } from "../../ports/log.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import { discoverSchema } from "./discovery.ts";
import { openService } from "./graphql-service.ts";
import { SchemaWorkers } from "./schema-workers.ts";

export interface GraphqlAdapterOptions {
  readonly fetcher: Fetcher;
  /** Whoever opened them closes them. */
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openGraphqlAdapter(options: GraphqlAdapterOptions): Promise<Adapter> {
  return new GraphqlAdapter(options);
}

class GraphqlAdapter implements Adapter {
  readonly id = "graphql";
  readonly #options: GraphqlAdapterOptions;
  readonly #workers: SchemaWorkers;

  constructor(options: GraphqlAdapterOptions) {
    this.#options = options;
    this.#workers = new SchemaWorkers(options);
  }

  define(document: { readonly text: string; readonly url?: string | undefined }): Promise<Definition> {
    return this.#workers.define({ text: document.text, url: document.url });
  }

  discover(target: DiscoveryTarget): Promise<string> {
    const { fetcher, clock } = this.#options;
    return discoverSchema({ workers: this.#workers, fetcher, clock }, target);
  }

  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    return this.#workers.describe(plan, toolId);
  }

  async hydrate(hydration: Hydration): Promise<HydratedService> {
    const service = await this.#workers.service(hydration.plan, hydration.serviceId);
    const { fetcher, parameterChecks, clock } = this.#options;
    return openService({ service, hydration, workers: this.#workers, fetcher, parameterChecks, clock });
  }

  async close(): Promise<void> {
    await this.#workers.close();
  }
}
