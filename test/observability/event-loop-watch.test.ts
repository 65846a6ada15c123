/** How late the event loop is, as it is told: with a loop that is really held up, and a clock that is not. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { EventLoopWatch } from "../../src/observability/event-loop-watch.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

function holdUp(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

it("a loop that was held up shows in the minute it happened in, then in the one before, and then no more", async () => {
  const clock = new ManualClock();
  const watch = new EventLoopWatch(clock);
  try {
    // A look comes first: what is late is the time after it.
    await pause(100);
    holdUp(400);
    await pause(100);
    const { current, before } = watch.read();
    expect(before).toBeUndefined();
    expect(current.maxMs).toBeGreaterThan(300);
    expect(current.p50Ms).toBeLessThan(300);
    expect(current.p99Ms).toBeLessThanOrEqual(current.maxMs);

    await clock.advance(60_000);
    expect(watch.read().before?.maxMs).toBe(current.maxMs);
    expect(watch.read().before?.windowSeconds).toBe(60);
    expect(watch.read().current.maxMs).toBeLessThan(current.maxMs);
    expect(watch.read().current.windowSeconds).toBe(0);
    await pause(60);
    await clock.advance(60_000);
    expect(watch.read().before?.maxMs).toBeLessThan(current.maxMs);
  } finally {
    watch.close();
  }
  expect(clock.timers).toBe(0);
});
