/** Schemas that are small, and make more work of small values than the event loop may be held for: refused before it is done. */
import { describe, expect, it, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { fillDefaults } from "../../src/json/defaults.ts";
import { compilePattern, linearPatterns } from "../../src/json/pattern.ts";
import { schemaProblem, validate } from "../../src/json/schema.ts";
import { effortFault } from "../../src/json/schema-effort.ts";
import { patchSettings } from "../../src/json/settings.ts";
import { processorMs } from "./processor-time.ts";

function named<Value>(count: number, value: (at: number) => Value, name: (at: number) => string = (at) => `k${at}`) {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), value(at)]));
}

function nested(levels: number): unknown {
  let value: unknown = {};
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}

const twice = [{ properties: { a: { $ref: "#" } } }, { properties: { a: { $ref: "#" } } }];
const mutual = (applicator: string) => ({
  $ref: "#/$defs/k0",
  $defs: named(12, () => ({ [applicator]: Array.from({ length: 12 }, (_, at) => ({ $ref: `#/$defs/k${at}` })) })),
});

describe("too much work is refused at once, by every way to the schema", () => {
  const refused: readonly (readonly [string, object, unknown])[] = [
    ["allOf that doubles with each level", { allOf: twice }, nested(50)],
    ["oneOf that doubles with each level", { oneOf: twice }, nested(50)],
    ["anyOf that doubles with each level", { anyOf: twice }, nested(50)],
    [
      "$dynamicRef that doubles",
      JSON.parse(JSON.stringify({ allOf: twice }).replaceAll("$ref", "$dynamicRef")),
      nested(50),
    ],
    [
      "references by the document's own $id that double",
      { $id: "https://x.test/a", allOf: JSON.parse(JSON.stringify(twice).replaceAll('"#"', '"https://x.test/a"')) },
      nested(50),
    ],
    [
      "anchors that double",
      {
        $ref: "#x",
        $defs: { x: { $anchor: "x", allOf: JSON.parse(JSON.stringify(twice).replaceAll('"#"', '"#x"')) } },
      },
      nested(50),
    ],
    [
      "items that double",
      { anyOf: [{ items: { $ref: "#" } }, { items: { $ref: "#" } }] },
      JSON.parse(`${"[".repeat(50)}${"]".repeat(50)}`),
    ],
    ["a circle of twelve through anyOf", mutual("anyOf"), { a: 1 }],
    ["a circle of twelve through allOf", mutual("allOf"), { a: 1 }],
    ["a circle through if", { if: { $ref: "#" }, else: true }, { a: 1 }],
    [
      "1,000 branches for 10,000 keys",
      { allOf: Array.from({ length: 1_000 }, () => ({ additionalProperties: { type: "string" } })) },
      named(10_000, () => ""),
    ],
    [
      "200 patterns for 10,000 keys",
      {
        patternProperties: named(
          200,
          () => true,
          (at) => `^x${at}`,
        ),
      },
      named(10_000, () => 1),
    ],
    [
      "parts asked for each of 10,000 keys",
      {
        unevaluatedProperties: false,
        allOf: Array.from({ length: 500 }, (_, at) => ({ properties: { [`z${at}`]: true } })),
      },
      named(10_000, () => 1),
    ],
    [
      "a long enum for many items",
      { items: { enum: Array.from({ length: 1_000 }, (_, at) => ({ at })) } },
      Array.from({ length: 2_000 }, () => ({ at: -1 })),
    ],
    ["an $id inside", { $defs: { a: { $id: "b", $ref: "#/$defs/c", $defs: { c: { type: "null" } } } } }, {}],
  ];

  it.each(refused)("%s", (_, schema, value) => {
    let problems: unknown;
    expect(
      processorMs(() => {
        problems = validate(schema, value);
      }),
    ).toBeLessThan(4_000);
    expect(problems).toEqual([{ path: "", message: expect.stringMatching(/^cannot be checked: the schema /) }]);
    if (Array.isArray(value)) return;
    const patch = { stored: {}, operations: [{ op: "replace", path: "", value }], enforceRequired: false } as const;
    expect(
      processorMs(() => expect(() => patchSettings({ kind: "config", schema, ...patch })).toThrow(/cannot be checked/)),
    ).toBeLessThan(4_000);
  });

  it("settings stored before are shown as they are", () => {
    const patch = {
      kind: "config",
      stored: nested(50) as Record<string, unknown>,
      operations: [{ op: "replace", path: "", value: {} }],
    } as const;
    expect(patchSettings({ ...patch, schema: { oneOf: [...twice, false] }, enforceRequired: false }).next).toEqual({});
  });
});

