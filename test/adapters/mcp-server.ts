/** A real MCP server on 127.0.0.1: the SDK's, stateless or with sessions, answering with JSON or with event streams. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { type ToolServer, toolServer } from "./mcp-tools.ts";

export interface McpServerOptions {
  readonly sessions: boolean;
  readonly json: boolean;
  /** Without it the answer is 401. */
  readonly bearerToken?: string;
}

export interface TestMcpServer {
  readonly url: string;
  readonly seen: ToolServer["seen"];
  /** Method of each request, and of each message posted. */
  readonly requests: { readonly method: string; readonly message: string; readonly headers: IncomingHttpHeaders }[];
  /** As a restart does. */
  forgetSessions(): void;
  /** The server of the newest session, to change its tools. */
  newest(): ToolServer;
  close(): Promise<void>;
}

export async function openMcpServer(options: McpServerOptions): Promise<TestMcpServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const requests: TestMcpServer["requests"] = [];
  const seen = { begun: 0, cancelled: 0 };
  let newest: ToolServer | undefined;

  async function transport(id: string | undefined): Promise<StreamableHTTPServerTransport | undefined> {
    if (id !== undefined) return sessions.get(id);
    newest = toolServer(seen);
    const opened = new StreamableHTTPServerTransport({
      enableJsonResponse: options.json,
      ...(options.sessions
        ? { sessionIdGenerator: () => randomUUID(), onsessioninitialized: (given) => void sessions.set(given, opened) }
        : { sessionIdGenerator: undefined }),
    } as ConstructorParameters<typeof StreamableHTTPServerTransport>[0]);
    await newest.server.connect(opened as Parameters<typeof newest.server.connect>[0]);
    return opened;
  }

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === "" ? undefined : (JSON.parse(text) as { method?: string });
    requests.push({ method: request.method ?? "", message: body?.method ?? "", headers: request.headers });
    if (options.bearerToken !== undefined && request.headers.authorization !== `Bearer ${options.bearerToken}`) {
      response.writeHead(401, { "content-type": "text/plain" }).end(`Who is "${request.headers.authorization}"?`);
      return;
    }
    const id = options.sessions ? (request.headers["mcp-session-id"] as string | undefined) : undefined;
    const found = await transport(id);
    if (found === undefined) response.writeHead(404).end();
    else await found.handleRequest(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    seen,
    requests,
    forgetSessions: () => sessions.clear(),
    newest: () => newest!,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
