/**
 * OpenAPI documents as tools. Documents, schemas and parameters are handled in definition workers, never in the server: one
 * worker reads documents (started when needed), another serves calls, so that a document which takes all its time delays no
 * call. The server keeps credentials and makes the request.
 */
import { definitionWorkerIdleMs, definitionWorkerMemoryMb, documentParseMs, parametersCheckMs } from "../../limits.ts";
import type {
  Adapter,
  Definition,
  HydratedService,
  Hydration,
  PlanReference,
  ToolSchemas,
} from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher } from "../../ports/fetcher.ts";
import type { Log } from "../../ports/log.ts";
import { openSupervisedWorker, type SupervisedWorker } from "../worker/supervised-worker.ts";
import type { DefineInput, Known, LoadInput, PrepareInput, ToolInput } from "./definition-worker.ts";
import { openService } from "./openapi-service.ts";
import type { PreparedRequest, ServicePlan } from "./plan.ts";

export interface OpenApiAdapterOptions {
  readonly fetcher: Fetcher;
  readonly clock: Clock;
  readonly log: Log;
}

export async function openOpenApiAdapter(options: OpenApiAdapterOptions): Promise<Adapter> {
  return new OpenApiAdapter(options);
}

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./definition-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

/** Each round supplies something the worker lacked: plan, then check; an eviction in between costs one more. */
const supplyRoundsMax = 5;

class OpenApiAdapter implements Adapter {
  readonly id = "openapi";
  private readonly options: OpenApiAdapterOptions;
  private readonly documents: SupervisedWorker;
  private readonly calls: SupervisedWorker;

  constructor(options: OpenApiAdapterOptions) {
    this.options = options;
    const shared = { entry: workerEntry, memoryMb: definitionWorkerMemoryMb, clock: options.clock, log: options.log };
    this.documents = openSupervisedWorker({ ...shared, name: "document worker", idleMs: definitionWorkerIdleMs });
    this.calls = openSupervisedWorker({ ...shared, name: "definition worker" });
  }

  async define(document: { readonly text: string; readonly url?: string | undefined }): Promise<Definition> {
    const input: DefineInput = { text: document.text, url: document.url };
    return (await this.documents.call({
      method: "define",
      input,
      timeoutMs: documentParseMs,
      subject: "Definition document",
    })) as Definition;
  }

  async describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    const input: ToolInput = { hash: plan.hash, toolId };
    return (await this.ask(plan, {
      method: "describe",
      input,
      timeoutMs: documentParseMs,
      subject: `Description of tool "${toolId}"`,
    })) as ToolSchemas;
  }

  async hydrate(hydration: Hydration): Promise<HydratedService> {
    const { plan, serviceId } = hydration;
    const subject = `Definition of service "${serviceId}"`;
    const service = await this.ask(plan, {
      method: "service",
      input: { hash: plan.hash },
      timeoutMs: documentParseMs,
      subject,
    });
    return openService({
      service: service as ServicePlan,
      hydration,
      fetcher: this.options.fetcher,
      clock: this.options.clock,
      prepare: (toolId, parameters, signal) => this.prepare(plan, { hash: plan.hash, toolId, parameters }, signal),
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.documents.close(), this.calls.close()]);
  }

  private async prepare(plan: PlanReference, input: PrepareInput, signal: AbortSignal): Promise<PreparedRequest> {
    const subject = `Parameter check of tool "${input.toolId}"`;
    return (await this.ask(plan, {
      method: "prepare",
      input,
      timeoutMs: parametersCheckMs,
      subject,
      signal,
    })) as PreparedRequest;
  }

  /** Asks the worker that serves calls, giving it plan and compiled check when it says that it lacks them. */
  private async ask(plan: PlanReference, request: Parameters<SupervisedWorker["call"]>[0]): Promise<unknown> {
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const known = (await this.calls.call(request)) as Known<unknown>;
      if ("value" in known) return known.value;
      const input: LoadInput | ToolInput =
        known.lacks === "plan"
          ? { hash: plan.hash, plan: await plan.load() }
          : { hash: plan.hash, toolId: (request.input as ToolInput).toolId };
      const method = known.lacks === "plan" ? "load" : "compile";
      await this.calls.call({
        ...request,
        method,
        input,
        timeoutMs: documentParseMs,
        subject: `Preparing: ${request.subject}`,
      });
    }
    throw new Error(`The definition worker keeps losing plan "${plan.hash}"`);
  }
}
