/** Work in lanes: how much at once, and what a failure does to the rest. */
import { setImmediate as soon } from "node:timers/promises";
import { expect, it } from "vitest";
import { inLanes } from "../../src/packages/lanes.ts";

it("everything is done once, no more than so many at a time", async () => {
  const done: number[] = [];
  let running = 0;
  let most = 0;
  await inLanes([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await soon();
    running -= 1;
    done.push(item);
  });
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(most).toBe(3);
});

it("a failure is thrown when what had begun has ended, and nothing new begins", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const work = inLanes([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error("The first one fails");
    await soon();
    ended.push(item);
  });
  await expect(work).rejects.toThrow("The first one fails");
  expect(begun).toEqual([1, 2]);
  expect(ended).toEqual([2]);
});

it("nothing to do is done", async () => {
  await inLanes([], 2, () => Promise.reject(new Error("There is nothing")));
});