describe("honest work is done", () => {
  const tree = {
    type: "object",
    properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
  };
  const expression = {
    oneOf: ["and", "or", "not"].map((kind) => ({
      properties: { kind: { const: kind }, of: { type: "array", items: { $ref: "#" } } },
      required: ["kind", "of"],
    })),
  };
  const leaf = { kind: "or", of: [] };

  it.each<readonly [string, object, unknown]>([
    [
      "a tree of 5,000",
      tree,
      { name: "x", children: Array.from({ length: 5_000 }, () => ({ name: "y", children: [] })) },
    ],
    ["a chain of sixty", tree, Array.from({ length: 60 }).reduce((inner) => ({ name: "x", children: [inner] }), {})],
    [
      "an expression of six levels",
      expression,
      [1, 2, 3, 4, 5].reduce<object>((of) => ({ kind: "and", of: [of, leaf] }), leaf),
    ],
    ["200,000 numbers", { items: { type: "number", minimum: 0 } }, Array.from({ length: 200_000 }, (_, at) => at)],
    [
      "20,000 objects",
      { items: { properties: { a: { type: "string" }, b: { enum: ["x", "y"] } }, required: ["a"] } },
      Array.from({ length: 20_000 }, () => ({ a: "1", b: "x" })),
    ],
    [
      "10,000 keys of two patterns",
      { patternProperties: { "^k": { type: "number" }, "^x-": true } },
      named(10_000, () => 1),
    ],
  ])("%s", (_, schema, value) => {
    expect(effortFault(schema, value)).toBeUndefined();
    expect(validate(schema, value)).toEqual([]);
  });
});

describe("compiling", () => {
  it("2,000 references to a large definition compile it once", () => {
    const schema = {
      properties: named(2_000, () => ({ $ref: "#/$defs/x" })),
      $defs: { x: { properties: named(90, () => ({ type: "string" })) } },
    };
    expect(processorMs(() => expect(validate(schema, { k7: { k8: 1 } })).toHaveLength(1))).toBeLessThan(4_000);
  });

  it.each<readonly [string, object]>([
    ["properties", { properties: named(20_000, () => ({ type: "string" })) }],
    [
      "definitions outside of $defs",
      { allOf: Array.from({ length: 20_000 }, (_, at) => ({ $ref: `#/x/${at}` })), x: Array(20_000).fill({}) },
    ],
  ])("20,000 %s are too many for the event loop", (_, schema) => {
    expect(processorMs(() => expect(schemaProblem(schema)).toMatch(/too many subschemas|too large once/))).toBeLessThan(
      2_000,
    );
  });
});

describe("patterns", () => {
  test.each([
    "^((a{0,10}){0,10}){0,10}$",
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
    "^.{1,255}$",
    "[{]{3}x{a}\\{2,9}\\p{L}{1,3}",
    "^(?:[0-9a-f]{4}:){7}[0-9a-f]{4}$",
  ])("%s is used", (pattern) => {
    expect(() => linearPatterns()(pattern, "u")).not.toThrow();
  });

  test.each([
    "(a{0,1000}b)".repeat(100),
    `(${"abcdefghij".repeat(5)}){1000}`,
    "(\\p{L}{500}){100}",
    "((x{30}){30}){30}",
  ])("%s repeats too much", (pattern) => {
    expect(processorMs(() => expect(() => compilePattern(pattern)).toThrow(/repeats too much/))).toBeLessThan(500);
  });

  test("many that are large together are too much for one schema, and the same one many times is not", () => {
    const large = (at: number) => ({ pattern: `^a{900}${at}$` });
    expect(
      processorMs(() =>
        expect(schemaProblem({ anyOf: Array.from({ length: 1_000 }, (_, at) => large(at)) })).toMatch(
          /patterns are too large/,
        ),
      ),
    ).toBeLessThan(4_000);
    expect(schemaProblem({ anyOf: Array.from({ length: 1_000 }, () => large(1)) })).toBeUndefined();
  });
});

test("a large default for each of many items is refused before memory is full", () => {
  const schema = { properties: { list: { items: { properties: { a: { default: "x".repeat(200_000) } } } } } };
  expect(fillDefaults(schema, { list: [{}, {}] }).list).toHaveLength(2);
  expect(() => fillDefaults(schema, { list: Array.from({ length: 5_000 }, () => ({})) })).toThrow(
    /defaults of the schema are too large/,
  );
});

test("many values below long keys are refused: each would be listed by its whole path", () => {
  const value = { ["x".repeat(100_000)]: named(10_000, () => 1) };
  const patch = () =>
    patchSettings({
      kind: "secrets",
      schema: {},
      stored: {},
      operations: [{ op: "add", path: "/a", value }],
      enforceRequired: false,
    });
  expect(() => patch()).toThrow(/too many long paths/);
  try {
    patch();
  } catch (error) {
    expect(isFailure(error) && error.kind).toBe("invalid_request");
  }
});
