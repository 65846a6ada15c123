import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { exampleFromSchema } from "../../src/environments/example-from-schema.ts";
import { schemaArbitrary } from "./schema-arbitrary.ts";

/** Formats are not checked here; the table below shows them. */
const ajv = new Ajv2020({ strict: false, validateFormats: false });

const petSchema = {
  required: ["path", "body"],
  properties: {
    path: { type: "object", required: ["petId"], properties: { petId: { type: "integer", minimum: 1 } } },
    query: { type: "object", properties: { verbose: { type: "boolean" } } },
    body: { $ref: "#/$defs/Pet" },
  },
  $defs: {
    Pet: {
      type: "object",
      required: ["name", "tags", "category", "status", "bornAt"],
      properties: {
        name: { type: "string", minLength: 3, examples: ["Tapir Tom"] },
        tags: { type: "array", items: { type: "string", maxLength: 4 }, minItems: 2 },
        status: { enum: ["available", "sold"] },
        category: { $ref: "#/$defs/Category" },
        bornAt: { type: ["string", "null"], format: "date-time" },
        note: { type: "string" },
      },
    },
    Category: { required: ["id"], properties: { id: { type: "integer" }, parent: { $ref: "#/$defs/Category" } } },
  },
};

test("required properties are filled in, from the document where it proposes a value", () => {
  expect(exampleFromSchema(petSchema)).toEqual({
    path: { petId: 1 },
    body: {
      name: "Tapir Tom",
      tags: ["stri", "stri"],
      category: { id: 1 },
      status: "available",
      bornAt: "2025-01-31T12:00:00Z",
    },
  });
});

test.each([
  ["an object", petSchema],
  [
    "numbers",
    {
      prefixItems: [
        { type: "number", exclusiveMinimum: 1 },
        { type: "integer", minimum: 7, multipleOf: 5 },
      ],
    },
  ],
  ["a small range", { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.6 }],
  ["negative numbers", { type: "integer", maximum: -3, multipleOf: 2 }],
  [
    "merged parts",
    { allOf: [{ required: ["a"], properties: { a: { const: 1 } } }, { required: ["b"] }], required: ["c"] },
  ],
  ["an alternative beside null", { anyOf: [{ type: "null" }, { type: "object", required: ["a"] }] }],
  [
    "a referenced alternative",
    { oneOf: [{ $ref: "#/$defs/A" }], $defs: { A: { type: "array", items: { type: "null" } } } },
  ],
  ["long text", { type: "string", minLength: 50 }],
  ["short text", { type: "string", maxLength: 2 }],
  ["no items", { type: "array", maxItems: 0 }],
  ["several items", { type: "array", minItems: 3, items: { type: "boolean" } }],
  ["a tuple", { type: "array", prefixItems: [{ const: "a" }, { const: 2 }], items: false }],
  [
    "a property named __proto__",
    { type: "object", required: ["__proto__"], properties: { ["__proto__"]: { const: 1 } } },
  ],
])("the example for %s is valid", (_, schema) => {
  const example = exampleFromSchema(schema);
  const validate = ajv.compile(schema);
  expect(validate(example), `${JSON.stringify(example)}: ${ajv.errorsText(validate.errors)}`).toBe(true);
});

test("an example of the document that is too long to show is replaced by a made one", () => {
  expect(exampleFromSchema({ type: "string", example: "x".repeat(10_000) })).toBe("string");
});

test("a false or missing default counts as given", () => {
  expect(exampleFromSchema({ type: "boolean", default: false })).toBe(false);
  expect(exampleFromSchema({ type: ["string", "null"], enum: [null, "a"] })).toBe("a");
});

test("circles and bombs end in a small example", () => {
  const circle = {
    $ref: "#/$defs/A",
    $defs: { A: { required: ["a", "b"], properties: { a: { $ref: "#" }, b: { $ref: "#" } } } },
  };
  const bomb = { $ref: "#/$defs/A", $defs: { A: { allOf: [{ $ref: "#/$defs/A" }, { $ref: "#/$defs/A" }] } } };
  const fan = { $ref: "#/$defs/A", $defs: { A: { allOf: Array.from({ length: 60 }, () => ({ $ref: "#/$defs/A" })) } } };
  const wide = { required: Array.from({ length: 100_000 }, (_, index) => `p${index}`) };
  for (const schema of [circle, bomb, fan, wide]) {
    expect(JSON.stringify(exampleFromSchema(schema)).length).toBeLessThan(5_000);
  }
});

test("whatever the schema, there is a small example that JSON can hold", () => {
  fc.assert(
    fc.property(schemaArbitrary, (schema) => {
      const example = exampleFromSchema(schema);
      expect(JSON.stringify(example)?.length).toBeLessThan(100_000);
    }),
    { numRuns: 500 },
  );
});
