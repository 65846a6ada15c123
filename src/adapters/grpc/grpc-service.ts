/** One gRPC service made ready: its channel, configuration and credentials, and each call. Runs in the server process. */
import grpc from "@grpc/grpc-js";
import { LRUCache } from "lru-cache";
import { Failure } from "../../errors/failure.ts";
import { grpcToolsReadyMax, toolAnswerBytesMax } from "../../limits.ts";
import type { HydratedService, Hydration, Invocation } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import { untilAborted } from "../until-aborted.ts";
import { plainMetadata } from "./answer-metadata.ts";
import { callServerStream, callUnary, type RawAnswer } from "./calls.ts";
import { type Addresses, openChannel } from "./channel.ts";
import type { DescriptorWorkers } from "./descriptor-workers.ts";
import type { ReadyTool, ServicePlan } from "./plan.ts";
import { messagesMaxOf, settingsMetadata, targetOf, timeoutMsOf, tlsSecrets } from "./settings.ts";
import { isStatus, statusFailure } from "./status.ts";
import { readTarget } from "./target.ts";

export interface ServiceParts {
  readonly service: ServicePlan;
  readonly hydration: Hydration;
  readonly workers: DescriptorWorkers;
  readonly addresses: Addresses;
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
}

export type ToolResult = UnaryResult | StreamResult;

interface UnaryResult extends AnswerMetadata {
  readonly message: unknown;
}

interface StreamResult extends AnswerMetadata {
  readonly messages: readonly unknown[];
  /** False: stopped at the configured number of messages. */
  readonly complete: boolean;
}

interface AnswerMetadata {
  readonly headers: Readonly<Record<string, string>>;
  readonly trailers: Readonly<Record<string, string>>;
}

/** Throws Failure invalid_request when no call could ever leave. */
export function openService(parts: ServiceParts): HydratedService {
  return new GrpcService(parts);
}

/** A day: beyond some weeks the timers of the library overflow. */
const deadlineMsMax = 86_400_000;

/** Where the rich error model puts a google.rpc.Status. */
const detailsTrailer = "grpc-status-details-bin";

class GrpcService implements HydratedService {
  readonly #parts: ServiceParts;
  readonly #client: grpc.Client;
  readonly #metadata: grpc.Metadata;
  #callsInFlight = 0;
  #isClosed = false;
  readonly #tools = new LRUCache<string, ReadyTool>({ max: grpcToolsReadyMax });

  constructor(parts: ServiceParts) {
    const { hydration, service, addresses, clock } = parts;
    const target = targetOf(hydration.config) ?? (service.target === null ? undefined : readTarget(service.target));
    if (target === undefined) {
      const message = `Cannot tell where service "${hydration.serviceId}" is: set config "target"`;
      throw new Failure("invalid_request", message, { fields: [{ field: "target", description: "is missing" }] });
    }
    this.#parts = parts;
    this.#metadata = settingsMetadata(hydration.config, hydration.secrets);
    const tls = tlsSecrets(hydration.secrets);
    this.#client = openChannel({ target, tls, addresses, answerBytesMax: toolAnswerBytesMax, clock });
  }

  async invoke(invocation: Invocation): Promise<ToolResult> {
    if (this.#isClosed) {
      throw new Failure("unavailable", `Service "${this.#parts.hydration.serviceId}" is being made ready again`);
    }
    this.#callsInFlight += 1;
    try {
      return await this.#invoke(invocation);
    } finally {
      this.#callsInFlight -= 1;
      this.#letGo();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#letGo();
  }

  /** Calls that have begun go on, also those whose parameters are still being checked. */
  #letGo(): void {
    if (this.#isClosed && this.#callsInFlight === 0) this.#client.close();
  }

  async #invoke(invocation: Invocation): Promise<ToolResult> {
    const { toolId } = invocation;
    const { clock, hydration } = this.#parts;
    const limitMs = Math.min(invocation.timeoutMs, timeoutMsOf(hydration.config));
    const deadline = clock.now() + Math.min(limitMs, deadlineMsMax);
    const stop = new AbortController();
    const cancelTimer = clock.after(limitMs, () => stop.abort());
    const signal = AbortSignal.any([invocation.signal, stop.signal]);
    try {
      const tool = await untilAborted(this.#tool(toolId), signal);
      const request = await this.#encode(tool, invocation, signal);
      const answer = await this.#call(tool, request, deadline, signal);
      return await this.#result(tool, toolId, answer, signal);
    } catch (error) {
      if (invocation.signal.aborted) throw new Failure("cancelled", `Call of tool "${toolId}" was cancelled`);
      if (stop.signal.aborted) throw new Failure("timeout", `Tool "${toolId}" did not answer within ${limitMs} ms`);
      throw isStatus(error) ? await this.#failure(error, toolId, limitMs) : error;
    } finally {
      cancelTimer();
    }
  }

  async #tool(toolId: string): Promise<ReadyTool> {
    const known = this.#tools.get(toolId);
    if (known) return known;
    const tool = await this.#parts.workers.ready(this.#parts.hydration.plan, toolId);
    this.#tools.set(toolId, tool);
    return tool;
  }

  async #encode(tool: ReadyTool, invocation: Invocation, signal: AbortSignal): Promise<Uint8Array> {
    const { toolId } = invocation;
    const parameters = invocation.parameters ?? {};
    const { plan } = this.#parts.hydration;
    await this.#parts.parameterChecks.check({
      key: `${plan.hash} ${toolId}`,
      schema: tool.inputSchema,
      parameters,
      subject: `Parameters of tool "${toolId}"`,
      signal,
    });
    return this.#parts.workers.encode(plan, toolId, parameters, signal);
  }

  #call(tool: ReadyTool, request: Uint8Array, deadline: number, signal: AbortSignal): Promise<RawAnswer> {
    const call = { path: tool.path, request, metadata: this.#metadata, deadline, signal };
    if (tool.kind === "unary") return callUnary(this.#client, call);
    const messagesMax = messagesMaxOf(this.#parts.hydration.config);
    return callServerStream(this.#client, call, { messagesMax, bytesMax: toolAnswerBytesMax });
  }

  async #result(tool: ReadyTool, toolId: string, answer: RawAnswer, signal: AbortSignal): Promise<ToolResult> {
    const { workers, hydration } = this.#parts;
    const messages = JSON.parse(await workers.decode(hydration.plan, toolId, answer.messages, signal)) as unknown[];
    const metadata = {
      headers: plainMetadata(answer.headers, hydration.secrets),
      trailers: plainMetadata(answer.trailers, hydration.secrets),
    };
    return tool.kind === "unary"
      ? { message: messages[0], ...metadata }
      : { messages, complete: answer.complete, ...metadata };
  }

  async #failure(error: grpc.StatusObject, toolId: string, limitMs: number): Promise<Failure> {
    if (error.code === grpc.status.DEADLINE_EXCEEDED) {
      return new Failure("timeout", `Tool "${toolId}" did not answer within ${limitMs} ms`);
    }
    const { workers, hydration } = this.#parts;
    const [details] = error.metadata.get(detailsTrailer);
    // The status is known already: what cannot be read of its details is left out.
    const violations = Buffer.isBuffer(details) ? await workers.violations(details).catch(() => []) : [];
    return statusFailure(error, { toolId, secrets: hydration.secrets, violations });
  }
}
