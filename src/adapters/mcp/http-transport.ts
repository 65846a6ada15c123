/**
 * Streamable HTTP by the SDK, on the one way out. Every exchange is read whole, within bytes and time; so there is no stream to wait on,
 * and messages the server would send between answers are not asked for. The SDK sends; of what came back it sees only what matters
 * (`answer-messages.ts`), because it looks at each message of an answer in one turn of the event loop. Invariants:
 * 1. Each request is settled when its exchange is over: by its answer, or by the fault of the exchange. Nothing waits for more.
 * 2. No redirect is followed, and no status but success reaches the SDK, which has rules of its own for both.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CancelledNotificationSchema,
  ErrorCode,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { Failure } from "../../errors/failure.ts";
import { mcpNoticeMs, mcpPageBytesMax } from "../../limits.ts";
import type { Fetcher, OutboundAnswer } from "../../ports/fetcher.ts";
import { answerMessages, essence, toolsChangedMethod } from "./answer-messages.ts";
import { HttpRefusal } from "./http-refusal.ts";
import type { RequestBounds, ServerTransport } from "./transport.ts";

export interface HttpTransportOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetcher: Fetcher;
}

/** One message on its way. */
interface Exchange {
  /** Of a request; notices have their own. */
  readonly bounds?: RequestBounds | undefined;
  /** With a status of success. */
  answer?: OutboundAnswer | undefined;
}

export class HttpTransport implements ServerTransport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #inner: StreamableHTTPClientTransport;
  readonly #fetcher: Fetcher;
  readonly #exchange = new AsyncLocalStorage<Exchange>();
  readonly #unanswered = new Set<RequestId>();
  #left = false;

  constructor({ url, headers, fetcher }: HttpTransportOptions) {
    this.#fetcher = fetcher;
    this.#inner = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { ...headers } },
      fetch: (to, init) => this.#fetch(String(to), init ?? {}),
    });
  }

  async start(): Promise<void> {
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onclose = () => this.onclose?.();
    await this.#inner.start();
  }

  within<T>(bounds: RequestBounds, send: () => Promise<T>): Promise<T> {
    return this.#exchange.run({ bounds }, send);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!isJSONRPCRequest(message)) return this.#notify(message);
    const { id } = message;
    this.#unanswered.add(id);
    let fault: unknown;
    try {
      const exchange: Exchange = { bounds: this.#exchange.getStore()?.bounds };
      await this.#exchange.run(exchange, () => this.#inner.send(message));
      const response = this.#responseIn(exchange.answer, id);
      if (response !== undefined) {
        if (this.#unanswered.delete(id)) this.onmessage?.(response);
        return;
      }
      fault = new Failure("upstream_failed", "The MCP server ended its answer without a result");
    } catch (error) {
      fault = error;
    }
    if (!this.#unanswered.delete(id)) return;
    // As an answer, since a rejected send leaves the SDK waiting for one; `fault` itself travels along as data.
    const error = { code: ErrorCode.ConnectionClosed, message: "No answer", data: fault };
    this.onmessage?.({ jsonrpc: "2.0", id, error });
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  /** There is nothing that could close by itself. */
  ended(): undefined {
    return undefined;
  }

  async leave(): Promise<void> {
    if (this.#left) return;
    this.#left = true;
    // A server that does not care to hear of it forgets the session by itself.
    await this.#exchange.run({}, () => this.#inner.terminateSession()).catch(() => undefined);
    await this.close();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #notify(message: JSONRPCMessage): Promise<void> {
    const cancelled = CancelledNotificationSchema.safeParse(message);
    if (cancelled.success) this.#unanswered.delete(cancelled.data.params.requestId ?? "");
    return this.#exchange.run({}, () => this.#inner.send(message));
  }

  #responseIn(answer: OutboundAnswer | undefined, id: RequestId): JSONRPCMessage | undefined {
    if (answer === undefined || answer.status === 202 || answer.status === 204 || answer.status === 205)
      return undefined;
    const { headers, body } = answer;
    const text = new TextDecoder().decode(body);
    const { response, toolsChanged } = answerMessages(headers["content-type"] ?? "", text, id);
    if (toolsChanged) this.onmessage?.({ jsonrpc: "2.0", method: toolsChangedMethod });
    return response;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    // The stream for messages between answers: as if the server had none.
    if (init.method === "GET") return new Response(null, { status: 405 });
    const exchange = this.#exchange.getStore();
    const bounds = exchange?.bounds;
    const signals = [init.signal, bounds?.signal].filter((signal) => signal !== null && signal !== undefined);
    const headers = new Headers(init.headers);
    const answer = await this.#fetcher.fetch({
      method: init.method ?? "POST",
      url,
      headers: Object.fromEntries(headers),
      body: typeof init.body === "string" ? init.body : undefined,
      redirectsMax: 0,
      bodyBytesMax: bounds?.bytesMax ?? mcpPageBytesMax,
      timeoutMs: bounds?.timeoutMs ?? mcpNoticeMs,
      signal: AbortSignal.any(signals),
    });
    if (answer.status < 200 || answer.status > 299) throw refusal(answer, headers.has("mcp-session-id"));
    if (exchange !== undefined) exchange.answer = answer;
    return accepted(answer);
  }
}

/** Visible ASCII, as the protocol wants it: it comes back in a header of ours. */
const sessionIdForm = /^[\x21-\x7e]{1,1024}$/;

/** For the SDK: the message was taken, in this session; there is nothing to read. */
function accepted({ headers }: OutboundAnswer): Response {
  const kept = new Headers();
  const sessionId = headers["mcp-session-id"];
  if (sessionId !== undefined) {
    if (!sessionIdForm.test(sessionId)) {
      throw new Failure("upstream_failed", "The MCP server gave a session id that cannot be sent back");
    }
    kept.set("mcp-session-id", sessionId);
  }
  return new Response(null, { status: 202, headers: kept });
}

/** Servers put a JSON-RPC error into the body, or a sentence. */
function refusal({ status, headers, body }: OutboundAnswer, inSession: boolean): HttpRefusal {
  const type = essence(headers["content-type"] ?? "");
  // Whole: whoever masks the secrets in it must not find one cut in two.
  const text = new TextDecoder().decode(body);
  if (type === "text/plain") return new HttpRefusal(status, text, inSession);
  return new HttpRefusal(status, type === "application/json" ? errorMessage(text) : "", inSession);
}

function errorMessage(text: string): string {
  try {
    const { error, message } = JSON.parse(text) as { error?: { message?: unknown } | string; message?: unknown };
    const words = typeof error === "object" ? error.message : (error ?? message);
    return typeof words === "string" ? words : "";
  } catch {
    return "";
  }
}
