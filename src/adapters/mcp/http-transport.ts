/**
 * Streamable HTTP on the one way out. Every exchange is read whole, within bytes and time; so there is no stream to wait on, and messages
 * the server would send between answers are not asked for. The SDK's own transport hands the client each message of an answer in one turn
 * of the event loop, answers each request in it with a POST, and follows redirects; hence this one. Invariants:
 * 1. Each request is settled when its exchange is over: by its answer, or by the fault of the exchange. Nothing waits for more.
 * 2. One POST for each message of ours, and none for what an answer holds.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  ErrorCode,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { Failure } from "../../errors/failure.ts";
import { mcpNoticeMs, mcpPageBytesMax } from "../../limits.ts";
import type { Fetcher, OutboundAnswer } from "../../ports/fetcher.ts";
import { answerMessages, essence } from "./answer-messages.ts";
import { readForeignJson } from "./foreign-json.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { toolsChangedMethod } from "./server-message.ts";
import type { RequestBounds, ServerTransport } from "./transport.ts";

export interface HttpTransportOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetcher: Fetcher;
}

export class HttpTransport implements ServerTransport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #options: HttpTransportOptions;
  readonly #bounds = new AsyncLocalStorage<RequestBounds>();
  readonly #unanswered = new Set<RequestId>();
  readonly #closing = new AbortController();
  #sessionId: string | undefined;
  #protocolVersion: string | undefined;
  #leaving: Promise<void> | undefined;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {}

  within<T>(bounds: RequestBounds, send: () => Promise<T>): Promise<T> {
    return this.#bounds.run(bounds, send);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message && "id" in message)) return this.#notify(message);
    const { id } = message;
    this.#unanswered.add(id);
    let response: JSONRPCMessage | undefined;
    let fault: unknown = new Failure("upstream_failed", "The MCP server ended its answer without a result");
    try {
      response = await this.#ask(message);
    } catch (error) {
      fault = error;
    }
    if (!this.#unanswered.delete(id)) return;
    // As an answer, since a rejected send leaves the SDK waiting for one; `fault` itself travels along as data.
    const error = { code: ErrorCode.ConnectionClosed, message: "No answer", data: fault };
    this.onmessage?.(response ?? { jsonrpc: "2.0", id, error });
  }

  setProtocolVersion(version: string): void {
    this.#protocolVersion = version;
  }

  /** There is nothing that could close by itself. */
  ended(): undefined {
    return undefined;
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.onclose?.();
  }

  async #leave(): Promise<void> {
    // A server that does not care to hear of it forgets the session by itself.
    if (this.#sessionId !== undefined) await this.#exchange("DELETE").catch(() => undefined);
    await this.close();
  }

  async #notify(message: JSONRPCMessage): Promise<void> {
    if ("method" in message && message.method === "notifications/cancelled") {
      this.#unanswered.delete(message.params?.requestId as RequestId);
    }
    requireSuccess(await this.#exchange("POST", message), this.#sessionId !== undefined);
  }

  async #ask(message: JSONRPCRequest): Promise<JSONRPCMessage | undefined> {
    const inSession = this.#sessionId !== undefined;
    const answer = await this.#exchange("POST", message, this.#bounds.getStore());
    requireSuccess(answer, inSession);
    const { status, headers, body } = answer;
    if (message.method === "initialize") this.#sessionId = sessionIdOf(headers);
    if (status === 202 || status === 204 || status === 205) return undefined;
    const text = new TextDecoder().decode(body);
    // A large answer takes two turns of the event loop.
    await nextTurn();
    const { response, toolsChanged } = answerMessages(headers["content-type"] ?? "", text, message.id);
    if (toolsChanged) this.onmessage?.({ jsonrpc: "2.0", method: toolsChangedMethod });
    return response;
  }

  /** Without bounds it is a notice, whose sender does not wait. */
  #exchange(method: "POST" | "DELETE", message?: JSONRPCMessage, bounds?: RequestBounds): Promise<OutboundAnswer> {
    const { url, headers, fetcher } = this.#options;
    // The end of a session is told after the transport was closed as well: the client closes it when a handshake fails.
    const signals = method === "DELETE" ? [] : [this.#closing.signal];
    return fetcher.fetch({
      method,
      url,
      headers: {
        ...headers,
        accept: "application/json, text/event-stream",
        ...(message === undefined ? {} : { "content-type": "application/json" }),
        ...(this.#sessionId === undefined ? {} : { "mcp-session-id": this.#sessionId }),
        ...(this.#protocolVersion === undefined ? {} : { "mcp-protocol-version": this.#protocolVersion }),
      },
      body: message === undefined ? undefined : JSON.stringify(message),
      redirectsMax: 0,
      bodyBytesMax: bounds?.bytesMax ?? mcpPageBytesMax,
      timeoutMs: bounds?.timeoutMs ?? mcpNoticeMs,
      signal: AbortSignal.any(bounds === undefined ? signals : [...signals, bounds.signal]),
    });
  }
}

/** Visible ASCII, as the protocol wants it: it comes back in a header of ours. */
const sessionIdForm = /^[\x21-\x7e]{1,1024}$/;

function sessionIdOf({ "mcp-session-id": id }: OutboundAnswer["headers"]): string | undefined {
  if (id === undefined || sessionIdForm.test(id)) return id;
  throw new Failure("upstream_failed", "The MCP server gave a session id that cannot be sent back");
}

/** Servers put a JSON-RPC error into the body, or a sentence. */
function requireSuccess({ status, headers, body }: OutboundAnswer, inSession: boolean): void {
  if (status >= 200 && status <= 299) return;
  const type = essence(headers["content-type"] ?? "");
  // Whole: whoever masks the secrets in it must not find one cut in two.
  const text = new TextDecoder().decode(body);
  if (type === "text/plain") throw new HttpRefusal(status, text, inSession);
  throw new HttpRefusal(status, type === "application/json" ? errorMessage(text) : "", inSession);
}

function errorMessage(text: string): string {
  try {
    const { error, message } = readForeignJson(text) as { error?: { message?: unknown } | string; message?: unknown };
    const words = typeof error === "object" ? error.message : (error ?? message);
    return typeof words === "string" ? words : "";
  } catch {
    return "";
  }
}
