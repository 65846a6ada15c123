/**
 * The server's side of the schema worker. One child reads documents (started when needed, ended when idle), another serves calls, so
 * that a document which takes all its time delays no call. The second is given a service's plan when it says that it lacks it.
 */
import { LRUCache } from "lru-cache";
import {
  definitionWorkerMemoryMb,
  documentParseMs,
  documentWorkerIdleMs,
  documentWorkerMemoryMb,
  graphqlSelectionsReadyMax,
  graphqlToolsReadyCharactersMax,
  parametersCheckMs,
} from "../../limits.ts";
import type { Definition, PlanReference, ToolSchemas } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import { untilAborted } from "../until-aborted.ts";
import { openSupervisedWorker, type SupervisedWorker, type WorkerRequest } from "../worker/supervised-worker.ts";
import type { IntrospectionAnswer } from "./introspection-answer.ts";
import type { ReadyTool, ServicePlan } from "./plan.ts";
import type {
  DocumentInput,
  IntrospectedInput,
  Known,
  LoadInput,
  PlanInput,
  ReadyInput,
  SelectInput,
  ToolInput,
} from "./schema-worker.ts";

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./schema-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

/** The first round may lack the plan; another that is loaded in between may push it out once more. */
const supplyRoundsMax = 4;

export class SchemaWorkers {
  readonly #documents: SupervisedWorker;
  readonly #calls: SupervisedWorker;
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #tools = new LRUCache<string, ReadyTool>({ maxSize: graphqlToolsReadyCharactersMax });
  readonly #selections = new LRUCache<string, string>({ max: graphqlSelectionsReadyMax });

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    const shared = { entry: workerEntry, clock: options.clock, log: options.log };
    this.#documents = openSupervisedWorker({
      ...shared,
      name: "GraphQL document worker",
      memoryMb: documentWorkerMemoryMb,
      idleMs: documentWorkerIdleMs,
    });
    this.#calls = openSupervisedWorker({ ...shared, name: "GraphQL worker", memoryMb: definitionWorkerMemoryMb });
  }

  define(input: DocumentInput): Promise<Definition> {
    return this.#read("define", input) as Promise<Definition>;
  }

  endpoint(input: DocumentInput, signal: AbortSignal): Promise<string | null> {
    return this.#read("endpoint", input, signal) as Promise<string | null>;
  }

  introspectionQueries(signal: AbortSignal): Promise<readonly string[]> {
    return this.#read("introspectionQueries", null, signal) as Promise<readonly string[]>;
  }

  introspected(input: IntrospectedInput, signal: AbortSignal): Promise<IntrospectionAnswer> {
    return this.#read("introspected", input, signal) as Promise<IntrospectionAnswer>;
  }

  service(plan: PlanReference, serviceId: string): Promise<ServicePlan> {
    const input: PlanInput = { hash: plan.hash };
    const subject = `Definition of service "${serviceId}"`;
    return this.#ask<ServicePlan>(plan, { method: "service", input, timeoutMs: documentParseMs, subject });
  }

  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    const input: ToolInput = { hash: plan.hash, toolId };
    const subject = `Description of tool "${toolId}"`;
    return this.#ask<ToolSchemas>(plan, { method: "describe", input, timeoutMs: documentParseMs, subject });
  }

  async ready(plan: PlanReference, toolId: string, depth: number): Promise<ReadyTool> {
    const key = `${plan.hash} ${depth} ${toolId}`;
    return this.#tools.get(key) ?? this.#once(`ready ${key}`, () => this.#makeReady(plan, toolId, depth, key));
  }

  /** Callers repeat themselves: what was printed once is not parsed again. */
  async select(plan: PlanReference, toolId: string, text: string, signal: AbortSignal): Promise<string> {
    const key = `${plan.hash} ${toolId} ${text}`;
    const known = this.#selections.get(key);
    if (known !== undefined) return known;
    const input: SelectInput = { hash: plan.hash, toolId, text };
    const subject = `Selection for tool "${toolId}"`;
    const timeoutMs = parametersCheckMs;
    const selection = await this.#ask<string>(plan, { method: "select", input, timeoutMs, subject, signal });
    this.#selections.set(key, selection);
    return selection;
  }

  async close(): Promise<void> {
    await Promise.all([this.#documents.close(), this.#calls.close()]);
  }

  #read(method: string, input: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.#documents.call({ method, input, timeoutMs: documentParseMs, subject: "GraphQL definition", signal });
  }

  async #ask<T>(plan: PlanReference, request: WorkerRequest): Promise<T> {
    for (let round = 0; round < supplyRoundsMax; round += 1) {
      const known = (await this.#calls.call(request)) as Known<T>;
      if ("value" in known) return known.value;
      await untilAborted(this.#load(plan), request.signal);
    }
    throw new Error(`The GraphQL worker keeps losing plan "${plan.hash}"`);
  }

  async #makeReady(plan: PlanReference, toolId: string, depth: number, key: string): Promise<ReadyTool> {
    const input: ReadyInput = { hash: plan.hash, toolId, depth };
    const subject = `Description of tool "${toolId}"`;
    const tool = await this.#ask<ReadyTool>(plan, { method: "ready", input, timeoutMs: documentParseMs, subject });
    this.#tools.set(key, tool, { size: JSON.stringify(tool).length });
    return tool;
  }

  #load(plan: PlanReference): Promise<unknown> {
    return this.#once(`load ${plan.hash}`, async () => {
      const input: LoadInput = { hash: plan.hash, plan: await plan.load() };
      return this.#calls.call({ method: "load", input, timeoutMs: documentParseMs, subject: "Plan of the service" });
    });
  }

  /** Shared by calls that wait for the same thing, so that a fresh worker does it once and not once for each of them. */
  #once<T>(key: string, start: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running) return running as Promise<T>;
    const started = start().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
