import fc from "fast-check";
import { expect, test } from "vitest";
import { arrayIndex, formatPointer, parsePointer } from "../../src/json/pointer.ts";

test.each([
  ["", []],
  ["/", [""]],
  ["//", ["", ""]],
  ["/a~01b", ["a~1b"]],
  ["/a~1b", ["a/b"]],
  ["/~0", ["~"]],
  ["/~00", ["~0"]],
  ["/ ", [" "]],
  ["/%20", ["%20"]],
  ["/a/-", ["a", "-"]],
  ["/é", ["é"]],
])("reads %j", (text, tokens) => {
  expect(parsePointer(text)).toEqual(tokens);
  expect(formatPointer(tokens)).toBe(text);
});

test.each(["a", "a/b", "#/a", "/~", "/~2", "/a~", "/a~/b", "/~a", "~0", " /a"])("%j is no pointer", (text) => {
  expect(parsePointer(text)).toBeUndefined();
});

test("any tokens come back from the pointer they make", () => {
  const token = fc.string({ unit: fc.constantFrom("~", "/", "0", "1", "a", "é", "-", " ") });
  fc.assert(
    fc.property(fc.array(token), (tokens) => {
      expect(parsePointer(formatPointer(tokens))).toEqual(tokens);
    }),
  );
});

test.each([
  ["0", 0],
  ["7", 7],
  ["10", 10],
  ["9007199254740991", Number.MAX_SAFE_INTEGER],
])("%j is an array index", (token, index) => {
  expect(arrayIndex(token)).toBe(index);
});

test.each(["", "-", "-0", "-1", "+1", "01", "00", "1e0", "1.0", " 1", "1 ", "0x1", "١", "9007199254740993", "1\n"])(
  "%j is no array index",
  (token) => {
    expect(arrayIndex(token)).toBeUndefined();
  },
);
