/** Whether this node takes calls: the store answers and nobody asked it to stop. Both faces and their probes ask here. */
import type { Readiness } from "../operations/call.ts";
import type { Store } from "../ports/store.ts";

export class NodeReadiness implements Readiness {
  readonly #store: Store;
  readonly #listeners = new Set<() => void>();
  #draining = false;

  constructor(store: Store) {
    this.#store = store;
    store.onHealth(() => this.#changed());
  }

  check(): ReturnType<Readiness["check"]> {
    if (this.#draining) return { ready: false, reason: "The server is shutting down" };
    const health = this.#store.health();
    return health.ok ? { ready: true } : { ready: false, reason: `The store is failing: ${health.reason}` };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  drain(): void {
    this.#draining = true;
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
