/** The adapters that can be used now, by id. Replacing one is a single step: there is no moment without it. */
import type { Adapter, Adapters } from "../ports/adapter.ts";

export class ActiveAdapters implements Adapters {
  readonly #byId = new Map<string, Adapter>();

  get(id: string): Adapter | undefined {
    return this.#byId.get(id);
  }

  ids(): readonly string[] {
    return [...this.#byId.keys()].sort();
  }

  /** The one that served before, if any: the caller closes it. */
  put(id: string, adapter: Adapter): Adapter | undefined {
    const former = this.#byId.get(id);
    this.#byId.set(id, adapter);
    return former;
  }

  take(id: string): Adapter | undefined {
    const former = this.#byId.get(id);
    this.#byId.delete(id);
    return former;
  }
}
