/** Two promises: ordinary schemas read well (tables), and no schema at all breaks the text or its bound (properties). */
import fc from "fast-check";
import { transformSync } from "oxc-transform";
import { describe, expect, test } from "vitest";
import { typesBytesMax, typesFromSchemas } from "../../src/environments/types-from-schema.ts";
import { hostileTexts, schemaArbitrary } from "./schema-arbitrary.ts";

const typeOf = (schema: unknown) => typesFromSchemas([{ name: "T", schema }]);

function parseErrors(text: string): string[] {
  return transformSync("types.ts", text).errors.map(({ message }) => message);
}

describe("types say what schemas say:", () => {
  test.each([
    ["true", true, "unknown"],
    ["false", false, "never"],
    ["an empty schema", {}, "unknown"],
    ["a malformed schema", "string", "unknown"],
    ["a string", { type: "string" }, "string"],
    ["an unknown type", { type: "file" }, "unknown"],
    ["nullable in 3.1", { type: ["string", "null"] }, "string | null"],
    ["nullable in 3.0", { type: "string", nullable: true }, "string | null"],
    ["an enum", { type: "string", enum: ["a", "b", null] }, '"a" | "b" | null'],
    ["a const", { const: { a: [1, -2] } }, '{"a":[1,-2]}'],
    ["an array", { type: "array", items: { type: "boolean" } }, "boolean[]"],
    ["an array of unions", { type: "array", items: { type: ["string", "number"] } }, "Array<string | number>"],
    ["an array of anything", { type: "array" }, "unknown[]"],
    ["an open tuple", { prefixItems: [{ type: "string" }, { type: "number" }] }, "[string?, number?, ...unknown[]]"],
    ["a closed tuple", { prefixItems: [{ type: ["string", "null"] }], items: false }, "[(string | null)?]"],
    ["a draft-07 tuple", { items: [{ type: "string" }], additionalItems: { type: "null" } }, "[string?, ...null[]]"],
    ["a closed empty object", { type: "object", additionalProperties: false }, "{}"],
    ["an object of anything", { type: "object" }, "{ [name: string]: unknown }"],
    ["a map", { type: "object", additionalProperties: { type: "number" } }, "{ [name: string]: number }"],
    ["pattern properties", { patternProperties: { "^x-": { type: "string" } } }, "{ [name: string]: string }"],
    ["one of", { oneOf: [{ type: "string" }, { type: "number" }] }, "string | number"],
    ["equal members once", { anyOf: [{ type: "number" }, { type: "integer" }] }, "number"],
    ["all of", { allOf: [{ const: 1 }, { enum: [1, 2] }] }, "1 & (1 | 2)"],
    ["required-only alternatives", { type: "string", anyOf: [{ required: ["a"] }, { required: ["b"] }] }, "string"],
    ["a reference that leads nowhere", { $ref: "#/$defs/Gone" }, "unknown"],
    ["a reference to elsewhere", { $ref: "https://example.com/pet.json" }, "unknown"],
    [
      "references in a circle",
      { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" } } },
      "unknown",
    ],
    ["unknown keywords", { type: "string", "x-odd": { deep: [1] }, if: {}, not: {} }, "string"],
  ])("%s", (_, schema, expected) => {
    expect(typeOf(schema)).toBe(`type T = ${expected};\n`);
  });

  test("the least length of a tuple makes its first items required", () => {
    const schema = { prefixItems: [{ type: "string" }, { type: "number" }], items: false, minItems: 1 };
    expect(typeOf(schema)).toBe("/** Minimum items 1 */\ntype T = [string, number?];\n");
  });

  test("an object has comments, optional and required properties, and quoted odd names", () => {
    const schema = {
      description: "A pet",
      required: ["name"],
      properties: {
        name: { type: "string", description: "Its name.", minLength: 1 },
        "odd-name": { type: "integer", default: 3, maximum: 9 },
        deep: { properties: { down: { type: "string", format: "date" } } },
      },
      additionalProperties: { type: "string" },
    };
    expect(typeOf(schema)).toBe(`\
/** A pet */
type T = {
  /** Its name. Minimum length 1 */
  name: string;
  /** Integer, maximum 9, default 3 */
  "odd-name"?: number;
  deep?: {
    /** Format date */
    down?: string;
  };
} & { [name: string]: string };
`);
  });

  test("a circle of definitions is written once, by name", () => {
    const schema = {
      $ref: "#/$defs/tree-node",
      $defs: {
        "tree-node": { properties: { children: { items: { $ref: "#/$defs/tree-node" } }, root: { $ref: "#" } } },
      },
    };
    expect(typeOf(schema)).toBe(`\
type T = TreeNode;

type TreeNode = {
  children?: TreeNode[];
  root?: T;
};
`);
  });

  test("definitions that two schemas share are written once, others with the same name twice", () => {
    const shared = { type: "string", enum: ["a"] };
    const text = typesFromSchemas([
      {
        name: "In",
        schema: {
          items: { anyOf: [{ $ref: "#/$defs/S" }, { $ref: "#/$defs/P" }] },
          $defs: { S: shared, P: { const: 1 } },
        },
      },
      {
        name: "Out",
        schema: {
          items: { anyOf: [{ $ref: "#/$defs/S" }, { $ref: "#/$defs/P" }] },
          $defs: { S: shared, P: { const: 2 } },
        },
      },
    ]);
    expect(text).toBe(
      'type In = Array<S | P>;\n\ntype S = "a";\n\ntype P = 1;\n\ntype Out = Array<S | P2>;\n\ntype P2 = 2;\n',
    );
  });

  test("a definition equal in text is not shared when it leads to a different one", () => {
    const schema = (leaf: unknown) => ({ $ref: "#/$defs/A", $defs: { A: { items: { $ref: "#/$defs/B" } }, B: leaf } });
    const text = typesFromSchemas([
      { name: "In", schema: schema({ const: 1 }) },
      { name: "Out", schema: schema({ const: 2 }) },
    ]);
    expect(text).toContain("type Out = A2;");
    expect(text).toContain("type B2 = 2;");
  });
});

describe("types are bounded:", () => {
  const wide = (count: number) => ({
    required: [`p${count - 1}`],
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`p${index}`, { description: "x".repeat(300) }]),
    ),
  });
  const nested = (depth: number, wrap: (inner: unknown) => unknown) => {
    let schema: unknown = { type: "string" };
    for (let level = 0; level < depth; level += 1) schema = wrap(schema);
    return schema;
  };
  const chain = (count: number) => ({
    $ref: "#/$defs/D0",
    $defs: Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `D${index}`,
        { properties: { next: { $ref: `#/$defs/D${index + 1}` } } },
      ]),
    ),
  });
  const circle: Record<string, unknown> = { type: "array" };
  circle.items = circle;

  test.each([
    ["wide objects", wide(20_000)],
    ["deep objects", nested(100_000, (inner) => ({ properties: { a: inner } }))],
    ["deep arrays", nested(100_000, (items) => ({ items }))],
    ["deep unions", nested(100_000, (inner) => ({ anyOf: [inner] }))],
    ["deep constants", { const: nested(100_000, (inner) => [inner]) }],
    ["deep definitions", { $ref: "#/$defs/A", $defs: { A: nested(100_000, (items) => ({ items })) } }],
    ["long chains of definitions", chain(50_000)],
    ["doubling trees", nested(40, (inner) => ({ properties: { a: inner, b: inner } }))],
    ["doubling unions", nested(40, (inner) => ({ anyOf: [inner, { items: inner }] }))],
    ["huge enums", { enum: Array.from({ length: 100_000 }, (_, index) => `value ${index}`) }],
    ["huge literals", { enum: ["x".repeat(1_000_000), ["y".repeat(1_000_000)]] }],
    ["huge names", { properties: { ["n".repeat(1_000_000)]: true } }],
    ["huge descriptions", { description: "ab ".repeat(1_000_000), type: "string" }],
    ["objects that contain themselves", circle],
  ])("%s", (_, schema) => {
    const text = typesFromSchemas([
      { name: "In", schema },
      { name: "Out", schema },
    ]);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(typesBytesMax);
    expect(parseErrors(text)).toEqual([]);
    expect(text).toContain("type Out =");
  });

  test("a required property of a wide object is still shown", () => {
    expect(typeOf(wide(500))).toContain("p499: unknown;");
  });

  test("deep parts go before the top", () => {
    const schema = nested(6, (inner) => ({
      properties: Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`property${index}`, inner])),
    }));
    const text = typeOf(schema);
    expect(text).toContain("\n  property5?: {");
    expect(text).toContain("left out");
  });
});

