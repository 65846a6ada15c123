/**
 * What matters of an HTTP answer, once all of it is there: the response to our request, and whether the tools have changed. The rest
 * (progress, log lines, pings and other requests of the server, strange events) is for clients that listen while a call runs; it is
 * passed over before anything is made of it, so that a server can send what it likes and hold nobody up.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { mcpEventLinesMax, mcpEventsReadMax } from "../../limits.ts";
import { JsonBudget, readForeignJson } from "./foreign-json.ts";
import { toolsChangedMethod, toServerMessage } from "./server-message.ts";

export interface AnswerMessages {
  readonly response: JSONRPCMessage | undefined;
  readonly toolsChanged: boolean;
}

/** Without parameters, in lower case; empty when there is none. */
export function essence(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Throws SyntaxError for what is not JSON, and Error for what is too much or not of the protocol's form. */
export function answerMessages(contentType: string, text: string, id: unknown): AnswerMessages {
  switch (essence(contentType)) {
    case "application/json":
      return chosen(messagesInJson(text), id);
    case "text/event-stream":
      return chosen(messagesInEvents(text), id);
    default:
      throw new Error(`Unexpected content type: ${contentType}`);
  }
}

/** One message, or (until protocol version 2025-03-26) a list of them. */
function messagesInJson(text: string): unknown[] {
  const body = readForeignJson(text);
  const messages = (Array.isArray(body) ? body : [body]).map(toServerMessage);
  if (messages.length > 0 && messages.every((message) => message === undefined)) {
    throw new Error("The MCP server's answer is not of the protocol's form");
  }
  return messages;
}

function messagesInEvents(text: string): unknown[] {
  const events = eventData(text).filter((data) => names.some((name) => data.includes(name)));
  if (events.length > mcpEventsReadMax) {
    throw new Error(`The MCP server's answer has more than ${mcpEventsReadMax} events that may be the response`);
  }
  const budget = new JsonBudget();
  return events.map((data) => readEvent(data, budget));
}

/** Without one of these a text is nothing that matters. */
const names = ['"result"', '"error"', `"${toolsChangedMethod}"`];

/** Undefined for a stray event beside the answer. */
function readEvent(data: string, budget: JsonBudget): unknown {
  try {
    return toServerMessage(readForeignJson(data, budget));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Of several responses to one request the first counts. */
function chosen(messages: readonly unknown[], id: unknown): AnswerMessages {
  const known = messages.filter((message) => typeof message === "object") as JSONRPCMessage[];
  return {
    response: known.find((message) => !("method" in message) && message.id === id),
    toolsChanged: known.some((message) => "method" in message && message.method === toolsChangedMethod),
  };
}

/** Data of the events of type `message` (WHATWG HTML, 9.2). An event that was not finished by a blank line is not one. */
function eventData(stream: string): string[] {
  const found: string[] = [];
  let data: string[] = [];
  let type = "";
  for (const line of lines(stream)) {
    if (line === "") {
      if (type === "" || type === "message") found.push(data.join("\n"));
      data = [];
      type = "";
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") data.push(value);
    else if (field === "event") type = value;
  }
  return found;
}

/** Without what stands after the last end of a line. */
function* lines(stream: string): Generator<string> {
  const ends = /\r\n|\n|\r/g;
  let from = stream.startsWith("\uFEFF") ? 1 : 0;
  let count = 0;
  for (let end = ends.exec(stream); end !== null; end = ends.exec(stream)) {
    count += 1;
    if (count > mcpEventLinesMax) throw new Error(`The MCP server's answer has more than ${mcpEventLinesMax} lines`);
    yield stream.slice(from, end.index);
    from = ends.lastIndex;
  }
}
