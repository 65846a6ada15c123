/** Around an MCP adapter under test: the real parameter checks, and a shorthand from server to call. */
import { openMcpAdapter } from "../../src/adapters/mcp/mcp-adapter.ts";
import { openParameterChecks } from "../../src/adapters/parameter-checks/parameter-checks.ts";
import type { Adapter, Definition, HydratedService } from "../../src/ports/adapter.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { type LogLine, planReference, realClock, recordingLog } from "./adapter-bench.ts";
import { loopbackFetcher } from "./loopback-fetcher.ts";

type Settings = Readonly<Record<string, unknown>>;

export interface Ready {
  readonly definition: Definition;
  readonly service: HydratedService;
  call(toolId: string, parameters?: unknown, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<unknown>;
}

export interface McpBench {
  readonly adapter: Adapter;
  readonly lines: readonly LogLine[];
  discover(target: { url?: string; document?: unknown; config?: Settings; secrets?: Settings }): Promise<string>;
  /** Defined and hydrated. */
  ready(document: unknown, settings?: { config?: Settings; secrets?: Settings }): Promise<Ready>;
  close(): Promise<void>;
}

/** Ten times as fast as it should be. */
export const hurriedClock: Clock = { ...realClock, after: (delayMs, action) => realClock.after(delayMs / 10, action) };

export async function openMcpBench({
  stdioCommands = [],
  clock = realClock,
}: {
  stdioCommands?: readonly string[];
  clock?: Clock;
} = {}): Promise<McpBench> {
  const log = recordingLog();
  const parameterChecks = openParameterChecks({ clock: realClock, log });
  const adapter = await openMcpAdapter({ fetcher: loopbackFetcher, parameterChecks, stdioCommands, clock, log });
  return {
    adapter,
    lines: log.lines,
    discover: ({ url, document, config = {}, secrets = {} }) =>
      adapter.discover!({
        url,
        document: document === undefined ? undefined : asText(document),
        config,
        secrets,
        signal: new AbortController().signal,
      }),
    async ready(document, { config = {}, secrets = {} } = {}) {
      const definition = await adapter.define({ text: asText(document) });
      const service = await adapter.hydrate({ serviceId: "s", plan: planReference(definition.plan), config, secrets });
      return {
        definition,
        service,
        call: (toolId, parameters = {}, { timeoutMs = 10_000, signal = new AbortController().signal } = {}) =>
          service.invoke({ toolId, parameters, timeoutMs, signal }),
      };
    },
    async close() {
      await Promise.all([adapter.close(), parameterChecks.close()]);
    },
  };
}

function asText(document: unknown): string {
  return typeof document === "string" ? document : JSON.stringify(document);
}
