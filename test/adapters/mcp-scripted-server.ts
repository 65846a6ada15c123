/** A server that says over HTTP whatever a test wants it to: for what no honest MCP server would do. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Message {
  readonly method: string;
  readonly id?: number;
  readonly params: { readonly cursor?: string; readonly name?: string; readonly protocolVersion?: string };
  /** The session it was sent in. */
  readonly session: string | undefined;
}

/** Returns the result of a request, or answers by itself and returns undefined. */
export type Script = (message: Message, response: ServerResponse) => unknown;

export interface ScriptedServer {
  readonly url: string;
  script: Script;
  readonly messages: Message[];
  /** Sessions that were ended with a DELETE. */
  readonly ended: (string | undefined)[];
  close(): Promise<void>;
}

export const serverInfo = { name: "scripted", version: "1" };

/** The handshake as it should be, then the script. */
export function afterHandshake(script: Script): Script {
  return (message, response) => {
    if (message.method !== "initialize") return script(message, response);
    return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
  };
}

/** One page of tools, and calls by the script. */
export function withTools(tools: readonly unknown[], script: Script = () => ({ content: [] })): Script {
  return afterHandshake((message, response) =>
    message.method === "tools/list" ? { tools } : script(message, response),
  );
}

export async function openScriptedServer(): Promise<ScriptedServer> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const session = request.headers["mcp-session-id"] as string | undefined;
    if (request.method === "DELETE") scripted.ended.push(session);
    if (request.method !== "POST") {
      response.writeHead(request.method === "DELETE" ? 200 : 405).end();
      return;
    }
    const message: Message = { ...JSON.parse(Buffer.concat(chunks).toString()), session };
    scripted.messages.push(message);
    if (message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const result = scripted.script(message, response);
    if (result !== undefined) answer(response, { jsonrpc: "2.0", id: message.id, result });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const scripted: ScriptedServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    script: withTools([]),
    messages: [],
    ended: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return scripted;
}

export function answer(response: ServerResponse, body: unknown): void {
  send(response, 200, "application/json", JSON.stringify(body));
}

export function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  more: object = {},
): undefined {
  response.writeHead(status, { "content-type": type, ...more }).end(body);
}
