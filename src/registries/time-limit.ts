/** Waiting for others no longer than a limit, and no longer than the caller does. */
import { Failure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";

export interface TimeLimit {
  /** Whole milliseconds left, at least 1. */
  leftMs(): number;
  /** The work's outcome, unless the limit or the caller ends the wait; what is abandoned may still settle, unheard. */
  race<Value>(work: Promise<Value>): Promise<Value>;
}

/** @param what begins the sentences "… did not end within 1000 ms" and "… was cancelled". */
export function timeLimit(clock: Clock, limitMs: number, signal: AbortSignal, what: string): TimeLimit {
  const endsAt = clock.monotonic() + limitMs;
  const leftMs = (): number => Math.max(1, Math.ceil(endsAt - clock.monotonic()));
  return {
    leftMs,
    async race(work) {
      const end = Promise.withResolvers<never>();
      const cancel = (): void => end.reject(new Failure("cancelled", `${what} was cancelled`));
      const stop = clock.after(leftMs(), () =>
        end.reject(new Failure("upstream_failed", `${what} did not end within ${limitMs} ms`)),
      );
      signal.addEventListener("abort", cancel, { once: true });
      if (signal.aborted) cancel();
      try {
        return await Promise.race([work, end.promise]);
      } finally {
        stop();
        signal.removeEventListener("abort", cancel);
      }
    },
  };
}
