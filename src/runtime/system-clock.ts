/** The real clock. */
import type { Clock } from "../ports/clock.ts";

/** setTimeout fires at once above this, so longer delays are walked in steps. */
const timerMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, action) {
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      timer = setTimeout(() => (left > timerMsMax ? wait(left - timerMsMax) : action()), Math.min(left, timerMsMax));
    };
    wait(Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};
