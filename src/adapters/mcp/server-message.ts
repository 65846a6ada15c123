/**
 * What matters of a message from a server: the response to a request of ours, a request of its own (without parameters: none is served that
 * needs them), and the news that its tools have changed. The SDK's schemas enumerate whatever they are given, at some microseconds a name,
 * so it is given no more than it uses.
 */
import type { JSONRPCMessage, JSONRPCResponse } from "@modelcontextprotocol/sdk/types.js";

export const toolsChangedMethod = "notifications/tools/list_changed";

/** `passed over`: a message that does not matter. Undefined: no message at all. */
export function toServerMessage(value: unknown): JSONRPCMessage | "passed over" | undefined {
  if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
  const { id, method } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof method !== "string") return hasId ? toResponse(value, Number(id)) : undefined;
  if (hasId) return { jsonrpc: "2.0", id, method };
  return method === toolsChangedMethod ? { jsonrpc: "2.0", method } : "passed over";
}

/** Our ids are numbers; some servers give them back as text. */
function toResponse({ result, error }: Fields, id: number): JSONRPCResponse | undefined {
  if (isObject(result)) return { jsonrpc: "2.0", id, result: toResult(result) };
  if (!isObject(error)) return undefined;
  const { code, message } = error;
  if (!Number.isInteger(code) || typeof message !== "string") return undefined;
  return { jsonrpc: "2.0", id, error: { code: code as number, message } };
}

/** The fields of the handshake, of a list of tools, and of a call. */
function toResult(result: Fields): Fields {
  const { protocolVersion, capabilities, serverInfo, instructions } = result;
  const { tools, nextCursor, content, structuredContent, isError } = result;
  return present({
    protocolVersion,
    capabilities: isObject(capabilities) ? {} : capabilities,
    serverInfo: isObject(serverInfo) ? toServerInfo(serverInfo) : serverInfo,
    instructions,
    tools,
    nextCursor,
    content,
    structuredContent,
    isError,
  });
}

function toServerInfo({ name, title, version }: Fields): Fields {
  return present({ name, title, version });
}

function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
