/** Waiting for an actor to get somewhere: until it is so, the time is over, or the caller has gone. */
import type { CallContext } from "./operation.ts";

export interface Wait {
  readonly seconds: number;
  readonly context: CallContext;
}

/**
 * Resolves as soon as `reached` holds for a committed state, or after the seconds. It watches before it looks, so no step is
 * missed; who waits never affects the actor.
 */
export async function waitFor<State>(
  { seconds, context }: Wait,
  watch: (watcher: (state: State | null) => void) => () => void,
  look: () => Promise<State | null>,
  reached: (state: State | null) => boolean,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unwatch = watch((state) => {
    if (reached(state)) resolve();
  });
  const timer = setTimeout(resolve, seconds * 1_000);
  const { signal } = context;
  const gone = (): void => resolve();
  signal.addEventListener("abort", gone, { once: true });
  try {
    if (!reached(await look())) await promise;
  } finally {
    unwatch();
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
  }
}
