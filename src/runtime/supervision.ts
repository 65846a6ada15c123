/**
 * Restart policy, pure: a crashed actor is restarted from disk with a doubling, jittered backoff; after too many crashes within
 * the window it is parked, visible with its reason, until an operator restarts it.
 */
import { restartBackoffMaxMs, restartBackoffMinMs, restartsMax, restartsWindowMs } from "../limits.ts";

export type Verdict =
  | { readonly kind: "restart"; readonly afterMs: number; readonly crashes: readonly number[] }
  | { readonly kind: "park"; readonly crashes: readonly number[] };

/** `crashes`: monotonic times of earlier crashes. `random` in [0, 1). */
export function judgeCrash(crashes: readonly number[], now: number, random: number): Verdict {
  const recent = [...crashes.filter((at) => now - at < restartsWindowMs), now];
  if (recent.length > restartsMax) return { kind: "park", crashes: recent };
  return { kind: "restart", afterMs: backoff(recent.length, random), crashes: recent };
}

/** Wait before try `attempt` (from 1): doubling, between half and all of it. */
export function backoff(attempt: number, random: number): number {
  const full = Math.min(restartBackoffMaxMs, restartBackoffMinMs * 2 ** (attempt - 1));
  return full / 2 + (full / 2) * random;
}
