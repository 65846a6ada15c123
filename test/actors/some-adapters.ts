/** A fixed set of adapters, as `Adapters`. */
import type { Adapter, Adapters } from "../../src/ports/adapter.ts";

export function someAdapters(...adapters: readonly Adapter[]): Adapters {
  return {
    get: (id) => adapters.find((adapter) => adapter.id === id),
    ids: () => adapters.map(({ id }) => id),
  };
}
