import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { packagesAddedAtOnce, packagesWaitingMax } from "../../src/limits.ts";
import { Turns } from "../../src/packages/turns.ts";
import { archive, hash } from "./modules.ts";
import { openStage } from "./stage.ts";

it("does a few at once, in the order they came, whether they succeed or fail, and refuses more than may wait", async () => {
  const turns = new Turns({ atOnce: 2, waitingMax: 6, subject: "Cannot work" });
  const order: number[] = [];
  let working = 0;
  let most = 0;
  const work = Array.from({ length: 10 }, (_, number) =>
    turns.take(async () => {
      order.push(number);
      working += 1;
      most = Math.max(most, working);
      for (let turn = 0; turn <= number % 3; turn++) await setImmediate();
      working -= 1;
      if (number % 2 === 0) throw new Error(`work ${number}`);
      return number;
    }),
  );
  const outcomes = await Promise.allSettled(work);
  expect(most).toBe(2);
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  for (const outcome of outcomes.slice(8)) {
    const reason = { kind: "overloaded", message: "Cannot work: 6 wait already" };
    expect(outcome).toMatchObject({ status: "rejected", reason });
  }
  // All places were given back.
  expect(await Promise.all([turns.take(async () => 1), turns.take(async () => 2)])).toEqual([1, 2]);
});

it("of packages: as many as may be added and wait are added, one more is refused and can be added later", async () => {
  const { packages } = openStage();
  const most = packagesAddedAtOnce + packagesWaitingMax;
  const outcomes = await Promise.allSettled(Array.from({ length: most + 1 }, () => packages.add(archive, hash)));
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(most);
  expect(outcomes.at(-1)).toMatchObject({ status: "rejected", reason: { kind: "overloaded" } });
  await expect(packages.add(archive, hash)).resolves.toMatchObject({ hash });
});
