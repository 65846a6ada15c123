/** Whether the store works, and who wants to hear of a change. */
import type { Log } from "../ports/log.ts";
import type { StoreHealth } from "../ports/store.ts";
import { faultReason } from "./fault-reason.ts";

export class HealthSign {
  readonly #log: Log;
  readonly #listeners = new Set<(health: StoreHealth) => void>();
  #current: StoreHealth = { ok: true };

  constructor(log: Log) {
    this.#log = log;
  }

  get current(): StoreHealth {
    return this.#current;
  }

  listen(listener: (health: StoreHealth) => void): () => void {
    // Wrapped, so that a listener given twice is called twice and leaves once.
    const own = (health: StoreHealth) => listener(health);
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  /** `since` stays that of the first failure until the store has recovered. */
  fail(error: unknown, nowMs: number): void {
    const since = this.#current.ok ? nowMs : this.#current.since;
    this.#change({ ok: false, reason: faultReason(error), since });
  }

  recover(): void {
    this.#change({ ok: true });
  }

  #change(health: StoreHealth): void {
    this.#current = health;
    for (const listener of this.#listeners) {
      try {
        listener(health);
      } catch (error) {
        // A listener's fault must not stop the store's own recovery.
        this.#log.error("store-health-listener-failed", "A listener of the store's health threw", { error });
      }
    }
  }
}
