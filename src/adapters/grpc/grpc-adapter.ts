/**
 * gRPC services as tools: one for each unary and server-streaming method. Descriptors and messages are read and written in descriptor
 * workers, parameters checked by the shared checks; the server keeps credentials and connections, and moves bytes.
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
import type { Log } from "../../ports/log.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import type { Addresses } from "./channel.ts";
import { DescriptorWorkers } from "./descriptor-workers.ts";
import { discoverServices } from "./discovery.ts";
import { openService } from "./grpc-service.ts";

export interface GrpcAdapterOptions {
  /** Judges every address before it is dialled. */
  readonly addresses: Addresses;
  /** Whoever opened them closes them. */
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openGrpcAdapter(options: GrpcAdapterOptions): Promise<Adapter> {
  return new GrpcAdapter(options);
}

class GrpcAdapter implements Adapter {
  readonly id = "grpc";
  readonly #options: GrpcAdapterOptions;
  readonly #workers: DescriptorWorkers;

  constructor(options: GrpcAdapterOptions) {
    this.#options = options;
    this.#workers = new DescriptorWorkers(options);
  }

  define(document: { readonly text: string; readonly url?: string | undefined }): Promise<Definition> {
    return this.#workers.define({ text: document.text });
  }

  discover(target: DiscoveryTarget): Promise<string> {
    const { addresses, clock, log } = this.#options;
    return discoverServices({ workers: this.#workers, addresses, clock, log }, target);
  }

  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    return this.#workers.describe(plan, toolId);
  }

  async hydrate(hydration: Hydration): Promise<HydratedService> {
    const service = await this.#workers.service(hydration.plan, hydration.serviceId);
    const { addresses, parameterChecks, clock } = this.#options;
    return openService({ service, hydration, workers: this.#workers, addresses, parameterChecks, clock });
  }

  async close(): Promise<void> {
    await this.#workers.close();
  }
}
