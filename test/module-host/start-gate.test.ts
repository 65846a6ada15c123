import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { StartGate } from "../../src/module-host/start-gate.ts";

it("lets so many start at once, in the order they came, whether starts succeed or fail", async () => {
  const gate = new StartGate(3);
  const order: number[] = [];
  let inside = 0;
  let most = 0;
  const starts = Array.from({ length: 12 }, (_, number) =>
    gate.through(async () => {
      order.push(number);
      inside += 1;
      most = Math.max(most, inside);
      for (let turn = 0; turn <= number % 3; turn++) await setImmediate();
      inside -= 1;
      if (number % 2 === 0) throw new Error(`start ${number}`);
      return number;
    }),
  );
  const outcomes = await Promise.allSettled(starts);
  expect(most).toBe(3);
  expect(order).toEqual(starts.map((_, number) => number));
  expect(outcomes.map(({ status }) => status)).toEqual(
    starts.map((_, number) => (number % 2 ? "fulfilled" : "rejected")),
  );
});
