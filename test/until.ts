/** Waits for what comes about by itself: in another process, by a timer, after a turn of the event loop. */
import { setTimeout as pause } from "node:timers/promises";

/** What `look` finds: the first that is not false, null or undefined. Rejects after `limitMs`, with the text of `look`. */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  limitMs = 10_000,
): Promise<Exclude<Found, false | null | undefined>> {
  for (const end = performance.now() + limitMs; ; ) {
    const found = await look();
    if (found !== false && found !== null && found !== undefined)
      return found as Exclude<Found, false | null | undefined>;
    if (performance.now() > end) throw new Error(`Waited ${limitMs} ms for: ${look}`);
    await pause(10);
  }
}
