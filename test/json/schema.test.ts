import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compilePattern } from "../../src/json/pattern.ts";
import { describeProblems, schemaProblem, validate } from "../../src/json/schema.ts";
import { canonical } from "../../src/json/unique-items.ts";
import { schemaProblemsMax } from "../../src/limits.ts";
import { processorMs } from "./processor-time.ts";

const draft7 = "http://json-schema.org/draft-07/schema#";

test("names each place by pointer and what the schema wants", () => {
  const schema = {
    type: "object",
    properties: {
      port: { type: "integer", maximum: 65535 },
      "a/b": { type: "string" },
      list: { items: { required: ["id"] } },
    },
    required: ["host"],
    additionalProperties: false,
  };
  expect(validate(schema, { port: 1.5, "a/b": 1, list: [{}], extra: 1 })).toEqual(
    expect.arrayContaining([
      { path: "/host", message: "is required" },
      { path: "/extra", message: "is not allowed by the schema" },
      { path: "/port", message: "must be integer" },
      { path: "/a~1b", message: "must be string" },
      { path: "/list/0/id", message: "is required" },
    ]),
  );
  expect(
    describeProblems([
      { path: "/host", message: "is required" },
      { path: "", message: "must be object" },
    ]),
  ).toBe('"/host" is required; must be object');
});

test("never repeats a value, whichever keyword fails", () => {
  const canary = "canary4711";
  const failing: readonly unknown[] = [
    { type: "integer" },
    { enum: ["a"] },
    { const: "b" },
    { pattern: "^x$" },
    { minLength: 99 },
    { maxLength: 1 },
    { format: "uri" },
    { not: {} },
    { anyOf: [{ type: "null" }, { const: 1 }] },
    { oneOf: [{}, {}] },
    false,
    { if: {}, else: true, not: {} },
  ];
  for (const schema of failing) {
    const problems = validate(schema, canary);
    expect(problems.length).toBeGreaterThan(0);
    expect(JSON.stringify(problems)).not.toContain(canary);
  }
  const structured = [
    { uniqueItems: true },
    { contains: { type: "null" } },
    { maxItems: 1 },
    { items: { type: "null" } },
  ];
  for (const schema of structured) expect(JSON.stringify(validate(schema, [canary, canary]))).not.toContain(canary);
});

describe("dialects", () => {
  test("2020-12 knows prefixItems, draft-07 knows tuples in items", () => {
    expect(validate({ prefixItems: [{ type: "number" }] }, ["x"])).toHaveLength(1);
    expect(validate({ $schema: draft7, items: [{ type: "number" }] }, ["x"])).toHaveLength(1);
    expect(validate({ $schema: draft7, prefixItems: [{ type: "number" }] }, ["x"])).toEqual([]);
    expect(schemaProblem({ items: [{ type: "number" }] })).toContain("malformed at");
  });

  test.each(["http://json-schema.org/draft-03/schema#", "https://example.com/own", 7])(
    "$schema %j is one clear problem",
    ($schema) => {
      expect(validate({ $schema }, 1)).toEqual([
        { path: "", message: "cannot be checked: the schema's $schema is neither draft-07 nor 2020-12" },
      ]);
    },
  );

  test("a schema that takes the metaschema's id disturbs no other", () => {
    expect(validate({ $schema: draft7, $id: draft7, type: "object" }, 1)).toEqual([
      { path: "", message: "must be object" },
    ]);
    expect(schemaProblem({ $schema: draft7, type: "objec" })).toContain('malformed at "/type"');
    expect(validate({ $id: "https://x.test/a", type: "string" }, 1)).toHaveLength(1);
    expect(validate({ $id: "https://x.test/a", type: "number" }, 1)).toEqual([]);
  });

  test("local references work, also to the root", () => {
    const tree = {
      type: "object",
      properties: { next: { $ref: "#" }, id: { $ref: "#/$defs/id" } },
      $defs: { id: { type: "integer" } },
    };
    expect(validate(tree, { next: { next: { id: 1 } } })).toEqual([]);
    expect(validate(tree, { next: { next: { id: "x" } } })).toEqual([
      { path: "/next/next/id", message: "must be integer" },
    ]);
  });
});

describe("schemas that cannot be used", () => {
  const chain: Record<string, unknown> = {};
  for (let at = 0; at < 40; at += 1)
    chain[`d${at}`] = { allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] };
  const long: Record<string, unknown> = {};
  for (let at = 0; at < 20_000; at += 1) long[`d${at}`] = { $ref: `#/$defs/d${at + 1}` };
  let deep: unknown = {};
  for (let at = 0; at < 50_000; at += 1) deep = { not: deep };

  test.each<[string, unknown]>([
    ["no schema", 7],
    ["null", null],
    ["a list", []],
    ["an unknown type", { type: "objec" }],
    ["a remote reference", { properties: { a: { $ref: "https://example.com/x.json" } } }],
    ["a reference to nothing", { $ref: "#/$defs/none" }],
    ["look-ahead", { pattern: "^(?=a)b" }],
    ["a back-reference", { pattern: "(a)\\1" }],
    ["a malformed pattern", { pattern: "(" }],
    ["a huge repetition", { pattern: "^((a{0,100}){0,100}){0,100}$" }],
    ["an asynchronous schema", { $async: true, type: "object" }],
    ["references that double forty times", { $ref: "#/$defs/d0", $defs: { ...chain, d40: {} } }],
    ["an endless chain of references", { $ref: "#/$defs/d0", $defs: { ...long, d20000: {} } }],
    ["50,000 levels", deep],
    ["two megabytes", { description: "x".repeat(2 * 1024 * 1024) }],
  ])("%s is one problem, found at once", (_name, schema) => {
    const spent = processorMs(() => {
      const problems = validate(schema, {});
      expect(problems).toHaveLength(1);
      expect(problems[0]?.message).toMatch(/^cannot be checked: the schema/);
    });
    expect(spent).toBeLessThan(1_000);
  });

  test("one that refers to itself without consuming the value is one problem", () => {
    expect(validate({ $ref: "#/$defs/a", $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } } }, 1)[0]?.message).toMatch(
      /^cannot be checked: /,
    );
  });
});

