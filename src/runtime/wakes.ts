/**
 * Durable wakes. The store is the truth: a wake is an ordered key written with the state that asks for it, and gone with the
 * state that no longer does. One timer waits for the earliest; missed repeats collapse into one, since a state holds at most
 * one due time per name. A wake whose delivery does not settle is tried again with backoff, then given up until the next start.
 */
import { wakeAttemptsMax, wakeBackoffMinMs, wakesLoadedMax } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Store, Write } from "../ports/store.ts";
import { parseWakeKey, type Wake, wakePrefix } from "./keys.ts";

interface Attempt {
  count: number;
  notBefore: number;
}

export interface WakesHost {
  readonly clock: Clock;
  readonly store: Store;
  /** Delivers the wake's message; resolves when the actor has taken it. */
  wake(wake: Wake): Promise<void>;
  spent(wake: Wake): void;
  failed(error: unknown): void;
}

/** When the store could not be read, and as the longest sleep: a clock that stepped is noticed within this. */
const lookAgainMs = 60_000;
const retryReadMs = 1_000;

export class Wakes {
  readonly #host: WakesHost;
  readonly #attempts = new Map<string, Attempt>();
  #nextDue = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #running = false;
  #again = false;

  constructor(host: WakesHost) {
    this.#host = host;
  }

  start(): Promise<void> {
    return this.#look();
  }

  stop(): void {
    this.#cancel?.();
    this.#running = true;
  }

  /** After a commit: one of its writes may be an earlier wake than the one waited for. */
  noticed(writes: readonly Write[]): void {
    for (const write of writes) {
      if (write.value === null || !write.key.startsWith(wakePrefix)) continue;
      const due = parseWakeKey(write.key).due;
      if (due < this.#nextDue) this.#sleepUntil(due);
    }
  }

  #sleepUntil(due: number): void {
    this.#nextDue = due;
    this.#cancel?.();
    const delay = Math.min(lookAgainMs, Math.max(0, due - this.#host.clock.now()));
    this.#cancel = this.#host.clock.after(delay, () => void this.#look());
  }

  async #look(): Promise<void> {
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = true;
    this.#nextDue = Number.POSITIVE_INFINITY;
    let next: number;
    try {
      next = await this.#deliverDue();
    } catch (error) {
      this.#host.failed(error);
      next = this.#host.clock.now() + retryReadMs;
    }
    this.#running = false;
    if (this.#again) next = this.#host.clock.now();
    this.#again = false;
    this.#sleepUntil(Math.min(next, this.#nextDue));
  }

  /** Answers when to look again. */
  async #deliverDue(): Promise<number> {
    let after: string | undefined;
    let next = Number.POSITIVE_INFINITY;
    for (;;) {
      const entries = await this.#host.store.range({ prefix: wakePrefix, after, limit: wakesLoadedMax });
      const now = this.#host.clock.now();
      const due = entries.filter((entry) => parseWakeKey(entry.key).due <= now);
      await Promise.all(due.map((entry) => this.#deliver(entry.key, now)));
      for (const attempt of this.#attempts.values()) next = Math.min(next, attempt.notBefore);
      const later = entries[due.length];
      if (later !== undefined) return Math.min(next, parseWakeKey(later.key).due);
      after = entries.at(-1)?.key;
      if (entries.length < wakesLoadedMax) return next;
    }
  }

  async #deliver(key: string, now: number): Promise<void> {
    const attempt = this.#attempts.get(key) ?? { count: 0, notBefore: now };
    if (attempt.notBefore > now) return;
    const wake = parseWakeKey(key);
    try {
      await this.#host.wake(wake);
    } catch (error) {
      this.#host.failed(error);
    }
    const [still] = await this.#host.store.read([key]);
    if (still === undefined) {
      this.#attempts.delete(key);
      return;
    }
    attempt.count++;
    const spent = attempt.count >= wakeAttemptsMax;
    if (spent) this.#host.spent(wake);
    attempt.notBefore = spent
      ? Number.POSITIVE_INFINITY
      : this.#host.clock.now() + wakeBackoffMinMs * 2 ** (attempt.count - 1);
    this.#attempts.set(key, attempt);
  }
}
