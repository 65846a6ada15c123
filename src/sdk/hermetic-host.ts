/**
 * A module host as the server has it, with nothing behind it: the module's requests are answered by its author's function. Where the
 * machine cannot keep modules apart, it runs without: it is the author's own code on the author's own machine.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import { describeProblems, validate } from "../json/schema.ts";
import { openModuleHost } from "../module-host/module-host.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetcher, OutboundAnswer, OutboundRequest } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { ModuleHost } from "../ports/module-host.ts";
import type { ParameterChecks } from "../ports/parameter-checks.ts";
import type { ModuleSamples } from "./samples.ts";

export function openHermeticHost(samples: ModuleSamples, timeoutMs: number): Promise<ModuleHost> {
  const fetcher: Fetcher = { fetch: (request) => answered(samples, request), close: async () => {} };
  const options = { fetcher, parameterChecks, clock, log: silence, unsandboxed: true };
  return openModuleHost({ ...options, toolTimeoutMs: timeoutMs, startMs: timeoutMs, unresponsiveMs: timeoutMs });
}

const silence: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** In this process: schemas and samples are the author's own. */
const parameterChecks: ParameterChecks = {
  check: async ({ schema, parameters, subject }) => {
    const problems = validate(schema, parameters);
    if (problems.length > 0) throw new Failure("invalid_request", `${subject}: ${describeProblems(problems)}`);
  },
  close: async () => {},
};

const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, action) => {
    // Above 2^31 a timer fires at once; nothing here waits so long.
    const timer = setTimeout(action, Math.min(delayMs, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

async function answered(samples: ModuleSamples, request: OutboundRequest): Promise<OutboundAnswer> {
  const { url, method, headers, body, redirectsMax, timeoutMs } = request;
  if (samples.fetch === undefined) {
    throw new Failure("upstream_failed", `Cannot fetch "${url}": the samples have no function "fetch"`);
  }
  try {
    const given = { url, method, headers, redirectsMax, timeoutMs, ...(body === undefined ? {} : { body }) };
    const answer = await samples.fetch(given);
    return { url, status: answer.status ?? 200, headers: answer.headers ?? {}, body: Buffer.from(answer.body ?? "") };
  } catch (error) {
    if (isFailure(error)) throw error;
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    throw new Failure(code === "timeout" || code === "too_large" ? code : "upstream_failed", String(message));
  }
}