describe("hostile values", () => {
  const quick = (action: () => unknown, ms: number): unknown => {
    let result: unknown;
    const spent = processorMs(() => {
      result = action();
    });
    expect(spent).toBeLessThan(ms);
    return result;
  };

  test("a pattern that backtracks elsewhere takes linear time", () => {
    expect(quick(() => validate({ pattern: "^(a+)+$" }, `${"a".repeat(50_000)}!`), 1_000)).toHaveLength(1);
    expect(
      quick(
        () =>
          validate(
            { patternProperties: { "^(a|a)*$": true }, additionalProperties: false },
            { [`${"a".repeat(20_000)}!`]: 1 },
          ),
        1_000,
      ),
    ).toHaveLength(1);
  });

  test("uniqueItems over 60,000 objects is one pass", () => {
    const items = Array.from({ length: 60_000 }, (_, at) => ({ at }));
    expect(quick(() => validate({ uniqueItems: true }, items), 3_000)).toEqual([]);
    expect(validate({ uniqueItems: true }, [...items, { at: 0 }])).toHaveLength(1);
  });

  test.each([
    [[1, 1.0], false],
    [[1, "1"], true],
    [[0, -0], false],
    [[null, false, 0, ""], true],
    [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      false,
    ],
    [
      [
        [1, 2],
        [2, 1],
      ],
      true,
    ],
    [[[1, 2], ["1,2"]], true],
  ])("uniqueItems of %j", (items, unique) => {
    expect(validate({ uniqueItems: true }, items).length === 0).toBe(unique);
    expect(validate({ uniqueItems: false }, items)).toEqual([]);
  });

  test("formats take linear time", () => {
    const texts = [
      `${"a".repeat(50_000)}!`,
      `${"a.".repeat(25_000)}!`,
      "1:".repeat(25_000),
      `http://${"a-".repeat(25_000)}\u0001`,
      `a@${"a.".repeat(25_000)}-`,
    ];
    for (const format of [
      "email",
      "uri",
      "uri-reference",
      "hostname",
      "ipv6",
      "date-time",
      "duration",
      "uri-template",
      "json-pointer",
      "uuid",
    ]) {
      for (const text of texts) quick(() => validate({ format }, text), 1_000);
    }
  });

  test("problems are counted beyond the bound", () => {
    const problems = validate(
      { items: { type: "string" } },
      Array.from({ length: 1_000 }, () => 1),
    );
    expect(problems).toHaveLength(schemaProblemsMax + 1);
    expect(problems.at(-1)).toEqual({ path: "", message: `has ${1_000 - schemaProblemsMax} more problems` });
  });

  test("prototype names in schemas and values are ordinary names", () => {
    expect(validate({ required: ["toString"] }, {})).toEqual([{ path: "/toString", message: "is required" }]);
    expect(validate({ properties: {}, additionalProperties: false }, { constructor: 1 })).toEqual([
      { path: "/constructor", message: "is not allowed by the schema" },
    ]);
  });
});

test("patterns mean what they mean in ECMAScript, where RE2 has them", () => {
  const patterns = [
    "^[a-z]{2,4}$",
    "\\d+",
    "^\\w+@\\w+$",
    "\\p{L}",
    "a|b",
    "^$",
    "[^\\s]",
    "\\/",
    "\\u0041",
    "^(?:x|y)+$",
    "(?<name>a)b",
  ];
  const text = fc.string({ unit: fc.constantFrom("a", "b", "x", "y", "1", "@", "é", " ", "A", "/", "_") });
  for (const pattern of patterns) {
    const linear = compilePattern(pattern);
    const native = new RegExp(pattern, "u");
    fc.assert(
      fc.property(text, (sample) => {
        expect(linear.test(sample)).toBe(native.test(sample));
      }),
      { numRuns: 200 },
    );
  }
});

test("canonical text is equal exactly when the values are", () => {
  expect(canonical({ b: [1, { d: null, c: "x" }], a: -0 })).toBe('{"a":0,"b":[1,{"c":"x","d":null}]}');
});

test("neither value nor schema is changed", () => {
  const schema = { type: "object", properties: { a: { default: 1 } }, additionalProperties: false };
  const value = { b: 1 };
  validate(schema, value);
  expect(value).toEqual({ b: 1 });
  expect(schema).toEqual({ type: "object", properties: { a: { default: 1 } }, additionalProperties: false });
});
