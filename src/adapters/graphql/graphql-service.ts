/** One GraphQL service made ready: its configuration and credentials, and the request of each call. Runs in the server process. */
import { Failure, isFailure } from "../../errors/failure.ts";
import { toolAnswerBytesMax } from "../../limits.ts";
import type { HydratedService, Hydration, Invocation } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher, OutboundAnswer } from "../../ports/fetcher.ts";
import type { ParameterChecks } from "../../ports/parameter-checks.ts";
import { untilAborted } from "../until-aborted.ts";
import { type ToolResult, toResult } from "./answer.ts";
import { operationText } from "./operation-text.ts";
import { type ServicePlan, selectParameter } from "./plan.ts";
import type { SchemaWorkers } from "./schema-workers.ts";
import { endpointOf, selectionDepthOf, settingsHeaders, timeoutMsOf } from "./settings.ts";

export interface ServiceParts {
  readonly service: ServicePlan;
  readonly hydration: Hydration;
  readonly workers: SchemaWorkers;
  readonly fetcher: Fetcher;
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
}

/** What is posted with every operation; the answer may come in either of GraphQL's two media types. */
const fixedHeaders = {
  accept: "application/graphql-response+json, application/json;q=0.9",
  "content-type": "application/json",
};

export function postHeaders(settings: Readonly<Record<string, string>>): Record<string, string> {
  return { ...settings, ...fixedHeaders };
}

/** Throws Failure invalid_request when no call could ever leave. */
export function openService(parts: ServiceParts): HydratedService {
  return new GraphqlService(parts);
}

class GraphqlService implements HydratedService {
  readonly #parts: ServiceParts;
  readonly #endpoint: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(parts: ServiceParts) {
    const { config, secrets, serviceId } = parts.hydration;
    const endpoint = endpointOf(config) ?? parts.service.endpoint;
    if (endpoint === null) {
      const message = `Cannot tell where service "${serviceId}" is: set config "endpoint"`;
      throw new Failure("invalid_request", message, { fields: [{ field: "endpoint", description: "is missing" }] });
    }
    this.#parts = parts;
    this.#endpoint = endpoint;
    this.#headers = postHeaders(settingsHeaders(config, secrets));
  }

  async invoke(invocation: Invocation): Promise<ToolResult> {
    const { toolId } = invocation;
    const { clock, hydration } = this.#parts;
    const limitMs = Math.min(invocation.timeoutMs, timeoutMsOf(hydration.config));
    const started = clock.monotonic();
    const tooSlow = new Failure("timeout", `Tool "${toolId}" did not answer within ${limitMs} ms`);
    const stop = new AbortController();
    const cancelTimer = clock.after(limitMs, () => stop.abort());
    const signal = AbortSignal.any([invocation.signal, stop.signal]);
    try {
      const { field, body } = await this.#prepare(invocation, signal);
      const timeoutMs = Math.max(1, limitMs - (clock.monotonic() - started));
      const answer = await this.#post(body, timeoutMs, signal).catch((error: unknown) => {
        throw explain(error, toolId, tooSlow);
      });
      return toResult(answer, field);
    } catch (error) {
      if (invocation.signal.aborted) throw new Failure("cancelled", `Call of tool "${toolId}" was cancelled`);
      throw stop.signal.aborted ? tooSlow : error;
    } finally {
      cancelTimer();
    }
  }

  async #prepare(invocation: Invocation, signal: AbortSignal): Promise<{ field: string; body: string }> {
    const { toolId } = invocation;
    const { workers, hydration, parameterChecks } = this.#parts;
    const depth = selectionDepthOf(hydration.config);
    const tool = await untilAborted(workers.ready(hydration.plan, toolId, depth), signal);
    const parameters = (invocation.parameters ?? {}) as Readonly<Record<string, unknown>>;
    await parameterChecks.check({
      key: `${hydration.plan.hash} ${depth} ${toolId}`,
      schema: tool.inputSchema,
      parameters,
      subject: `Parameters of tool "${toolId}"`,
      signal,
    });
    const wanted = Object.hasOwn(parameters, selectParameter) ? parameters[selectParameter] : undefined;
    const selection =
      typeof wanted === "string" ? await workers.select(hydration.plan, toolId, wanted, signal) : tool.selection;
    return { field: tool.field, body: JSON.stringify(operationText(tool, parameters, selection)) };
  }

  #post(body: string, timeoutMs: number, signal: AbortSignal): Promise<OutboundAnswer> {
    return this.#parts.fetcher.fetch({
      method: "POST",
      url: this.#endpoint,
      headers: this.#headers,
      body,
      redirectsMax: 0,
      bodyBytesMax: toolAnswerBytesMax,
      timeoutMs,
      signal,
    });
  }
}

/** Our own limits are named as such; everything else is already a sentence for the caller. */
function explain(error: unknown, toolId: string, tooSlow: Failure): unknown {
  if (!isFailure(error)) return error;
  if (error.kind === "timeout") return tooSlow;
  if (error.kind === "too_large")
    return new Failure("upstream_failed", `The answer of tool "${toolId}" is larger than ${toolAnswerBytesMax} bytes`);
  return error;
}
