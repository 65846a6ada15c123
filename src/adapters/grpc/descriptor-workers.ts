/**
 * The server's side of the descriptor worker, which runs three times: one child reads documents, one serves calls, one reads large answers. So
 * neither a document nor an answer that takes all its time delays other calls. The first and the last are there only while needed.
 */
import { Failure, isFailure } from "../../errors/failure.ts";
import {
  definitionWorkerMemoryMb,
  documentParseMs,
  documentWorkerIdleMs,
  documentWorkerMemoryMb,
  grpcDecodeMs,
  grpcSmallAnswerBytesMax,
  parametersCheckMs,
} from "../../limits.ts";
import type { Definition, PlanReference, ToolSchemas } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import { openSupervisedWorker, type SupervisedWorker } from "../worker/supervised-worker.ts";
import type {
  BytesInput,
  DecodeInput,
  DocumentHead,
  DocumentInput,
  EncodeInput,
  PlanInput,
  ToolInput,
} from "./descriptor-worker.ts";
import type { ReadyTool, ServicePlan } from "./plan.ts";
import { PlannedWorker } from "./planned-worker.ts";
import type { Reflected } from "./reflected.ts";
import type { FieldViolation } from "./status-details.ts";

/** The extension follows this file's own, so that the built package starts its built worker. */
const workerEntry = new URL(
  `./descriptor-worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
);

export class DescriptorWorkers {
  readonly #documents: SupervisedWorker;
  readonly #calls: PlannedWorker;
  readonly #largeAnswers: PlannedWorker;

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    const shared = { entry: workerEntry, clock: options.clock, log: options.log };
    const passing = { ...shared, memoryMb: documentWorkerMemoryMb, idleMs: documentWorkerIdleMs };
    const lasting = { ...shared, memoryMb: definitionWorkerMemoryMb };
    this.#documents = openSupervisedWorker({ ...passing, name: "gRPC document worker" });
    this.#calls = new PlannedWorker(openSupervisedWorker({ ...lasting, name: "gRPC worker" }));
    this.#largeAnswers = new PlannedWorker(openSupervisedWorker({ ...passing, name: "gRPC answer worker" }));
  }

  define(input: DocumentInput): Promise<Definition> {
    return this.#read("define", input) as Promise<Definition>;
  }

  head(input: DocumentInput, signal: AbortSignal): Promise<DocumentHead> {
    return this.#read("head", input, signal) as Promise<DocumentHead>;
  }

  reflected(bytes: Uint8Array, signal: AbortSignal): Promise<Reflected> {
    const input: BytesInput = { bytes };
    return this.#read("reflected", input, signal) as Promise<Reflected>;
  }

  service(plan: PlanReference, serviceId: string): Promise<ServicePlan> {
    const input: PlanInput = { hash: plan.hash };
    const subject = `Definition of service "${serviceId}"`;
    return this.#calls.ask<ServicePlan>(plan, { method: "service", input, timeoutMs: documentParseMs, subject });
  }

  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas> {
    const input: ToolInput = { hash: plan.hash, toolId };
    const subject = `Description of tool "${toolId}"`;
    return this.#calls.ask<ToolSchemas>(plan, { method: "describe", input, timeoutMs: documentParseMs, subject });
  }

  ready(plan: PlanReference, toolId: string): Promise<ReadyTool> {
    const input: ToolInput = { hash: plan.hash, toolId };
    const subject = `Description of tool "${toolId}"`;
    return this.#calls.ask<ReadyTool>(plan, { method: "ready", input, timeoutMs: documentParseMs, subject });
  }

  encode(plan: PlanReference, toolId: string, parameters: unknown, signal: AbortSignal): Promise<Uint8Array> {
    const input: EncodeInput = { hash: plan.hash, toolId, parameters };
    const subject = `Parameters of tool "${toolId}"`;
    return this.#calls.ask<Uint8Array>(plan, {
      method: "encode",
      input,
      timeoutMs: parametersCheckMs,
      subject,
      signal,
    });
  }

  /** JSON text of a list, one value for each message. */
  async decode(
    plan: PlanReference,
    toolId: string,
    messages: readonly Uint8Array[],
    signal: AbortSignal,
  ): Promise<string> {
    const input: DecodeInput = { hash: plan.hash, toolId, messages };
    const subject = `The answer of tool "${toolId}"`;
    const bytes = messages.reduce((sum, message) => sum + message.byteLength, 0);
    const worker = bytes > grpcSmallAnswerBytesMax ? this.#largeAnswers : this.#calls;
    try {
      return await worker.ask<string>(plan, { method: "decode", input, timeoutMs: grpcDecodeMs, subject, signal });
    } catch (error) {
      // The worker died of it, or could not be given it: not the caller's fault, who sent nothing of it.
      if (isFailure(error) && error.kind === "invalid_request") throw new Failure("upstream_failed", error.message);
      throw error;
    }
  }

  async violations(bytes: Uint8Array): Promise<readonly FieldViolation[]> {
    const input: BytesInput = { bytes };
    const subject = "Details of an error";
    const request = { method: "violations", input, timeoutMs: parametersCheckMs, subject };
    return (await this.#calls.worker.call(request)) as readonly FieldViolation[];
  }

  async close(): Promise<void> {
    await Promise.all([this.#documents.close(), this.#calls.worker.close(), this.#largeAnswers.worker.close()]);
  }

  #read(method: string, input: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.#documents.call({ method, input, timeoutMs: documentParseMs, subject: "gRPC definition", signal });
  }
}
