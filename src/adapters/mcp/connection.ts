/**
 * The session of one service: opened when first needed, opened again when it was lost, ended with the service. Callers that come while it
 * is being opened share it. A server that cannot be reached, or ends right after its start, is tried again after waits that double; the
 * first time at once.
 */
import { Failure } from "../../errors/failure.ts";
import { mcpConnectMs, mcpReconnectMaxMs, mcpReconnectMinMs } from "../../limits.ts";
import { toFailure } from "./failures.ts";
import { shownServer } from "./server-address.ts";
import { Session, type SessionParts } from "./session.ts";
import type { Target } from "./settings.ts";

export class Connection {
  readonly #parts: SessionParts;
  readonly #target: Target;
  #session: Promise<Session> | undefined;
  /** What the promise has resolved to, while it is in use. */
  #current: Session | undefined;
  #faults = 0;
  #lastFault: Failure | undefined;
  /** By the clock's `monotonic`. */
  #openedAt: number | undefined;
  #tryAgainAt = 0;
  readonly #closing = new AbortController();

  constructor(parts: SessionParts, target: Target) {
    this.#parts = parts;
    this.#target = target;
  }

  /** Rejects with Failure. */
  session(): Promise<Session> {
    if (this.#closing.signal.aborted) return Promise.reject(new Failure("unavailable", "The service is closed"));
    if (this.#session !== undefined) return this.#session;
    if (this.#lastFault !== undefined && this.#parts.clock.monotonic() < this.#tryAgainAt) {
      return Promise.reject(this.#lastFault);
    }
    const opening = this.#open();
    this.#session = opening;
    opening.then(
      (session) => {
        this.#current = session;
        session.whenEnded((fault) => this.#lose(opening, fault));
      },
      (failure: Failure) => this.#lose(opening, failure),
    );
    return opening;
  }

  /** The server does not know the session any more: the next caller gets a new one. */
  forget(session: Session): void {
    if (this.#current !== session) return;
    if (this.#lasted()) this.#faults = 0;
    // Others that miss it as well are not to take the new one away again.
    this.#current = undefined;
    this.#session = undefined;
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#closing.abort();
    await session?.then(
      (open) => open.end(),
      () => undefined,
    );
  }

  async #open(): Promise<Session> {
    this.#openedAt = undefined;
    const { clock } = this.#parts;
    const stop = new AbortController();
    const cancelTimer = clock.after(mcpConnectMs, () => stop.abort());
    const signal = AbortSignal.any([stop.signal, this.#closing.signal]);
    try {
      const session = await Session.open(this.#parts, this.#target, { timeoutMs: mcpConnectMs, signal });
      this.#openedAt = clock.monotonic();
      return session;
    } catch (error) {
      if (this.#closing.signal.aborted) throw new Failure("unavailable", "The service is closed");
      if (!stop.signal.aborted) throw toFailure(error, "Cannot connect", this.#target);
      const name = shownServer(this.#target.address);
      throw new Failure("timeout", `Cannot connect: ${name} did not answer within ${mcpConnectMs} ms`);
    } finally {
      cancelTimer();
    }
  }

  #lose(opening: Promise<Session>, fault: Failure | undefined): void {
    if (this.#session !== opening) return;
    this.#session = undefined;
    this.#current = undefined;
    this.#faults = this.#lasted() ? 1 : this.#faults + 1;
    this.#lastFault = fault;
    const waitMs = this.#faults < 2 ? 0 : Math.min(mcpReconnectMinMs * 2 ** (this.#faults - 2), mcpReconnectMaxMs);
    this.#tryAgainAt = this.#parts.clock.monotonic() + waitMs;
  }

  /** Whether the session that is lost now was a good one. */
  #lasted(): boolean {
    return this.#openedAt !== undefined && this.#parts.clock.monotonic() - this.#openedAt > mcpReconnectMaxMs;
  }
}
