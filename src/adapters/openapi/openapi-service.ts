/** One service made ready: its configuration and credentials, and the request of each call. Runs in the server process. */
import { Failure, isFailure } from "../../errors/failure.ts";
import { toolAnswerBytesMax } from "../../limits.ts";
import type { HydratedService, Hydration, Invocation } from "../../ports/adapter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher, OutboundRequest } from "../../ports/fetcher.ts";
import { withoutCredentials } from "../masking.ts";
import { type ToolResult, toResult } from "./answer.ts";
import type { PreparedRequest, ServicePlan } from "./plan.ts";
import { attachCredentials, checkSecrets } from "./security.ts";
import { baseUrl } from "./servers.ts";
import { timeoutMsDefault } from "./settings-schemas.ts";

export interface ServiceParts {
  readonly service: ServicePlan;
  readonly hydration: Hydration;
  readonly fetcher: Fetcher;
  readonly clock: Clock;
  prepare(toolId: string, parameters: unknown, signal: AbortSignal): Promise<PreparedRequest>;
}

/** Throws Failure invalid_request when no call could ever leave. */
export function openService(parts: ServiceParts): HydratedService {
  const { service, hydration } = parts;
  const configured = hydration.config.serverUrl !== undefined;
  if (configured || !service.serversUnused)
    baseUrl(service.servers, { documentUrl: service.documentUrl, config: hydration.config });
  checkSecrets({ schemes: service.schemes, secrets: hydration.secrets });
  return { invoke: (invocation) => invoke(parts, invocation) };
}

async function invoke(parts: ServiceParts, invocation: Invocation): Promise<ToolResult> {
  const { toolId, parameters } = invocation;
  const limitMs = Math.min(invocation.timeoutMs, configuredTimeoutMs(parts.hydration.config));
  const started = parts.clock.monotonic();
  const tooSlow = new Failure("timeout", `Tool "${toolId}" did not answer within ${limitMs} ms`);
  const stop = new AbortController();
  const cancelTimer = parts.clock.after(limitMs, () => stop.abort());
  const signal = AbortSignal.any([invocation.signal, stop.signal]);
  try {
    const prepared = await parts.prepare(toolId, parameters, signal);
    const timeoutMs = Math.max(1, limitMs - (parts.clock.monotonic() - started));
    const request = outbound(parts, prepared, timeoutMs, signal);
    const answer = await parts.fetcher.fetch(request).catch((error: unknown) => {
      throw explain(error, toolId, tooSlow);
    });
    return toResult({ ...answer, headers: withoutCredentials(answer.headers, parts.hydration.secrets) });
  } catch (error) {
    if (invocation.signal.aborted) throw new Failure("cancelled", `Call of tool "${toolId}" was cancelled`);
    throw stop.signal.aborted ? tooSlow : error;
  } finally {
    cancelTimer();
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

function configuredTimeoutMs(config: Hydration["config"]): number {
  const configured = config.timeoutMs;
  return typeof configured === "number" && configured > 0 ? configured : timeoutMsDefault;
}

function outbound(
  parts: ServiceParts,
  prepared: PreparedRequest,
  timeoutMs: number,
  signal: AbortSignal,
): OutboundRequest {
  const { service, hydration } = parts;
  const { documentUrl, schemes } = service;
  const base = baseUrl(prepared.servers ?? service.servers, { documentUrl, config: hydration.config });
  const url = new URL(`${base}${prepared.path}${prepared.query === "" ? "" : `?${prepared.query}`}`);
  const plain = { url: url.href, headers: prepared.headers };
  const request = attachCredentials(plain, new URL(base).origin, prepared, {
    schemes,
    secrets: hydration.secrets,
  });
  return {
    method: prepared.method,
    ...request,
    body: prepared.body,
    redirectsMax: 0,
    bodyBytesMax: toolAnswerBytesMax,
    timeoutMs,
    signal,
  };
}
