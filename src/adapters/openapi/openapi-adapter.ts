/**
 * OpenAPI documents as tools. Documents, schemas and parameters are handled in definition workers, never in the server: one
 * worker reads documents (started when needed), another serves calls, so that a document which takes all its time delays no
 * call. The server keeps credentials and makes the request.
 */
import {
  definitionWorkerMemoryMb,
  documentParseMs,
  documentWorkerIdleMs,
  documentWorkerMemoryMb,
  parametersCheckMs,
} from "../../limits.ts";
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
import { untilAborted } from "../until-aborted.ts";
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
  private readonly supplies = new Map<string, Promise<unknown>>();

  constructor(options: OpenApiAdapterOptions) {
    this.options = options;
    const shared = { entry: workerEntry, clock: options.clock, log: options.log };
    this.documents = openSupervisedWorker({
      ...shared,
      name: "document worker",
      memoryMb: documentWorkerMemoryMb,
      idleMs: documentWorkerIdleMs,
    });
    this.calls = openSupervisedWorker({ ...shared, name: "definition worker", memoryMb: definitionWorkerMemoryMb });
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

  /** Shared by calls that wait for the same thing, so that a fresh worker gets a large plan once and not once for each of them. */
  private supply(plan: PlanReference, lacks: "plan" | "check", toolId: string): Promise<unknown> {
    const key = lacks === "plan" ? plan.hash : `${plan.hash} ${toolId}`;
    const running = this.supplies.get(key);
    if (running) return running;
    const started = this.startSupply(plan, lacks, toolId).finally(() => this.supplies.delete(key));
    this.supplies.set(key, started);
    return started;
  }

  private async startSupply(plan: PlanReference, lacks: "plan" | "check", toolId: string): Promise<unknown> {
    const timeoutMs = documentParseMs;
    if (lacks === "check") {
      const input: ToolInput = { hash: plan.hash, toolId };
      return this.calls.call({ method: "compile", input, timeoutMs, subject: `Input schema of tool "${toolId}"` });
    }
    const input: LoadInput = { hash: plan.hash, plan: await plan.load() };
    return this.calls.call({ method: "load", input, timeoutMs, subject: "Plan of the service" });
  }

  /** Asks the worker that serves calls, giving it plan and compiled check when it says that it lacks them. */
  private async ask(plan: PlanReference, request: Parameters<SupervisedWorker["call"]>[0]): Promise<unknown> {
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const known = (await this.calls.call(request)) as Known<unknown>;
      if ("value" in known) return known.value;
      const { toolId = "" } = request.input as Partial<ToolInput>;
      await untilAborted(this.supply(plan, known.lacks, toolId), request.signal);
    }
    throw new Error(`The definition worker keeps losing plan "${plan.hash}"`);
  }
}
