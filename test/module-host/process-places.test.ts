/** Places for module processes: who gets one, who has to leave for it, and who waits for how long. */
import { describe, expect, it } from "vitest";
import { moduleProcessStartsWaitingMax, moduleProcessWaitMs } from "../../src/limits.ts";
import { type Place, ProcessPlaces } from "../../src/module-host/process-places.ts";
import { ManualClock } from "../runtime/manual-clock.ts";

const forever = new AbortController().signal;

function openStage(placesMax: number) {
  const clock = new ManualClock();
  const places = new ProcessPlaces(clock, placesMax);
  const left: string[] = [];
  const idle = (place: Place, name: string) => place.idle(() => left.push(name));
  return { clock, places, left, idle, take: (id = "m", signal = forever) => places.take(id, signal) };
}

const settled = async (work: Promise<unknown>) => {
  let state = "waits";
  void work.then(
    () => (state = "has one"),
    () => (state = "refused"),
  );
  await new Promise((resolve) => setImmediate(resolve));
  return state;
};

describe("a place", () => {
  it("is free until all are taken, and again when one is released, however often", async () => {
    const { places, take } = openStage(2);
    const [first] = [await take(), await take()];
    expect(places.hasFree).toBe(false);
    first.release();
    first.release();
    expect(places.hasFree).toBe(true);
    await take();
    expect(places.hasFree).toBe(false);
  });

  it("is made by the one that was idle longest, and given when that one is gone", async () => {
    const { left, idle, take } = openStage(3);
    const [a, b, c] = [await take(), await take(), await take()];
    idle(a, "a");
    idle(b, "b");
    idle(c, "c");
    a.busy();
    idle(a, "a");
    const next = take();
    expect(left).toEqual(["b"]);
    expect(await settled(next)).toBe("waits");
    b.release();
    expect(await settled(next)).toBe("has one");
    expect(left).toEqual(["b"]);
  });

  it("is not taken from one that is busy; the first that becomes idle leaves, and no more than are needed", async () => {
    const { left, idle, take } = openStage(2);
    const [a, b] = [await take(), await take()];
    const next = take();
    expect(left).toEqual([]);
    idle(a, "a");
    idle(b, "b");
    expect(left).toEqual(["a"]);
    b.release();
    expect(await settled(next)).toBe("has one");
    a.release();
    expect(left).toEqual(["a"]);
  });

  it("goes to those who wait in the order they came, and nobody overtakes", async () => {
    const { places, take } = openStage(1);
    const first = await take();
    const order: string[] = [];
    const waiting = ["second", "third"].map(async (name) => {
      const place = await take(name);
      order.push(name);
      expect(places.hasFree).toBe(false);
      place.release();
    });
    first.release();
    await Promise.all(waiting);
    expect(order).toEqual(["second", "third"]);
    expect(places.hasFree).toBe(true);
  });
});

describe("a wait", () => {
  it("ends after a while with an error that says why, and then nobody leaves for it", async () => {
    const { clock, left, idle, take } = openStage(1);
    const place = await take();
    const waiting = take("csv");
    const refused = expect(waiting).rejects.toMatchObject({
      kind: "overloaded",
      message: `Module "csv" cannot be started: all 1 module processes are busy, and none was free within ${moduleProcessWaitMs} ms`,
    });
    await clock.advance(moduleProcessWaitMs);
    await refused;
    idle(place, "first");
    expect(left).toEqual([]);
  });

  it("ends with the module that waits", async () => {
    const { places, take } = openStage(1);
    const place = await take();
    const controller = new AbortController();
    const waiting = take("csv", controller.signal);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ kind: "unavailable" });
    await expect(take("csv", controller.signal)).rejects.toMatchObject({ kind: "unavailable" });
    place.release();
    expect(places.hasFree).toBe(true);
  });

  it("is refused at once when as many wait as may", async () => {
    const { take } = openStage(1);
    await take();
    const waiting = Array.from({ length: moduleProcessStartsWaitingMax }, () => settled(take()));
    await expect(take("csv")).rejects.toMatchObject({ kind: "overloaded" });
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["waits"]));
  });
});
