/**
 * MCP over the standard input and output of a process, one message a line. The SDK's own transport starts its process in our group, with
 * our HOME, and reads without a bound on messages; hence this one. Invariants:
 * 1. The process is in a group of its own, and the group ends with the transport, with the process, and with this server.
 * 2. What it sends and what waits for it is bounded; a flood slows only its own session.
 * 3. `onclose` is called once, after which `ended` says why.
 */
import { serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js";
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { Failure } from "../../errors/failure.ts";
import {
  mcpBytesWaitingMax,
  mcpErrorCharactersMax,
  mcpLeaveMs,
  mcpLineBytesMax,
  mcpMessagesPerSecondMax,
  mcpStrayLinesMax,
} from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Log } from "../../ports/log.ts";
import { readForeignJson } from "./foreign-json.ts";
import { Lines } from "./lines.ts";
import { type StdioAddress, shownServer } from "./server-address.ts";
import { toServerMessage } from "./server-message.ts";
import type { Target } from "./settings.ts";
import { StderrLog } from "./stderr-log.ts";
import { type Launched, launch } from "./stdio-launch.ts";
import type { RequestBounds, ServerTransport } from "./transport.ts";

export interface StdioTransportOptions {
  readonly address: StdioAddress;
  readonly target: Target;
  readonly clock: Clock;
  readonly log: Log;
}

export class StdioTransport implements ServerTransport {
  onmessage?: (message: JSONRPCMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;
  readonly #options: StdioTransportOptions;
  readonly #lines = new Lines(mcpLineBytesMax);
  readonly #stderr: StderrLog;
  readonly #exited = Promise.withResolvers<void>();
  readonly #unanswered = new Set<RequestId>();
  #launched: Launched | undefined;
  #ended: Failure | undefined;
  #isClosed = false;
  #strayLines = 0;
  #secondMessages = 0;

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    this.#stderr = new StderrLog(options);
  }

  async start(): Promise<void> {
    if (this.#isClosed) throw new Failure("unavailable", "The session is closed");
    const { address, target } = this.#options;
    const launched = launch(address, target.env);
    this.#launched = launched;
    launched.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    launched.stderr.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    launched.process.on("error", (error) => {
      this.#exited.resolve();
      this.#close(`cannot be started: ${error.message}`);
    });
    launched.process.on("exit", (code, signal) => {
      this.#exited.resolve();
      launched.kill();
      // What it wrote before its end is still to be read: that is done at "close", unless some stranger holds its output open.
      const close = () => this.#close(endOf(code, signal));
      launched.process.on("close", close);
      this.#options.clock.after(mcpLeaveMs, close);
    });
  }

  within<T>(_: RequestBounds, send: () => Promise<T>): Promise<T> {
    return send();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#launched?.stdin;
    if (stdin === undefined || this.#isClosed) throw this.#ended ?? new Failure("unavailable", "The session is closed");
    if (stdin.writableLength > mcpBytesWaitingMax) {
      this.#close(`does not read its input: more than ${mcpBytesWaitingMax} bytes wait for it`);
      return;
    }
    if ("method" in message && "id" in message) this.#unanswered.add(message.id);
    if ("method" in message && message.method === "notifications/cancelled") {
      this.#unanswered.delete(message.params?.requestId as RequestId);
    }
    stdin.write(serializeMessage(message));
  }

  /** Resolves when the process has exited. At once when it was never started. */
  get gone(): Promise<void> {
    return this.#exited.promise;
  }

  ended(): Failure | undefined {
    return this.#ended;
  }

  /** Closing its input is how a server is asked to leave. */
  async leave(): Promise<void> {
    const launched = this.#launched;
    if (launched === undefined) {
      this.#exited.resolve();
      this.#close(undefined);
      return;
    }
    launched.stdin.end();
    const stopWaiting = this.#options.clock.after(mcpLeaveMs, () => launched.kill());
    await this.#exited.promise;
    stopWaiting();
    this.#close(undefined);
  }

  async close(): Promise<void> {
    this.#close(undefined);
  }

  get #name(): string {
    return shownServer(this.#options.address);
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    const lines = this.#lines.push(chunk);
    if (lines === undefined) {
      this.#close(`sent a message larger than ${mcpLineBytesMax} bytes`);
      return;
    }
    for (const line of lines) this.#readLine(line);
    this.#slowDown(lines.length);
  }

  #readLine(line: string): void {
    if (line.trim() === "" || this.#isClosed) return;
    const message = this.#message(line);
    if (message === "passed over") return;
    if (message !== undefined) {
      // Answers that nobody waits for (any more) are not the client's concern.
      const isAnswer = !("method" in message);
      if (!isAnswer || this.#unanswered.delete(message.id as RequestId)) this.onmessage?.(message);
      return;
    }
    this.#strayLines += 1;
    if (this.#strayLines > mcpStrayLinesMax) this.#close("writes lines to its output that are no MCP messages");
  }

  #message(line: string): ReturnType<typeof toServerMessage> {
    try {
      return toServerMessage(readForeignJson(line));
    } catch (error) {
      if (!(error instanceof SyntaxError)) this.#close(`sent what is too much to read: ${(error as Error).message}`);
      return undefined;
    }
  }

  #slowDown(messages: number): void {
    if (this.#secondMessages === 0 && messages > 0) {
      this.#options.clock.after(1_000, () => {
        this.#secondMessages = 0;
        if (!this.#isClosed) this.#launched?.stdout.resume();
      });
    }
    this.#secondMessages += messages;
    if (this.#secondMessages > mcpMessagesPerSecondMax) this.#launched?.stdout.pause();
  }

  /** `how`: what the server did; undefined when we wanted it. */
  #close(how: string | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (how !== undefined) {
      const last = this.#options.target.quote(this.#stderr.lastLine, mcpErrorCharactersMax);
      const words = last === "" ? "" : `; its last words were "${last}"`;
      const stray = this.#strayLines > 0 ? `; it wrote ${this.#strayLines} lines that are no MCP messages` : "";
      this.#ended = new Failure("upstream_failed", `${this.#name} ${how}${words}${stray}`);
    }
    this.#launched?.kill();
    this.onclose?.();
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): string {
  if (code === 127) return "was not found";
  if (code === 126) return "may not be executed";
  return signal === null ? `ended with exit code ${code}` : `was ended by signal ${signal}`;
}
