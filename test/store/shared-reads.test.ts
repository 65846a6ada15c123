import { describe, expect, it } from "vitest";
import { readKeysTogetherMax } from "../../src/limits.ts";
import { SharedReads } from "../../src/store/shared-reads.ts";

describe("shared reads", () => {
  it("made while one is under way go together, and each gets its own values in its own order", async () => {
    const asked: string[][] = [];
    const reads = new SharedReads(async (keys) => {
      asked.push([...keys]);
      await new Promise((resolve) => setImmediate(resolve));
      return keys.map((key) => (key === "absent" ? undefined : `value of ${key}`));
    });
    const answers = await Promise.all([
      reads.read(["a"]),
      reads.read(["b", "absent"]),
      reads.read([]),
      reads.read(["a"]),
    ]);
    expect(answers).toEqual([["value of a"], ["value of b", undefined], [], ["value of a"]]);
    expect(asked).toEqual([["a"], ["b", "absent", "a"]]);
  });

  it("never go together beyond the bound, but one large read is not cut", async () => {
    const sizes: number[] = [];
    const reads = new SharedReads(async (keys) => {
      sizes.push(keys.length);
      return keys.map(() => undefined);
    });
    const keys = (count: number): string[] => Array.from({ length: count }, (_, number) => String(number));
    await Promise.all([1, readKeysTogetherMax + 5, 300, 300].map((count) => reads.read(keys(count))));
    expect(sizes).toEqual([1, readKeysTogetherMax + 5, 300, 300]);
  });

  it("that fail take along only those that went with them", async () => {
    let calls = 0;
    const reads = new SharedReads(async (keys) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (++calls === 2) throw new Error("bad disk");
      return keys.map(() => "value");
    });
    const first = reads.read(["a"]);
    const second = Promise.allSettled([reads.read(["b"]), reads.read(["c"])]);
    expect(await first).toEqual(["value"]);
    expect((await second).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await reads.read(["d"])).toEqual(["value"]);
  });
});
