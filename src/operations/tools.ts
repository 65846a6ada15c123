/** Operations on tools, and what agents read to call them. */
import { z } from "zod";
import { isToolEnabled, type ServiceState } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import { withinField } from "../errors/field-at-fault.ts";
import type { Adapters, JsonSchema, ToolSummary } from "../ports/adapter.ts";
import type { Environment } from "../ports/environment.ts";
import type { Catalogue } from "./catalogue.ts";
import type { CallContext, Operation } from "./operation.ts";
import { decodeCursor, encodeCursor, type Page } from "./page.ts";
import { findService, type ServiceActors } from "./service-actors.ts";
import { isEffectivelyEnabled } from "./services.ts";
import { cursor, flag, page, pageLimit, schemaShape, serviceIdField, text } from "./shapes.ts";
import type { ToolCalls } from "./tool-calls.ts";
import { queryWords, score } from "./tool-search.ts";

export interface ToolOperationsOptions {
  readonly services: ServiceActors;
  readonly catalogue: Catalogue;
  readonly adapters: Adapters;
  readonly toolCalls: ToolCalls;
  /** Throws Failure unavailable when none is active. */
  readonly environment: () => Environment;
  readonly toolTimeoutMs: number;
}

const toolShape = z
  .object({
    serviceId: z.string().meta({ description: "Service it belongs to", example: "petstore" }),
    id: z.string().meta({ description: "Identifier within the service", example: "listPets" }),
    name: z.string().meta({ description: "Name to show", example: "listPets" }),
    summary: z.string().meta({ description: "One line on what it does", example: "List pets" }),
    description: z.string().meta({ description: "What it does", example: "Pets by tag, newest first" }),
    enabled: z.boolean().meta({ description: "Whether it may be called", example: true }),
    effectivelyEnabled: z.boolean().meta({ description: "It can be called now", example: true }),
  })
  .meta({ id: "Tool", description: "One thing a service can be asked to do" });

type ToolRecord = z.infer<typeof toolShape>;

const toolDetail = toolShape
  .extend({ inputSchema: schemaShape, outputSchema: schemaShape })
  .meta({ id: "ToolDetail", description: "A tool with the schemas of its parameters and its result" });
const toolIdField = z.string().min(1).meta({ description: "Id of the tool", example: "listPets" });
const byTool = z.object({ serviceId: serviceIdField, toolId: toolIdField });
const enabledInput = byTool.extend({ enabled: z.boolean() });
const invokeInput = byTool.extend({
  parameters: z
    .unknown()
    .optional()
    .meta({ description: "What the tool's inputSchema asks for", example: { query: { tags: ["calm"] } } }),
});

const listInput = z.object({
  serviceId: z.string().min(1).optional().describe("Only tools of this service"),
  query: text().optional().describe("Words to rank by: name, summary, description and parameter names are searched"),
  enabled: flag.optional().describe("Only tools that are, or are not, enabled"),
  cursor,
  limit: pageLimit,
});

type ListInput = z.infer<typeof listInput>;

interface Found {
  readonly service: ServiceState;
  readonly tool: ToolSummary;
}

/** Services read from the store at once while tools are listed. */
const servicesAtOnce = 100;

