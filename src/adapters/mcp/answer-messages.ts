/**
 * What matters of an HTTP answer, once all of it is there: the response to our request, and whether the tools have changed. The rest
 * (progress, log lines, pings and other requests of the server, strange events) is for clients that listen while a call runs; it is
 * passed over before anything is made of it, so that a server can send what it likes and hold nobody up.
 */
import {
  isJSONRPCErrorResponse,
  isJSONRPCResultResponse,
  type JSONRPCErrorResponse,
  type JSONRPCResultResponse,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { mcpEventsReadMax } from "../../limits.ts";

export interface AnswerMessages {
  readonly response: JSONRPCResultResponse | JSONRPCErrorResponse | undefined;
  readonly toolsChanged: boolean;
}

/** Without parameters, in lower case; empty when there is none. */
export function essence(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Throws SyntaxError for what is not JSON, and Error for what is not of the protocol's form. */
export function answerMessages(contentType: string, text: string, id: RequestId): AnswerMessages {
  switch (essence(contentType)) {
    case "application/json":
      return fromJson(JSON.parse(text), id);
    case "text/event-stream":
      return fromEvents(text, id);
    default:
      throw new Error(`Unexpected content type: ${contentType}`);
  }
}

function fromJson(body: unknown, id: RequestId): AnswerMessages {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (messages.length > 0 && !messages.some(isMessage)) throw formless();
  return chosen(messages, id);
}

function fromEvents(text: string, id: RequestId): AnswerMessages {
  const messages: unknown[] = [];
  let read = 0;
  for (const data of eventData(text)) {
    if (!mayMatter.test(data)) continue;
    if (++read > mcpEventsReadMax) throw new Error(`Its answer has more than ${mcpEventsReadMax} events`);
    try {
      messages.push(JSON.parse(data));
    } catch {
      // A stray event beside the answer.
    }
  }
  return chosen(messages, id);
}

const mayMatter = /"(?:result|error|notifications\/tools\/list_changed)"/;

/** The first that answers `id`. */
function chosen(messages: readonly unknown[], id: RequestId): AnswerMessages {
  const toolsChanged = messages.some((message) => isMessage(message) && message.method === toolsChangedMethod);
  for (const message of messages) {
    if (!isMessage(message) || message.id !== id || "method" in message) continue;
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) return { response: message, toolsChanged };
    throw formless();
  }
  return { response: undefined, toolsChanged };
}

export const toolsChangedMethod = "notifications/tools/list_changed";

function isMessage(message: unknown): message is Readonly<Record<string, unknown>> {
  return typeof message === "object" && message !== null && "jsonrpc" in message && message.jsonrpc === "2.0";
}

function formless(): Error {
  return new Error("The MCP server's answer is not of the protocol's form");
}

/** Data of the events of type `message` (WHATWG HTML, 9.2). An event that was not finished by a blank line is not one. */
export function* eventData(stream: string): Generator<string> {
  let data: string | undefined;
  let type = "";
  for (let at = stream.startsWith("\uFEFF") ? 1 : 0; at < stream.length; ) {
    const end = lineEnd(stream, at);
    if (end === stream.length) return;
    if (end === at) {
      if (data !== undefined && data !== "" && (type === "" || type === "message")) yield data;
      data = undefined;
      type = "";
    } else if (stream.startsWith("data", at)) {
      const value = fieldValue(stream, at + "data".length, end);
      if (value !== undefined) data = data === undefined ? value : `${data}\n${value}`;
    } else if (stream.startsWith("event", at)) {
      type = fieldValue(stream, at + "event".length, end) ?? type;
    }
    at = stream.startsWith("\r\n", end) ? end + 2 : end + 1;
  }
}

function lineEnd(stream: string, from: number): number {
  for (let at = from; at < stream.length; at += 1) {
    const character = stream.charCodeAt(at);
    if (character === 10 || character === 13) return at;
  }
  return stream.length;
}

/** What stands between the name of a field and the end of its line; undefined when the name goes on. */
function fieldValue(stream: string, from: number, end: number): string | undefined {
  if (from === end) return "";
  if (stream[from] !== ":") return undefined;
  return stream.slice(stream[from + 1] === " " ? from + 2 : from + 1, end);
}
