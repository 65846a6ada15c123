/** Everything a test of an adapter needs around it: clock, log, plans kept in memory, and a shorthand from document to call. */
import { createHash } from "node:crypto";
import { openOpenApiAdapter } from "../../src/adapters/openapi/openapi-adapter.ts";
import type { Adapter, Definition, PlanReference } from "../../src/ports/adapter.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Log } from "../../src/ports/log.ts";
import { loopbackFetcher } from "./loopback-fetcher.ts";

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, Math.min(delayMs, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly message: string;
}

export function recordingLog(): Log & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (event: string, message: string) => void lines.push({ level, event, message });
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export function openTestAdapter(log: Log = recordingLog()): Promise<Adapter> {
  return openOpenApiAdapter({ fetcher: loopbackFetcher, clock: realClock, log });
}

export function planReference(plan: string): PlanReference & { readonly loads: () => number } {
  let loads = 0;
  return {
    hash: createHash("sha256").update(plan).digest("hex"),
    load: async () => {
      loads += 1;
      return plan;
    },
    loads: () => loads,
  };
}

export interface CallSettings {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly secrets?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type Call = (toolId: string, parameters?: unknown, settings?: CallSettings) => Promise<unknown>;

/** `document` is an object (sent as JSON) or text. */
export async function defined(
  adapter: Adapter,
  document: unknown,
  url?: string,
): Promise<{ readonly definition: Definition; readonly plan: PlanReference; readonly call: Call }> {
  const text = typeof document === "string" ? document : JSON.stringify(document);
  const definition = await adapter.define({ text, url });
  const plan = planReference(definition.plan);
  const call: Call = async (toolId, parameters, settings = {}) => {
    const service = await adapter.hydrate({
      serviceId: "s",
      plan,
      config: settings.config ?? {},
      secrets: settings.secrets ?? {},
    });
    const signal = settings.signal ?? new AbortController().signal;
    return service.invoke({ toolId, parameters, timeoutMs: settings.timeoutMs ?? 30_000, signal });
  };
  return { definition, plan, call };
}

/** Longest time the event loop was held since the call, milliseconds. */
export function measureLongestTurn(): () => number {
  let last = performance.now();
  let longest = 0;
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 10);
  return () => {
    clearInterval(timer);
    return longest;
  };
}
