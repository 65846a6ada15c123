/** Walks over foreign values and schemas: right, and linear where somebody chose the input to be as bad as it can. */
import { describe, expect, it } from "vitest";
import { measure } from "../../src/json/safety.ts";
import { schemaProblem, validate } from "../../src/json/schema.ts";
import { schemaFault } from "../../src/json/schema-bounds.ts";
import { processorMs } from "./processor-time.ts";

function counting(seen: () => void): (target: object, key: string | symbol) => unknown {
  return (target, key) => {
    seen();
    return Reflect.get(target, key);
  };
}

describe("measure", () => {
  it.each<[unknown, number, number]>([
    [null, 1, 0],
    ["", 1, 0],
    ["abc", 4, 0],
    [[], 1, 1],
    [{}, 1, 1],
    [[[]], 2, 2],
    [[[], [[]]], 4, 3],
    [{ ab: [1, "x"], c: {} }, 1 + 2 + 1 + 1 + 2 + 1 + 1, 2],
  ])("%j weighs %i and is %i deep", (value, weight, depth) => {
    expect(measure(value)).toEqual({ weight, depth });
  });

  it.each<[string, (seen: () => void) => unknown]>([
    ["one long list", (seen) => new Proxy(Array(3_300_000).fill([]), { get: counting(seen) })],
    [
      "lists in a list",
      (seen) => Array.from({ length: 1_000 }, () => new Proxy(Array(3_300).fill(0), { get: counting(seen) })),
    ],
    [
      "objects in a list",
      (seen) => Array.from({ length: 100_000 }, () => new Proxy({ a: 1, b: 2 }, { get: counting(seen) })),
    ],
  ])("looks at no more of %s than its bound", (_, make) => {
    let looks = 0;
    const value = make(() => {
      looks += 1;
    });
    expect(measure(value, 1_000).weight).toBeGreaterThan(1_000);
    // Of each item of a list also the length is asked for.
    expect(looks).toBeLessThan(3_000);
  });

  it("takes 10 MiB of the smallest values without holding anybody up for long", () => {
    for (const item of ["[]", "{}", "0", '""', '{"":0}']) {
      const text = `[${Array.from({ length: Math.floor(10_000_000 / (item.length + 1)) }, () => item).join()}]`;
      const value: unknown = JSON.parse(text);
      expect(
        processorMs(() => measure(value)),
        item,
      ).toBeLessThan(2_000);
    }
  });
});

describe("dialects", () => {
  const accepted = ["http", "https"].flatMap((scheme) =>
    [
      "draft-06/schema#",
      "draft-06/schema",
      "draft-07/schema#",
      "draft-07/schema",
      "draft/2019-09/schema",
      "draft/2019-09/schema#",
      "draft/2020-12/schema",
      "draft/2020-12/schema#",
    ].map((path) => `${scheme}://json-schema.org/${path}`),
  );

  it.each(accepted)("%s is used", ($schema) => {
    const schema = { $schema, type: "object", required: ["a"], properties: { a: { type: "string" } } };
    expect(schemaProblem(schema)).toBeUndefined();
    expect(validate(schema, { a: "x" })).toEqual([]);
    expect(validate(schema, {})).toEqual([{ path: "/a", message: "is required" }]);
    expect(schemaProblem({ $schema, type: "nonsense" })).toMatch(/malformed/);
  });

  it.each(["http://json-schema.org/draft-04/schema#", "http://json-schema.org/schema#", "draft-07", "", 7, null, {}])(
    "%j is refused with a reason",
    ($schema) => {
      expect(schemaProblem({ $schema })).toMatch(/neither draft-07 nor 2020-12/);
    },
  );
});

describe("anchors", () => {
  it("are found, the first of a name, also under $id", () => {
    const schema = {
      $defs: { a: { $anchor: "x", type: "string" }, b: { $anchor: "x", type: "number" } },
      properties: { p: { $ref: "#x" } },
    };
    expect(schemaFault(schema)).toBeUndefined();
  });

  it("20,000 references to anchors that are not there are judged in one pass", () => {
    const names = Array.from({ length: 20_000 }, (_, at) => [`p${at}`, { $ref: `#n${at}` }]);
    const schema = { properties: Object.fromEntries(names) };
    expect(processorMs(() => schemaFault(schema))).toBeLessThan(2_000);
  });
});
