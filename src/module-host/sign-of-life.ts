/** Asks a module process for a sign of life while it owes something, and says when there was none for too long. */
import { modulePingMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export interface SignOfLifeEvents {
  ping(id: number): void;
  /** Calls wait for the process. */
  isBusy(): boolean;
  silent(): void;
}

export class SignOfLife {
  readonly #clock: Clock;
  readonly #silentMsMax: number;
  readonly #events: SignOfLifeEvents;
  #id = 0;
  /** Of the ping that is not answered. */
  #sentAt: number | undefined;
  #isWatching = false;
  #isOver = false;
  #stopTimer: () => void = () => {};

  constructor(clock: Clock, silentMsMax: number, events: SignOfLifeEvents) {
    this.#clock = clock;
    this.#silentMsMax = silentMsMax;
    this.#events = events;
  }

  /** Begins to watch; it ends by itself once the process owes nothing. */
  watch(): void {
    if (this.#isWatching || this.#isOver) return;
    this.#isWatching = true;
    this.#stopTimer = this.#clock.after(Math.min(modulePingMs, this.#silentMsMax / 2), () => this.#look());
  }

  /** Something timed out: it is asked at once, and watched until it has answered. */
  doubt(): void {
    this.#ping();
    this.watch();
  }

  answered(id: number): void {
    if (id === this.#id) this.#sentAt = undefined;
  }

  stop(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  #look(): void {
    this.#isWatching = false;
    if (this.#sentAt !== undefined && this.#clock.monotonic() - this.#sentAt > this.#silentMsMax) {
      this.#events.silent();
      return;
    }
    if (this.#events.isBusy()) this.#ping();
    if (this.#sentAt !== undefined) this.watch();
  }

  #ping(): void {
    if (this.#sentAt !== undefined || this.#isOver) return;
    this.#sentAt = this.#clock.monotonic();
    this.#id += 1;
    this.#events.ping(this.#id);
  }
}
