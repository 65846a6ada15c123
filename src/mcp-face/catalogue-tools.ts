/** Tools to find out what can be called and how, and to call one thing without a program. */
import { mcpFoundDescriptionCharactersMax } from "../limits.ts";
import { type McpTool, pick } from "./tool.ts";
import { jsonResult, textResult } from "./tool-result.ts";

const readOnly = { readOnlyHint: true, openWorldHint: false } as const;

interface FoundTool {
  readonly serviceId: string;
  readonly id: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly effectivelyEnabled: boolean;
}

const searchTools: McpTool = {
  name: "search_tools",
  title: "Search tools",
  description: `Find operations of installed services (APIs) that programs can call.
Use it first, to learn what exists: search by words for what you want to do, or leave out the query to list everything.
Answers {"items": [{"serviceId", "toolId", "name", "summary", "description", "callable"}], "nextCursor"}, the best matches first. A tool that is not "callable" is switched off. For the next page send the same arguments with "cursor": nextCursor.
Then read how to call one with get_tool_docs.
Example: {"query": "list pets", "limit": 5}`,
  annotations: readOnly,
  countsAs: "listTools",
  fields: {
    query: { of: "listTools", description: "Words to look for in names, summaries, descriptions and parameter names" },
    serviceId: { of: "listTools", description: "Only tools of this service" },
    limit: { of: "listTools", description: "Most tools to answer, 1 to 100", more: { type: "integer", minimum: 1 } },
    cursor: { of: "listTools", description: "nextCursor of the page before" },
  },
  async run(args, context) {
    const found = await context.call<{ items: FoundTool[]; nextCursor: string | null }>(
      "listTools",
      pick(args, "query", "serviceId", "limit", "cursor"),
    );
    const items = found.items.map(({ serviceId, id, name, summary, description, effectivelyEnabled }) => ({
      serviceId,
      toolId: id,
      name,
      summary,
      description: shortened(description),
      callable: effectivelyEnabled,
    }));
    return jsonResult({ items, nextCursor: found.nextCursor }, "Search again with a smaller limit");
  },
};

const byTool = {
  serviceId: { of: "getToolDocs", description: "serviceId of the tool, as search_tools answers it" },
  toolId: { of: "getToolDocs", description: "toolId of the tool, as search_tools answers it" },
} as const;

const getToolDocs: McpTool = {
  name: "get_tool_docs",
  title: "Read how to call a tool",
  description: `Read how a program calls one tool: the call itself, its parameters and its result with their types.
Use it before you write code that calls a tool. Answers Markdown.
Example: {"serviceId": "petstore", "toolId": "listPets"}`,
  annotations: readOnly,
  countsAs: "getToolDocs",
  fields: byTool,
  async run(args, context) {
    const { docs } = await context.call<{ docs: string }>("getToolDocs", pick(args, "serviceId", "toolId"));
    return textResult(docs, `The whole is at GET /tools/${args.serviceId}/${args.toolId}/docs of the REST face`);
  },
};

const getEnvironmentDocs: McpTool = {
  name: "get_environment_docs",
  title: "Read how to write programs",
  description: `Read what programs for run_process are written in, what they can use, how they answer, and what goes wrong and how it says so.
Use it once, before your first run_process. Answers Markdown. It takes no arguments.
Example: {}`,
  annotations: readOnly,
  countsAs: "getEnvironmentDocs",
  fields: {},
  async run(_args, context) {
    const { docs } = await context.call<{ docs: string }>("getEnvironmentDocs", {});
    return textResult(docs, "The whole is at GET /environment/docs of the REST face");
  },
};

const invokeTool: McpTool = {
  name: "invoke_tool",
  title: "Call one tool",
  description: `Call one tool of a service, once, and get its result, for when a single call is all you need.
For several calls, loops, or results that need filtering use run_process: a program makes the calls where the data is and answers only what you need.
Answers {"result": …}. For HTTP APIs the result is {"status", "headers", "body"}; look at "status", because errors of the API are results too.
Example: {"serviceId": "petstore", "toolId": "getPet", "parameters": {"path": {"petId": "1"}}}`,
  annotations: { readOnlyHint: false, openWorldHint: true },
  countsAs: "invokeTool",
  fields: {
    serviceId: { ...byTool.serviceId, of: "invokeTool" },
    toolId: { ...byTool.toolId, of: "invokeTool" },
    parameters: {
      of: "invokeTool",
      description: "What the tool takes, as its docs (get_tool_docs) say",
      more: { type: "object" },
    },
  },
  async run(args, context) {
    const { result } = await context.call<{ result: unknown }>(
      "invokeTool",
      pick(args, "serviceId", "toolId", "parameters"),
    );
    const whole = "To get at all of it, call the tool from a program (run_process) that answers only what you need";
    return jsonResult({ result }, whole);
  },
};

export const catalogueTools: readonly McpTool[] = [searchTools, getToolDocs, getEnvironmentDocs, invokeTool];

function shortened(description: string): string {
  if (description.length <= mcpFoundDescriptionCharactersMax) return description;
  return `${description.slice(0, mcpFoundDescriptionCharactersMax).toWellFormed()}…`;
}
