/**
 * POST /mcp: admits and reads like any other route, and hands the message to the MCP face. What is wrong with the request as HTTP is
 * answered in the envelope, what is wrong with the message by the protocol's own errors. GET and DELETE are 405, as for every route that
 * does not have them: there are no sessions to resume or to end.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { asFailure } from "../operations/call.ts";
import type { Caller } from "../operations/operation.ts";
import type { Log } from "../ports/log.ts";
import { sendFailure } from "./answer.ts";
import { readBody } from "./body.ts";
import { jsonMediaTypes, requireMediaType } from "./media-type.ts";

/** One POST, admitted and read. */
export interface McpRequest {
  readonly body: Uint8Array;
  /** Those that the protocol looks at. */
  readonly headers: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly caller: Caller;
  /** Under which name requests of this caller are counted. */
  readonly countedAs: string;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export interface McpRouteOptions {
  /** Rejects with Failure. The stream of an event stream ends by itself, also when the signal is aborted. */
  readonly answer: (request: McpRequest) => Promise<Response>;
  /** False when the client is gone, which is then noted. */
  readonly canAnswer: (request: FastifyRequest, reply: FastifyReply) => boolean;
  readonly log: Log;
}

export const mcpRoute = { method: "POST", path: "/mcp" } as const;

export function mountMcp(app: FastifyInstance, options: McpRouteOptions): void {
  app.route({
    method: mcpRoute.method,
    url: mcpRoute.path,
    handler: (request, reply) => void serve(options, request, reply),
  });
}

async function serve(options: McpRouteOptions, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { answer, canAnswer, log } = options;
  const client = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) client.abort();
  });
  try {
    const body = await readBody(request.raw, reply.raw, jsonMediaTypes);
    if (body.length === 0) requireMediaType(request.headers["content-type"], undefined, jsonMediaTypes);
    const response = await answer({
      body,
      headers: protocolHeaders(request),
      requestId: request.id,
      caller: request.caller,
      countedAs: request.countedAs,
      signal: client.signal,
    });
    if (!canAnswer(request, reply)) return;
    const isWhole = await send(reply, response);
    if (!isWhole) canAnswer(request, reply);
  } catch (error) {
    const failure = asFailure(error, "mcp", request.id, log);
    if (reply.sent) reply.raw.destroy(); // in the middle of a stream: a broken connection is all that can still be told
    if (canAnswer(request, reply)) sendFailure(reply, failure);
  }
}

/** Those that the protocol looks at. */
function protocolHeaders({ headers }: FastifyRequest): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of ["accept", "content-type", "mcp-protocol-version"]) {
    const value = headers[name];
    if (typeof value === "string") found[name] = value;
  }
  return found;
}

/** False when the client left in the middle. */
async function send(reply: FastifyReply, response: Response): Promise<boolean> {
  const { status, headers, body } = response;
  const contentType = headers.get("content-type");
  if (contentType === "text/event-stream" && body !== null) return sendStream(reply, headers, body);
  if (contentType !== null) reply.header("content-type", contentType);
  reply.code(status).send(body === null ? undefined : await response.text());
  return true;
}

/** Small and bounded: some progress and one answer for each message, so nothing waits for a slow client. */
async function sendStream(reply: FastifyReply, headers: Headers, body: ReadableStream<Uint8Array>): Promise<boolean> {
  const { raw } = reply;
  const all = { ...Object.fromEntries(headers), ...reply.getHeaders() };
  reply.hijack();
  raw.writeHead(200, all as Record<string, string>);
  raw.flushHeaders();
  for await (const chunk of body) {
    if (raw.destroyed) break;
    raw.write(chunk);
  }
  if (raw.destroyed) return false;
  raw.end();
  return true;
}
