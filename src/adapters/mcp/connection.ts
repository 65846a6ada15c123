/**
 * The session of one service: opened when first needed, opened again when it was lost, ended with the service. Callers that come while it
 * is being opened share it. A server that cannot be reached, or ends right after its start, is tried again after waits that double; the
 * first time at once.
 */
import { z } from "zod";
import { Failure } from "../../errors/failure.ts";
import { mcpConnectMs, mcpPageBytesMax, mcpReconnectMaxMs, mcpReconnectMinMs } from "../../limits.ts";
import { toFailure } from "./failures.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { shownServer } from "./server-address.ts";
import { Session, type SessionParts } from "./session.ts";
import type { Target } from "./settings.ts";

export class Connection {
  readonly #parts: SessionParts;
  readonly #target: Target;
  #session: Promise<Session> | undefined;
  /** What the promise has resolved to, while it is in use. */
  #current: Session | undefined;
  /** Lost at the server, but still waited in. */
  readonly #retired = new Set<Session>();
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

  /** Whether the server does not know the session any more; then the next caller gets a new one. */
  async hasLost(session: Session, signal: AbortSignal, timeoutMs: number): Promise<boolean> {
    if (this.#current === session && (await isKnown(session, signal, timeoutMs))) return false;
    // Others that miss it as well are not to take the new one away again.
    if (this.#current === session) this.#retire(session);
    return true;
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#closing.abort();
    const last = session?.then(
      (open) => open.end(),
      () => undefined,
    );
    await Promise.all([last, ...[...this.#retired].map((retired) => retired.end())]);
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

  #retire(session: Session): void {
    if (this.#lasted()) this.#faults = 0;
    this.#current = undefined;
    this.#session = undefined;
    this.#retired.add(session);
    void session.retire().finally(() => this.#retired.delete(session));
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

/** Asked of the server itself, with a message that it cannot dislike: some refuse what they do not know, pings too, with a status. */
async function isKnown(session: Session, signal: AbortSignal, timeoutMs: number): Promise<boolean> {
  try {
    const bounds = { signal, timeoutMs, bytesMax: mcpPageBytesMax };
    await session.request({ method: "tools/list", params: {} }, z.unknown(), bounds);
    return true;
  } catch (error) {
    return !(error instanceof HttpRefusal && error.mayBeLostSession);
  }
}
