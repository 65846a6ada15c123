/** Who is next: keys take turns, floods lose to others, and nobody who left or waited too long is served. */
import { beforeEach, describe, expect, test } from "vitest";
import { FairTurns } from "../../src/adapters/parameter-checks/fair-turns.ts";
import type { Clock } from "../../src/ports/clock.ts";

let due: { readonly at: number; readonly action: () => void }[];
let turns: FairTurns;
let order: string[];
/** Ends the work that has its turn. */
let finish: () => void;

const clock: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after(at, action) {
    const entry = { at, action };
    due.push(entry);
    return () => {
      due = due.filter((other) => other !== entry);
    };
  },
};

beforeEach(() => {
  due = [];
  order = [];
  turns = new FairTurns({ name: "thing", waitingMax: 4, waitMs: 100, clock });
});

function take(key: string, name: string, signal?: AbortSignal): Promise<unknown> {
  const work = () => {
    order.push(name);
    return new Promise<string>((resolve) => {
      finish = () => resolve(name);
    });
  };
  return turns.take({ key, signal }, work).catch((error: unknown) => (error as { kind: string }).kind);
}

async function finishAll(promises: readonly Promise<unknown>[]): Promise<readonly unknown[]> {
  const all = Promise.all(promises);
  for (let turn = 0; turn < promises.length; turn += 1) {
    finish();
    await new Promise(setImmediate);
  }
  return all;
}

test("keys take turns, and of a key the oldest comes first", async () => {
  const names = ["a1", "a2", "a3", "b1", "c1"];
  const all = names.map((name) => take(name.slice(0, 1), name));
  expect(await finishAll(all)).toEqual(names);
  expect(order).toEqual(["a1", "a2", "b1", "c1", "a3"]);
  expect(due).toEqual([]);
});

test("one turn at a time, also after one that failed", async () => {
  const failing = turns.take({ key: "a" }, () => Promise.reject(new Error("broken")));
  const next = take("b", "b1");
  await expect(failing).rejects.toThrow("broken");
  expect(await finishAll([next])).toEqual(["b1"]);
});

test("too many of one key are its own loss: the newest of it are refused", async () => {
  const flood = Array.from({ length: 6 }, (_, at) => take("a", `a${at}`));
  const other = take("b", "b1");
  expect(await finishAll([...flood, other])).toEqual(["a0", "a1", "a2", "a3", "overloaded", "overloaded", "b1"]);
});

describe("who waits", () => {
  test("and leaves has no turn; who leaves during it lets it go on", async () => {
    const [during, waiting] = [new AbortController(), new AbortController()];
    const all = [take("a", "a1", during.signal), take("a", "a2", waiting.signal), take("b", "b1")];
    waiting.abort();
    during.abort();
    expect(await finishAll(all)).toEqual(["a1", "cancelled", "b1"]);
    expect(order).toEqual(["a1", "b1"]);
    expect(await take("a", "a3", AbortSignal.abort())).toBe("cancelled");
  });

  test("too long is refused, and is not counted among the waiting any more", async () => {
    const first = take("a", "a1");
    const late = [take("b", "b1"), take("c", "c1")];
    for (const { at, action } of due) if (at === 100) action();
    expect(await Promise.all(late)).toEqual(["unavailable", "unavailable"]);
    const others = Array.from({ length: 4 }, (_, at) => take(`d${at}`, `d${at}`));
    expect(await finishAll([first, ...others])).toEqual(["a1", "d0", "d1", "d2", "d3"]);
  });

  test("when it closes is refused, and who comes then too", async () => {
    const all = [take("a", "a1"), take("b", "b1")];
    turns.close();
    expect(await finishAll(all)).toEqual(["a1", "unavailable"]);
    expect(await take("c", "c1")).toBe("unavailable");
  });
});
