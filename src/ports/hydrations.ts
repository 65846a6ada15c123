/** Services made ready on their adapters: memory only, made again when needed. */
import type { HydratedService, PlanReference } from "./adapter.ts";

/** Everything a hydration depends on. `generation` grows with each change of it. */
export interface HydrationRequest {
  readonly serviceId: string;
  readonly generation: number;
  readonly adapter: string;
  readonly plan: PlanReference;
  /** What the adapter receives: declared values with defaults. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

export interface Hydrations {
  /** Replaces an older generation once the new one is ready; an older one keeps serving when the new one fails. */
  hydrate(request: HydrationRequest): Promise<HydratedService>;
  /** The one that serves now, if it is of this generation and of the adapter as it is now. */
  current(serviceId: string, generation: number): HydratedService | undefined;
  /** Any generation: what serves while a newer one could not be made ready. */
  latest(serviceId: string): HydratedService | undefined;
  drop(serviceId: string): void;
}
