/** The modules that come with the server: what their records say, and how each is opened. A new built-in is added here. */
import { readFileSync } from "node:fs";
import { openGraphqlAdapter } from "../adapters/graphql/graphql-adapter.ts";
import { openGrpcAdapter } from "../adapters/grpc/grpc-adapter.ts";
import { openMcpAdapter } from "../adapters/mcp/mcp-adapter.ts";
import { openOpenApiAdapter } from "../adapters/openapi/openapi-adapter.ts";
import type { Settings } from "../config.ts";
import { javascriptEnvironment } from "../environments/javascript/environment.ts";
import type { EnvironmentBounds } from "../environments/javascript/environment-docs.ts";
import { pythonDocs } from "../environments/python/python-docs.ts";
import { pythonToolDocs } from "../environments/python/python-tool-docs.ts";
import { withLowerLimits } from "../executor/limited.ts";
import { openPortableExecutor } from "../executor/portable/portable-executor.ts";
import { pythonUnavailable } from "../executor/python/availability.ts";
import { openPythonExecutor } from "../executor/python/python-executor.ts";
import type { JsonSchema } from "../ports/adapter.ts";
import type { BuiltinModule, BuiltinSettings } from "../ports/builtin-module.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher, Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { ParameterChecks } from "../ports/parameter-checks.ts";

export interface BuiltinParts {
  readonly settings: Settings;
  readonly fetcher: Fetcher & Pick<CredentialedFetcher, "approve">;
  readonly parameterChecks: ParameterChecks;
  readonly clock: Clock;
  readonly log: Log;
}

/** Of package.json: what `engines` of packages are held against. */
export const serverVersion = readVersion();

const nothing: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

export async function builtinModules(parts: BuiltinParts): Promise<readonly BuiltinModule[]> {
  const { settings, fetcher, parameterChecks, clock, log } = parts;
  const bounds: EnvironmentBounds = {
    timeoutMs: settings.SERVICE_PROCESS_TIMEOUT_MS,
    memoryMb: settings.SERVICE_PROCESS_MEMORY_MB,
    outputBytes: settings.SERVICE_PROCESS_OUTPUT_BYTES,
    toolTimeoutMs: settings.SERVICE_TOOL_TIMEOUT_MS,
  };
  const executorParts = {
    memoryMbMax: settings.SERVICE_PROCESS_MEMORY_MB,
    concurrency: settings.SERVICE_PROCESS_CONCURRENCY,
    clock,
    log,
  };
  const plain = { version: serverVersion, missing: null, secretsSchema: nothing };
  const adapter = { ...plain, type: "adapter", enabledAtFirst: true, configSchema: nothing } as const;
  const environment = { ...plain, type: "environment", configSchema: limitsSchema(settings) } as const;
  return [
    {
      ...adapter,
      id: "openapi",
      name: "OpenAPI",
      description: "Operations of HTTP APIs that are described by OpenAPI 3 or Swagger 2 documents",
      open: () => openOpenApiAdapter({ fetcher, clock, log }),
    },
    {
      ...adapter,
      id: "graphql",
      name: "GraphQL",
      description: "Queries and mutations of GraphQL services, by introspection or from their schema",
      open: () => openGraphqlAdapter({ fetcher, parameterChecks, clock, log }),
    },
    {
      ...adapter,
      id: "grpc",
      name: "gRPC",
      description: "Unary and server-streaming methods of gRPC servers, by reflection or from a descriptor set",
      open: async () => openGrpcAdapter({ addresses: fetcher, parameterChecks, clock, log }),
    },
    {
      ...adapter,
      id: "mcp",
      name: "MCP",
      description: "Tools of MCP servers, over streamable HTTP or, where a setting allows the command, stdio",
      open: async () =>
        openMcpAdapter({
          fetcher,
          parameterChecks,
          stdioCommands: settings.SERVICE_MCP_STDIO_COMMANDS,
          version: serverVersion,
          clock,
          log,
        }),
    },
    {
      ...environment,
      id: "javascript",
      name: "JavaScript",
      description: "JavaScript and TypeScript programs, each run in a fresh context of its own",
      enabledAtFirst: true,
      open: async (given) => {
        const lower = lowerLimits(given);
        const executor = withLowerLimits(await openPortableExecutor(executorParts), lower);
        return javascriptEnvironment({ ...bounds, memoryMb: lower.memoryMb ?? bounds.memoryMb }, executor);
      },
    },
    {
      ...environment,
      id: "python",
      name: "Python",
      description: "Python programs, each in a process of its own under bubblewrap",
      enabledAtFirst: false,
      missing: await pythonUnavailable(),
      open: async (given) => {
        const lower = lowerLimits(given);
        const executor = withLowerLimits(await openPythonExecutor(executorParts), lower);
        const docs = pythonDocs({ ...bounds, memoryMb: lower.memoryMb ?? bounds.memoryMb });
        return {
          id: "python",
          docs: async () => docs,
          toolDocs: async (tool) => pythonToolDocs(tool),
          executor,
          close: () => executor.close(),
        };
      },
    },
  ];
}

/** Configuration of an environment: lower limits than the settings'. */
function limitsSchema({ SERVICE_PROCESS_MEMORY_MB }: Settings): JsonSchema {
  return {
    type: "object",
    properties: {
      memoryMb: {
        type: "integer",
        minimum: 16,
        maximum: SERVICE_PROCESS_MEMORY_MB,
        description: "Memory of one run, MB",
      },
      cpuMs: { type: "integer", minimum: 1, description: "Processor time of one run, milliseconds" },
    },
    additionalProperties: false,
  };
}

function lowerLimits({ config }: BuiltinSettings): { memoryMb?: number; cpuMs?: number } {
  return config as { memoryMb?: number; cpuMs?: number };
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}
