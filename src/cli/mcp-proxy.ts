/**
 * The pump of `troupe mcp`: lines of JSON from the client, each a POST to the service, and what it answers as lines to the client.
 *
 * 1. It holds no session: the service may restart in between, and a message sent while it is away gets an error of its own.
 * 2. Every request gets one answer, unless the client has cancelled it. For a cancelled one the service does not wait any more either,
 *    because its connection is closed.
 * 3. So many messages are in flight at most; then no more are read.
 */
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { bodyBytesMax, mcpProxyInFlightMax, mcpProxyLeaveMs } from "../limits.ts";
import { boundedLines } from "./bounded-lines.ts";
import { type Answer, answersOf, ServiceRefusal } from "./mcp-answers.ts";

export interface McpTarget {
  /** Of the endpoint itself, `http://127.0.0.1:8080/mcp`. */
  readonly url: string;
  readonly apiKey: string | undefined;
}

export interface McpStreams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

type Id = string | number;

interface Message {
  readonly id?: Id;
  readonly method?: string;
  readonly params?: { readonly requestId?: Id };
}

/** Of JSON-RPC. */
const codes = { parseError: -32_700, invalidRequest: -32_600, serverError: -32_000 } as const;

export class McpProxy {
  readonly #target: McpTarget;
  readonly #streams: McpStreams;
  /** By the id of the request, for its cancellation. */
  readonly #cancels = new Map<Id, AbortController>();
  readonly #inFlight = new Set<Promise<void>>();
  readonly #leaving = new AbortController();
  #protocolVersion: string | undefined;

  constructor(target: McpTarget, streams: McpStreams) {
    this.#target = target;
    this.#streams = streams;
    streams.stdout.on("error", () => {
      this.#leaving.abort(); // nobody reads any more
      streams.stdin.destroy();
    });
  }

  /** Resolves when stdin has ended and what was in flight was answered or given up. */
  async run(): Promise<void> {
    try {
      for await (const line of boundedLines(this.#streams.stdin, bodyBytesMax)) {
        await this.#take(line);
        if (this.#inFlight.size >= mcpProxyInFlightMax) await Promise.race(this.#inFlight);
      }
    } catch {
      // stdin broke off: the same as its end.
    }
    const giveUp = setTimeout(() => this.#leaving.abort(), mcpProxyLeaveMs);
    await Promise.all(this.#inFlight);
    clearTimeout(giveUp);
  }

  async #take(line: string | undefined): Promise<void> {
    if (line === undefined) return this.#refuse(codes.invalidRequest, `A message has at most ${bodyBytesMax} bytes`);
    if (line.trim() === "") return;
    let messages: readonly (Message | null)[];
    try {
      messages = [JSON.parse(line) as Message | Message[] | null].flat();
    } catch {
      return this.#refuse(codes.parseError, "The line is not valid JSON");
    }
    const cancelled = messages.length === 1 ? cancelledBy(messages[0]) : undefined;
    const cancel = cancelled === undefined ? undefined : this.#cancels.get(cancelled);
    if (cancel !== undefined) return cancel.abort();
    const work: Promise<void> = this.#forward(line, requestsIn(messages)).finally(() => this.#inFlight.delete(work));
    this.#inFlight.add(work);
  }

  /** Never rejects. */
  async #forward(line: string, ids: readonly Id[]): Promise<void> {
    const cancel = new AbortController();
    const unanswered = new Set(ids);
    for (const id of ids) this.#cancels.set(id, cancel);
    const signal = AbortSignal.any([cancel.signal, this.#leaving.signal]);
    try {
      const response = await fetch(this.#target.url, {
        method: "POST",
        headers: this.#headers(),
        body: line,
        redirect: "error", // the key is for this service only
        signal,
      });
      for await (const answer of answersOf(response)) {
        this.#note(answer);
        if (answer.method === undefined && answer.id != null) unanswered.delete(answer.id);
        await this.#write(answer);
      }
      if (unanswered.size > 0) throw new Error("It ended its answer too soon");
    } catch (error) {
      if (!signal.aborted) await this.#answerFor(unanswered, error);
    } finally {
      for (const id of ids) if (this.#cancels.get(id) === cancel) this.#cancels.delete(id);
    }
  }

  #headers(): Record<string, string> {
    const { apiKey } = this.#target;
    return {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(this.#protocolVersion === undefined ? {} : { "mcp-protocol-version": this.#protocolVersion }),
    };
  }

  /** The version that was agreed on goes with every later message. */
  #note({ result }: Answer): void {
    const version = (result as { readonly protocolVersion?: unknown } | undefined)?.protocolVersion;
    if (typeof version === "string") this.#protocolVersion = version;
  }

  /** In place of the service, which did not. */
  async #answerFor(ids: Iterable<Id>, reason: unknown): Promise<void> {
    const error = errorOf(this.#target.url, reason);
    let told = false;
    for (const id of ids) {
      told = true;
      await this.#write({ jsonrpc: "2.0", id, error });
    }
    if (!told) this.#streams.stderr.write(`troupe mcp: a notification was not delivered: ${error.message}\n`);
  }

  #refuse(code: number, message: string): Promise<void> {
    return this.#write({ jsonrpc: "2.0", id: null, error: { code, message } });
  }

  async #write(message: object): Promise<void> {
    const { stdout } = this.#streams;
    if (this.#leaving.signal.aborted || stdout.write(`${JSON.stringify(message)}\n`)) return;
    await once(stdout, "drain", { signal: this.#leaving.signal }).catch(() => undefined);
  }
}

function cancelledBy(message: Message | null | undefined): Id | undefined {
  return message?.method === "notifications/cancelled" ? message.params?.requestId : undefined;
}

function requestsIn(messages: readonly (Message | null)[]): readonly Id[] {
  return messages.flatMap((message) => (message?.method === undefined || message.id == null ? [] : [message.id]));
}

function errorOf(url: string, reason: unknown): { code: number; message: string; data?: object } {
  if (reason instanceof ServiceRefusal) {
    return {
      code: reason.code,
      message: `The Troupe service at "${url}" refused: ${reason.message}`,
      data: reason.data,
    };
  }
  return { code: codes.serverError, message: `The Troupe service at "${url}" did not answer: ${whyOf(reason)}` };
}

/** fetch hides what happened in the cause of what it rejects with. */
function whyOf(reason: unknown): string {
  const { cause, message } = reason as { readonly cause?: Partial<NodeJS.ErrnoException>; readonly message: string };
  return sentences[cause?.code ?? ""] ?? cause?.code ?? cause?.message ?? message;
}

const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there; is it running?",
  ENOTFOUND: "there is no host of that name",
  ECONNRESET: "it closed the connection",
  UND_ERR_SOCKET: "it closed the connection",
};
