import fc from "fast-check";
import { expect, test } from "vitest";
import { cloneJson } from "../../src/json/clone.ts";

test("a copy is equal and shares nothing that can change", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.stringify(cloneJson(value))).toBe(JSON.stringify(value));
    }),
  );
  const given = { a: [{ b: 1 }] };
  const copy = cloneJson(given);
  copy.a[0] = { b: 2 };
  expect(given).toEqual({ a: [{ b: 1 }] });
});

test("a value used twice becomes two values", () => {
  const shared = { x: 1 };
  const copy = cloneJson({ a: shared, b: shared });
  expect(copy.a).not.toBe(copy.b);
});

test("a key named __proto__ stays a key", () => {
  const copy = cloneJson(JSON.parse('{"__proto__":{"polluted":true}}') as { polluted?: boolean });
  expect(Object.keys(copy)).toEqual(["__proto__"]);
  expect(copy.polluted).toBeUndefined();
});
