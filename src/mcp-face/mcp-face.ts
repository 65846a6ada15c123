/**
 * The MCP face: what agents speak natively. One POST is answered by a server object of its own that knows the caller and nothing of
 * other requests (stateless streamable HTTP); tools are loops over operation rows, so nothing is decided here.
 *
 * 1. A refusal of the service is a result with `isError`; JSON-RPC errors are for what is not JSON-RPC or names no method or tool.
 * 2. A client that goes away ends its waits, never a run.
 * 3. Who asks for progress gets an event stream, everybody else one JSON answer.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { Failure, isFailure } from "../errors/failure.ts";
import type { McpRequest } from "../gateway/mcp-route.ts";
import { parseJson } from "../json/parse.ts";
import { mcpCallsInFlightMax } from "../limits.ts";
import { asFailure } from "../operations/call.ts";
import { logRefusal } from "../operations/refusal-log.ts";
import { catalogueTools } from "./catalogue-tools.ts";
import { inputSchema } from "./input-schema.ts";
import { instructions } from "./instructions.ts";
import { processTools } from "./process-tools.ts";
import { type CallerOfRows, RowCalls, type RowCallsOptions } from "./row-calls.ts";
import type { McpTool, Progress, ToolArguments, ToolContext } from "./tool.ts";
import { failureResult } from "./tool-result.ts";

export interface McpFaceOptions extends RowCallsOptions {
  /** Of the server, as `initialize` tells it. */
  readonly version: string;
}

export interface McpFace {
  /** Rejects with Failure cancelled when the client went away before there was an answer. A stream ends with the client. */
  answer(request: McpRequest): Promise<Response>;
}

export function openMcpFace(options: McpFaceOptions): McpFace {
  const rows = new RowCalls(options);
  const tools = new Map([...catalogueTools, ...processTools].map((tool) => [tool.name, tool]));
  const listed = [...tools.values()].map((tool) => listedTool(tool, rows));
  let inFlight = 0;

  async function callTool(name: string, args: ToolArguments, context: ToolContext, caller: CallerOfRows) {
    const tool = tools.get(name);
    if (tool === undefined) throw new ProtocolFault(ErrorCode.InvalidParams, `There is no tool "${name.slice(0, 64)}"`);
    inFlight += 1;
    try {
      if (inFlight > mcpCallsInFlightMax) throw tooMany();
      rows.count(tool.countsAs, caller);
      return await tool.run(args, context);
    } catch (error) {
      const { requestId, countedAs } = caller;
      const failure = asFailure(error, `mcp ${name}`, requestId, options.log);
      logRefusal(options.log, { failure, requestId, caller: countedAs, request: `mcp ${name}` });
      return failureResult(failure, requestId);
    } finally {
      inFlight -= 1;
    }
  }

  function serverFor(request: McpRequest): Server {
    const server = new Server(
      { name: "troupe", title: "Troupe", version: options.version },
      { capabilities: { tools: {} }, instructions, jsonSchemaValidator: noValidator },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listed }));
    server.setRequestHandler(toolsCall, ({ params }, extra): Promise<CallToolResult> => {
      const { name, arguments: args } = params as { readonly name: string; readonly arguments?: ToolArguments };
      const caller = { ...request, signal: extra.signal };
      const context: ToolContext = {
        call: (row, input) => rows.call(row, input, caller),
        check: (row, input) => rows.check(row, input),
        now: () => options.clock.monotonic(),
        progress: progressTo(extra),
      };
      return callTool(name, args ?? {}, context, caller);
    });
    server.onerror = (error) =>
      options.log.debug("mcp-error", error.message, { requestId: request.requestId, caller: request.caller.name });
    return server;
  }

  return {
    async answer(request) {
      let body: unknown;
      try {
        body = parseJson(request.body);
      } catch (error) {
        if (isFailure(error)) return notJson(error);
        throw error;
      }
      const server = serverFor(request);
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !asksForProgress(body) });
      await server.connect(transport);
      const gone = new Promise<never>((_resolve, reject) => {
        const leave = (): void => {
          void server.close();
          reject(new Failure("cancelled", "The client went away"));
        };
        if (request.signal.aborted) leave();
        else request.signal.addEventListener("abort", leave, { once: true });
      });
      const post = new Request("http://troupe/mcp", { method: "POST", headers: request.headers });
      return Promise.race([transport.handleRequest(post, { parsedBody: body }), gone]);
    },
  };
}

/** The SDK makes a validator of its own for each server otherwise; it is for what servers ask of clients, and this one asks nothing. */
const noValidator = {
  getValidator(): never {
    throw new Error("This server asks nothing of its clients");
  },
};

/** Parameters are left to the SDK's own check, whose refusal has the right code (invalid params). */
const toolsCall = z.object({ method: z.literal("tools/call"), params: z.unknown().optional() });

function listedTool({ name, title, description, annotations, fields }: McpTool, rows: RowCalls): Tool {
  return { name, title, description, annotations: { title, ...annotations }, inputSchema: inputSchema(fields, rows) };
}

/** Becomes a JSON-RPC error. The SDK's own class writes the code into the sentence as well. */
class ProtocolFault extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

function tooMany(): Failure {
  const retryAfterSeconds = 1;
  return new Failure("overloaded", "Too many calls are in flight", {
    exhaustion: {
      limit: mcpCallsInFlightMax,
      remaining: 0,
      resetAt: Date.now() / 1_000 + retryAfterSeconds,
      retryAfterSeconds,
    },
  });
}

function progressTo(extra: RequestHandlerExtra<ServerRequest, ServerNotification>): Progress | undefined {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return async ({ done, total, message }) => {
    const params = { progressToken, progress: done, total, message };
    await extra.sendNotification({ method: "notifications/progress", params }).catch(() => undefined);
  };
}

/** Before anything is known to be a message. */
function asksForProgress(body: unknown): boolean {
  if (Array.isArray(body)) return body.some((message) => !Array.isArray(message) && asksForProgress(message));
  const message = body as { method?: unknown; params?: { _meta?: { progressToken?: unknown } } } | null;
  return message?.method === "tools/call" && message.params?._meta?.progressToken !== undefined;
}

function notJson(failure: Failure): Response {
  const error = { code: ErrorCode.ParseError, message: failure.message };
  return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 400 });
}