describe("whatever the schema,", () => {
  test("the text parses as TypeScript, keeps its bound and cannot leave a code fence", () => {
    fc.assert(
      fc.property(schemaArbitrary, schemaArbitrary, fc.integer({ min: 200, max: 4_000 }), (first, second, bytesMax) => {
        const text = typesFromSchemas(
          [
            { name: "In", schema: first },
            { name: "Out", schema: second },
          ],
          bytesMax,
        );
        expect(parseErrors(text)).toEqual([]);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytesMax);
        expect(text).not.toMatch(/`|\$\{/);
      }),
      { numRuns: 500 },
    );
  });

  test.each(hostileTexts)(
    "the text %j as description, name, literal, default or format stays where it was put",
    (hostile) => {
      const text = typeOf({
        description: hostile,
        title: hostile,
        required: [hostile],
        properties: { [hostile]: { enum: [hostile], default: hostile, format: hostile, pattern: hostile } },
        patternProperties: { [hostile]: { const: { [hostile]: hostile } } },
        items: { $ref: `#/$defs/${hostile}` },
        $defs: { [hostile]: { description: hostile, type: hostile } },
      });
      expect(parseErrors(text)).toEqual([]);
      expect(transformSync("types.ts", text).code.trim()).toMatch(/^(export \{\};?)?$/);
      expect(text).not.toMatch(/`|\$\{|[\u2028\u2029\u202e\u200b]|[\u{e0000}-\u{e007f}]/u);
    },
  );
});
