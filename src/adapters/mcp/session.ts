/** One session with an MCP server: the SDK's client on one of our transports, from the handshake to the end. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ErrorCode,
  type Implementation,
  McpError,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import type { Failure } from "../../errors/failure.ts";
import { mcpHandshakeBytesMax } from "../../limits.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Fetcher } from "../../ports/fetcher.ts";
import type { Log } from "../../ports/log.ts";
import { faultOf } from "./failures.ts";
import { HttpTransport } from "./http-transport.ts";
import { shownServer } from "./server-address.ts";
import type { Target } from "./settings.ts";
import type { StdioProcesses } from "./stdio-processes.ts";
import type { RequestBounds, ServerTransport } from "./transport.ts";

export interface SessionParts {
  readonly fetcher: Fetcher;
  readonly processes: StdioProcesses;
  /** How we call ourselves. */
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The server says that its tools have changed, as often as it likes. */
  toolsChanged(): void;
}

/** The requests that are made of a server. */
export type SessionRequest =
  | { readonly method: "tools/list"; readonly params: { readonly cursor?: string } }
  | {
      readonly method: "tools/call";
      readonly params: { readonly name: string; readonly arguments: Record<string, unknown> };
    };

/** The longest timer: our own bounds end every request before. */
const timerMsMax = 2 ** 31 - 1;

export class Session {
  readonly target: Target;
  readonly #client: Client;
  readonly #transport: ServerTransport;
  readonly #ended = Promise.withResolvers<void>();
  readonly #unanswered = new Set<Promise<unknown>>();
  #isOurs = false;

  private constructor(target: Target, client: Client, transport: ServerTransport) {
    this.target = target;
    this.#client = client;
    this.#transport = transport;
    client.onclose = () => this.#ended.resolve();
  }

  /** Rejects with whatever stood in the way; nothing is left behind then. */
  static async open(parts: SessionParts, target: Target, bounds: Omit<RequestBounds, "bytesMax">): Promise<Session> {
    const transport = transportTo(parts, target);
    const client = newClient(parts, target);
    const connect = (signal: AbortSignal) => client.connect(transport, { signal, timeout: timerMsMax });
    try {
      const all = { ...bounds, bytesMax: mcpHandshakeBytesMax };
      await transport.within(all, () => untilSettled(bounds.signal, connect));
    } catch (error) {
      await transport.leave();
      throw transport.ended() ?? faultOf(error);
    }
    return new Session(target, client, transport);
  }

  /** Called once, if the server ends the session by itself, and with why, if that is known. */
  whenEnded(action: (fault: Failure | undefined) => void): void {
    void this.#ended.promise.then(() => {
      if (!this.#isOurs) action(this.#transport.ended());
    });
  }

  get server(): Implementation | undefined {
    return this.#client.getServerVersion();
  }

  get instructions(): string | undefined {
    return this.#client.getInstructions();
  }

  /** Rejects with what stood in the way: Failure, HttpRefusal, McpError, or an error of the SDK about the answer. */
  async request<T>(request: SessionRequest, shape: z.ZodType<T>, bounds: RequestBounds): Promise<T> {
    const send = (signal: AbortSignal) => this.#client.request(request, shape, { signal, timeout: timerMsMax });
    const answer = this.#transport.within(bounds, () => untilSettled(bounds.signal, send)) as Promise<T>;
    this.#unanswered.add(answer);
    try {
      return await answer;
    } catch (error) {
      // Words of the server itself stand; all else, once the way to it is gone, is said best by why it is gone.
      if (error instanceof McpError && error.code !== ErrorCode.ConnectionClosed) throw error;
      throw this.#transport.ended() ?? faultOf(error);
    } finally {
      this.#unanswered.delete(answer);
    }
  }

  /** Ends once nobody waits for an answer in it. */
  async retire(): Promise<void> {
    await Promise.allSettled(this.#unanswered);
    await this.end();
  }

  async end(): Promise<void> {
    this.#isOurs = true;
    await this.#transport.leave();
  }
}

/** The SDK listens to the signal of a request for ever, and would tell the server of its cancellation after its answer too. */
async function untilSettled<T>(signal: AbortSignal, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const onAbort = () => own.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await send(own.signal);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function transportTo({ fetcher, processes, clock, log }: SessionParts, target: Target): ServerTransport {
  const { address } = target;
  return address.kind === "http"
    ? new HttpTransport({ url: address.url, headers: target.headers, fetcher })
    : processes.open({ address, target, clock, log });
}

/** Without capabilities: there is nobody to sample, elicit or list roots for a server. */
function newClient({ version, log, toolsChanged }: SessionParts, target: Target): Client {
  const client = new Client(
    { name: "troupe", version },
    {
      capabilities: {},
      // Foreign schemas are not compiled here.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
    },
  );
  client.onerror = (error) =>
    log.debug("mcp-message-odd", `${shownServer(target.address)}: ${target.quote(error.message, 200)}`);
  client.setNotificationHandler(ToolListChangedNotificationSchema, toolsChanged);
  return client;
}