export function toolOperations(options: ToolOperationsOptions): readonly Operation[] {
  const { services, catalogue, adapters, toolCalls, environment, toolTimeoutMs } = options;
  const rpcService = "ToolService";

  function toRecord({ service, tool }: Found): ToolRecord {
    const { id, name, summary, description } = tool;
    const enabled = isToolEnabled(service, id);
    return {
      serviceId: service.id,
      id,
      name,
      summary,
      description,
      enabled,
      effectivelyEnabled: enabled && isEffectivelyEnabled(service, adapters),
    };
  }

  async function find(serviceId: string, toolId: string): Promise<Found> {
    const service = await findService(services, serviceId);
    const tool = (await catalogue.toolsOf(service)).get(toolId);
    if (tool === undefined) throw new Failure("not_found", `Service "${serviceId}" has no tool "${toolId}"`);
    return { service, tool };
  }

  async function describe({ service, tool }: Found): Promise<{ inputSchema: JsonSchema; outputSchema: JsonSchema }> {
    const adapter = adapters.get(service.adapter);
    if (adapter === undefined) throw new Failure("unavailable", `Adapter "${service.adapter}" is missing or disabled`);
    const plan = {
      hash: service.planHash,
      load: async () => {
        const plan = await services.blob(service.id, "plan");
        // Between reading its record and this, somebody has deleted it.
        if (plan === undefined) throw new Failure("not_found", `There is no service "${service.id}"`);
        return plan;
      },
    };
    return adapter.describe(plan, tool.id);
  }

  /** Services from `from` on, in ascending order of id. */
  async function* servicesFrom(from: string | undefined): AsyncGenerator<ServiceState> {
    if (from !== undefined) {
      const { state } = await services.query(from);
      if (state !== null) yield state;
    }
    let after = from;
    for (;;) {
      const { items, next } = await services.list("id", after, servicesAtOnce);
      for (const { state } of items) yield state;
      if (next === undefined) return;
      after = next;
    }
  }

  /** By service id, then tool id. */
  async function listInOrder(input: ListInput): Promise<Page<ToolRecord>> {
    const [serviceId, toolId] = input.cursor === undefined ? [] : decodeCursor(input.cursor, ["string", "string"]);
    const only = input.serviceId === undefined ? undefined : [await findService(services, input.serviceId)];
    const records: ToolRecord[] = [];
    for await (const service of only ?? servicesFrom(serviceId as string | undefined)) {
      for (const tool of (await catalogue.toolsOf(service)).values()) {
        if (service.id === serviceId && tool.id <= String(toolId)) continue;
        const record = toRecord({ service, tool });
        if (input.enabled !== undefined && record.enabled !== input.enabled) continue;
        const last = records.at(-1);
        if (last !== undefined && records.length === input.limit) {
          return { items: records, nextCursor: encodeCursor([last.serviceId, last.id]), hasMore: true };
        }
        records.push(record);
      }
    }
    return { items: records, nextCursor: null, hasMore: false };
  }

  /** By how well they match, then by service id and tool id. */
  async function listRanked(input: ListInput, words: readonly string[]): Promise<Page<ToolRecord>> {
    const after = input.cursor === undefined ? undefined : decodeCursor(input.cursor, ["number", "string", "string"]);
    const only = input.serviceId === undefined ? undefined : [await findService(services, input.serviceId)];
    const ranked: { rank: readonly (string | number)[]; found: Found }[] = [];
    for await (const service of only ?? servicesFrom(undefined)) {
      for (const tool of (await catalogue.toolsOf(service)).values()) {
        if (input.enabled !== undefined && isToolEnabled(service, tool.id) !== input.enabled) continue;
        const points = score(tool, words);
        if (points > 0) ranked.push({ rank: [-points, service.id, tool.id], found: { service, tool } });
      }
    }
    ranked.sort((a, b) => compare(a.rank, b.rank));
    const rest = after === undefined ? ranked : ranked.filter(({ rank }) => compare(rank, after) > 0);
    const kept = rest.slice(0, input.limit);
    const last = kept.at(-1);
    const hasMore = rest.length > kept.length && last !== undefined;
    return {
      items: kept.map(({ found }) => toRecord(found)),
      nextCursor: hasMore ? encodeCursor(last.rank) : null,
      hasMore,
    };
  }

  const list: Operation<ListInput, Page<ToolRecord>> = {
    name: "listTools",
    summary: "List tools by service and id; with query, the best matches first",
    rpcService,
    route: {
      method: "GET",
      path: "/tools",
      query: ["serviceId", "query", "enabled", "cursor", "limit"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: listInput,
    output: page(toolShape),
    failures: ["not_found"],
    run: (input) => {
      const words = queryWords(input.query ?? "");
      return words.length === 0 ? listInOrder(input) : listRanked(input, words);
    },
  };

  const get: Operation<z.infer<typeof byTool>, { tool: z.infer<typeof toolDetail> }> = {
    name: "getTool",
    summary: "Read a tool with its schemas",
    rpcService,
    route: {
      method: "GET",
      path: "/tools/{serviceId}/{toolId}",
      body: "none",
      status: 200,
      answer: { field: "tool", mediaType: "application/json" },
    },
    role: "agent",
    input: byTool,
    output: z.object({ tool: toolDetail }),
    failures: ["upstream_failed"],
    run: async ({ serviceId, toolId }) => {
      const found = await find(serviceId, toolId);
      const schemas = await describe(found);
      return { tool: { ...toRecord(found), ...(schemas as z.infer<typeof toolDetail>) } };
    },
  };

  const docs: Operation<z.infer<typeof byTool>, { docs: string }> = {
    name: "getToolDocs",
    summary: "Read how to call a tool from process code",
    rpcService,
    route: {
      method: "GET",
      path: "/tools/{serviceId}/{toolId}/docs",
      body: "none",
      status: 200,
      answer: { field: "docs", mediaType: "text/markdown" },
    },
    role: "agent",
    input: byTool,
    output: z.object({ docs: z.string().meta({ example: "# petstore.listPets\n" }) }),
    failures: ["upstream_failed"],
    run: async ({ serviceId, toolId }) => {
      const found = await find(serviceId, toolId);
      const { id, name, summary, description } = found.tool;
      const documented = { serviceId, id, name, summary, description, ...(await describe(found)) };
      return { docs: await environment().toolDocs(documented) };
    },
  };

  const setEnabled: Operation<z.infer<typeof enabledInput>, { serviceId: string; id: string; enabled: boolean }> = {
    name: "setToolEnabled",
    summary: "Allow or forbid calls of a tool",
    rpcService,
    route: { method: "POST", path: "/tools/{serviceId}/{toolId}/enabled", body: "fields", status: 200 },
    role: "operator",
    input: enabledInput,
    output: z.object({ serviceId: serviceIdField, id: toolIdField, enabled: z.boolean() }),
    run: async ({ serviceId, toolId, enabled }, context) => {
      await find(serviceId, toolId);
      await services.ask(serviceId, { type: "setToolEnabled", toolId, enabled }, { deadline: context.deadline });
      return { serviceId, id: toolId, enabled };
    },
  };

  const invoke: Operation<z.infer<typeof invokeInput>, { result: unknown }> = {
    name: "invokeTool",
    summary: "Call a tool and answer its result",
    rpcService,
    route: { method: "POST", path: "/tools/{serviceId}/{toolId}/invoke", body: "fields", status: 200 },
    role: "agent",
    input: invokeInput,
    output: z.object({
      result: z.unknown().meta({ description: "What the tool answered", example: { status: 200, body: [] } }),
    }),
    failures: ["conflict", "upstream_failed"],
    extraDeadlineMs: () => toolTimeoutMs,
    run: async ({ serviceId, toolId, parameters }, context: CallContext) => {
      const { signal } = context;
      try {
        return { result: await toolCalls.call({ serviceId, toolId, parameters, timeoutMs: toolTimeoutMs, signal }) };
      } catch (error) {
        throw error instanceof Failure ? withinField("parameters", error) : error;
      }
    },
  };

  const environmentDocs: Operation<Record<string, never>, { docs: string }> = {
    name: "getEnvironmentDocs",
    summary: "Read how to write process code",
    rpcService,
    route: {
      method: "GET",
      path: "/environment/docs",
      body: "none",
      status: 200,
      answer: { field: "docs", mediaType: "text/markdown" },
    },
    role: "agent",
    input: z.object({}),
    output: z.object({ docs: z.string().meta({ example: "# Writing process code\n" }) }),
    failures: ["upstream_failed"],
    run: async () => ({ docs: await environment().docs() }),
  };

  return [list, get, docs, setEnabled, invoke, environmentDocs];
}

function compare(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [position, left] of a.entries()) {
    const right = b[position];
    if (right !== undefined && left < right) return -1;
    if (right !== undefined && left > right) return 1;
  }
  return 0;
}
