/** The part of the store's contract about the order of keys and the ranges over them. Run by `contract.ts`. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { change, type Open, one } from "./commits.ts";

export function rangeCases(open: Open): void {
  const fill = async (store: Store, keys: readonly string[]) => {
    const writes = keys.map((key) => ({ key, value: `v:${key}` }));
    expect(await one(store, change(store, "record", 0, "r", writes))).toBe("ok");
  };
  const keysOf = async (store: Store, prefix: string, limit = 100, after?: string) =>
    (await store.range({ prefix, limit, after })).map(({ key }) => key);

  it("a range gives keys and values of its prefix, ascending", async () => {
    const store = await open();
    await fill(store, ["x/2", "x/1", "y/1", "w/9", "x", "x0"]);
    expect(await store.range({ prefix: "x/", limit: 10 })).toEqual([
      { key: "x/1", value: "v:x/1" },
      { key: "x/2", value: "v:x/2" },
    ]);
    expect(await keysOf(store, "none/")).toEqual([]);
  });

  it("keys sort by their UTF-8 bytes, not by their UTF-16 units", async () => {
    const store = await open();
    const sorted = [
      "x/",
      "x/\u0000",
      "x/\u0000\u0000",
      "x/A",
      "x/a",
      "x/é",
      "x/\ue000",
      "x/\uffff",
      "x/😀",
      "x/\u{10ffff}",
    ];
    await fill(store, [...sorted].reverse());
    expect(await keysOf(store, "x/")).toEqual(sorted);
    for (const [place, key] of sorted.entries()) {
      expect(await keysOf(store, "x/", 100, key)).toEqual(sorted.slice(place + 1));
    }
  });

  it.each([
    ["a NUL", "x\u0000"],
    ["the last code point before the surrogates", "x\ud7ff"],
    ["the last of the basic plane", "x\uffff"],
    ["the last code point there is", "x\u{10ffff}"],
    ["twice the last code point", "\u{10ffff}\u{10ffff}"],
    ["an astral one", "x😀"],
  ])("a prefix ending in %s selects just what begins with it", async (_what, prefix) => {
    const store = await open();
    const inside = [prefix, `${prefix}\u0000`, `${prefix}a`, `${prefix}\u{10ffff}`];
    await fill(
      store,
      [...inside, "w", "x", "y", "x\u0001", "x\ue000", "\u{10ffff}"].filter((key, at, all) => all.indexOf(key) === at),
    );
    const found = await keysOf(store, prefix);
    expect(found).toEqual(inside);
  });

  it("pages by limit and after give every entry once", async () => {
    const store = await open();
    const all = Array.from({ length: 57 }, (_, n) => `x/${String(n).padStart(3, "0")}`);
    await fill(store, all);
    const seen: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await keysOf(store, "x/", 10, after);
      seen.push(...page);
      if (page.length < 10) break;
      after = page.at(-1);
    }
    expect(seen).toEqual(all);
    expect(await keysOf(store, "x/", 0)).toEqual([]);
  });

  it("after outside the prefix: below it changes nothing, above it leaves nothing", async () => {
    const store = await open();
    await fill(store, ["x/1", "x/2", "y/1"]);
    expect(await keysOf(store, "x/", 10, "a")).toEqual(["x/1", "x/2"]);
    expect(await keysOf(store, "x/", 10, "x/1\u0000")).toEqual(["x/2"]);
    expect(await keysOf(store, "x/", 10, "x0")).toEqual([]);
    expect(await keysOf(store, "x/", 10, "y/1")).toEqual([]);
  });

  it.each([-1, 1.5, Number.NaN])("a limit of %d throws", async (limit) => {
    const store = await open();
    await expect(store.range({ prefix: "x/", limit })).rejects.toThrow(TypeError);
  });

  it("any keys, prefix, after and limit give what a sorted list would", async () => {
    const store = await open();
    const character = fc.constantFrom(
      "\u0000",
      "\u0001",
      "/",
      "a",
      "b",
      "\u00ff",
      "\ud7ff",
      "\ue000",
      "\uffff",
      "😀",
      "\u{10ffff}",
    );
    const text = fc.array(character, { maxLength: 3 }).map((characters) => characters.join(""));
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(text, { maxLength: 12 }),
        text,
        fc.option(text),
        fc.nat(6),
        async (tails, p, a, limit) => {
          round += 1;
          const root = `q${round}/`;
          const keys = tails.map((tail) => root + tail);
          await one(
            store,
            change(
              store,
              `r${round}`,
              0,
              "r",
              keys.map((key) => ({ key, value: key })),
            ),
          );
          const prefix = root + p;
          const after = a === null ? undefined : root + a;
          const expected = keys
            .filter((key) => key.startsWith(prefix) && (after === undefined || compare(key, after) > 0))
            .sort(compare)
            .slice(0, limit);
          expect(await keysOf(store, prefix, limit, after)).toEqual(expected);
        },
      ),
      { numRuns: 150 },
    );
  });
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
