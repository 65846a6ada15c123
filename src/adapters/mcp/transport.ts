/** What a session needs of a way to its server, beside what the protocol's client needs of it. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Failure } from "../../errors/failure.ts";

export interface RequestBounds {
  /** Time left for the whole request. */
  readonly timeoutMs: number;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Of the answer. */
  readonly bytesMax: number;
}

export interface ServerTransport extends Transport {
  /** Requests sent by `send` are within these bounds, where the way itself does not bound them. */
  within<T>(bounds: RequestBounds, send: () => Promise<T>): Promise<T>;
  /** Why the way closed by itself; undefined while it is open, or when we closed it. */
  ended(): Failure | undefined;
  /** Ends the session at the server as well, within bounds. Safe to repeat. */
  leave(): Promise<void>;
}
