/** JSON Patch: the public test suite, an independent implementation as oracle, and the classes where ours is stricter. */
import fc from "fast-check";
import * as rfc6902 from "rfc6902";
import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { applyOperations, applyPatch } from "../../src/json/patch.ts";
import { arrayIndex, parsePointer } from "../../src/json/pointer.ts";
import { patchCases, removesWhatIsNotThere } from "./patch-suite.ts";
import { bestProcessorMs, processorMs } from "./processor-time.ts";

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (isFailure(error) && error.kind === "invalid_request") return error.message;
    throw error;
  }
  throw new Error("Nothing was refused");
}

describe("public suite", () => {
  test("has all of its cases", () => {
    expect(patchCases).toHaveLength(108);
    expect(patchCases.filter(({ expected }) => expected === undefined)).toHaveLength(34);
    // All others come out as the suite says: 103 of 108.
    expect(patchCases.filter(removesWhatIsNotThere)).toHaveLength(5);
  });

  test.each(patchCases)("$name", (row) => {
    const given = structuredClone(row.doc);
    if (row.expected !== undefined) expect(applyOperations(row.doc, row.patch)).toEqual(row.expected.doc);
    else if (removesWhatIsNotThere(row)) expect(applyOperations(row.doc, row.patch)).toEqual(row.doc);
    else refusal(() => applyOperations(row.doc, row.patch));
    expect(row.doc).toEqual(given);
  });
});

describe("oracle", () => {
  const key = fc.constantFrom("a", "b", "0", "1", "-", "a/b", "~", "");
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(null, true, 0, 1, "x", ""),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
    ),
  }));
  const pointer = fc
    .array(key, { maxLength: 3 })
    .map((tokens) => tokens.map((token) => `/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""));
  const operation = fc.record({
    op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test"),
    path: pointer,
    from: pointer,
    value,
  });

  /** undefined: refused. */
  function byOracle(
    document: unknown,
    operations: readonly rfc6902.Operation[],
  ): { document: unknown } | "no evidence" | undefined {
    const holder = { document: structuredClone(document) };
    for (const one of structuredClone(operations)) {
      if (fallsOutsideArray(holder.document, one.path, one.op)) return "no evidence";
      if ("from" in one && fallsOutsideArray(holder.document, one.from, one.op)) return "no evidence";
      const moved = {
        ...one,
        path: `/document${one.path}`,
        ...("from" in one ? { from: `/document${one.from}` } : {}),
      };
      const error = failureOf(holder, moved as rfc6902.Operation);
      if (error !== null && error !== undefined) {
        if (one.op === "remove") continue;
        return undefined;
      }
      if (!("document" in holder)) return undefined;
    }
    return holder;
  }

  /** The oracle throws where a parent is a scalar, and answers its other errors. */
  function failureOf(holder: object, operation: rfc6902.Operation): unknown {
    try {
      return rfc6902.applyPatch(holder, [operation])[0];
    } catch (error) {
      return error;
    }
  }

  /** The oracle takes any token as an array index, leaves gaps and looks into strings; those cases are no evidence and have tests of their own. */
  function fallsOutsideArray(document: unknown, pointer: string, op: string): boolean {
    let value = document;
    for (const token of parsePointer(pointer) ?? []) {
      if (typeof value === "string") return true;
      if (Array.isArray(value)) {
        const index = arrayIndex(token);
        if (index === undefined || index > value.length - (op === "move" ? 1 : 0)) return true;
      }
      value = (value as Record<string, unknown> | null)?.[token];
    }
    return false;
  }

  test("agrees with rfc6902 on any document and single operation", () => {
    fc.assert(
      fc.property(value, fc.array(operation, { maxLength: 3 }), (document, operations) => {
        // Left out: root removal, which the oracle cannot do; moves into oneself, which it accepts; and moves within one array,
        // where it finds the target before it removes the source, so indices are off by one (RFC 6902 section 4.4).
        for (const one of operations) {
          const from = one.from;
          const parent = /^(.*)\/[0-9]+$/.exec(from ?? "")?.[1];
          if (
            (one.op === "move" && parent !== undefined && one.path.startsWith(`${parent}/`)) ||
            (one.op === "remove" && one.path === "") ||
            (one.op === "move" && (one.path === from || from === "" || one.path.startsWith(`${from}/`)))
          )
            return;
        }
        const expected = byOracle(document, operations as readonly rfc6902.Operation[]);
        if (expected === "no evidence") return;
        if (expected === undefined) refusal(() => applyOperations(document, operations));
        else expect(applyOperations(document, operations)).toEqual(expected.document);
      }),
      { numRuns: 5_000 },
    );
  });

  test("never changes what it was given", () => {
    fc.assert(
      fc.property(value, fc.array(operation, { maxLength: 6 }), (document, operations) => {
        const before = JSON.stringify([document, operations]);
        try {
          applyOperations(document, operations);
        } catch (error) {
          expect(isFailure(error)).toBe(true);
        }
        expect(JSON.stringify([document, operations])).toBe(before);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("shape", () => {
  test.each([
    [{}, "The patch must be an array of JSON Patch operations"],
    [null, "The patch must be an array of JSON Patch operations"],
    [[null], "Operation 0 of the patch must be an object"],
    [[[]], "Operation 0 of the patch must be an object"],
    [[{ path: "/a" }], 'Operation 0 of the patch needs "op": one of add, remove, replace, move, copy, test'],
    [
      [{ op: "merge", path: "/a" }],
      'Operation 0 of the patch needs "op": one of add, remove, replace, move, copy, test',
    ],
    [
      [{ op: "_get", path: "/a" }],
      'Operation 0 of the patch needs "op": one of add, remove, replace, move, copy, test',
    ],
    [[{ op: "add", value: 1 }], 'Operation 0 of the patch needs "path": a JSON Pointer'],
    [[{ op: "add", path: 1, value: 1 }], 'Operation 0 of the patch needs "path": a JSON Pointer'],
    [[{ op: "add", path: "/a" }], 'Operation 0 of the patch needs "value"'],
    [[{ op: "replace", path: "/a" }], 'Operation 0 of the patch needs "value"'],
    [[{ op: "test", path: "/a" }], 'Operation 0 of the patch needs "value"'],
    [[{ op: "move", path: "/a" }], 'Operation 0 of the patch needs "from": a JSON Pointer'],
    [[{ op: "copy", path: "/a", from: null }], 'Operation 0 of the patch needs "from": a JSON Pointer'],
    [[{ op: "add", path: "a", value: 1 }], 'Cannot apply operation 0 (add "a"): "path" is not a JSON Pointer'],
    [[{ op: "remove", path: "/~2" }], 'Cannot apply operation 0 (remove "/~2"): "path" is not a JSON Pointer'],
    [[{ op: "copy", path: "/a", from: "/a~" }], 'Cannot apply operation 0 (copy "/a"): "from" is not a JSON Pointer'],
  ])("refuses %j", (patch, message) => {
    expect(refusal(() => applyPatch({}, patch))).toBe(message);
  });

  test("a malformed last operation is found before anything is applied", () => {
    expect(
      refusal(() =>
        applyPatch({}, [
          { op: "test", path: "/no", value: 1 },
          { op: "x", path: "" },
        ]),
      ),
    ).toMatch(/^Operation 1/);
  });

  test("ignores members the RFC does not know, and takes null as a value", () => {
    expect(applyPatch({}, [{ op: "add", path: "/a", value: null, note: 1, from: 7 }])).toEqual({ a: null });
  });

  test("refuses more operations than the bound", () => {
    const many = Array.from({ length: 5_001 }, () => ({ op: "add", path: "/a", value: 1 }));
    expect(refusal(() => applyPatch({}, many))).toBe("The patch has 5001 operations, more than 5000");
  });
});

describe("removal of what is not there", () => {
  test.each(["/b", "/a/b/c", "/n/x", "/list/9", "/list/-", "/list/x", "/s/0", "/toString", "/list/length"])(
    "%s is ignored",
    (path) => {
      const document = { a: {}, n: null, list: [1, 2], s: "text" };
      expect(applyPatch(document, [{ op: "remove", path }])).toEqual(document);
    },
  );

  test("is judged at that moment of the sequence", () => {
    const add = { op: "add", path: "/b", value: 1 };
    const remove = { op: "remove", path: "/b" };
    expect(applyPatch({}, [add, remove])).toEqual({});
    expect(applyPatch({ b: 1 }, [remove, remove, add])).toEqual({ b: 1 });
    expect(
      applyPatch({ b: 1, c: 2 }, [
        { op: "remove", path: "/x" },
        { op: "remove", path: "/c" },
      ]),
    ).toEqual({ b: 1 });
  });

  test.each(["/list/01", "/list/00"])("a bad index is still refused: %s", (path) => {
    expect(refusal(() => applyPatch({ list: [1, 2] }, [{ op: "remove", path }]))).toContain("no valid array index");
  });
});

describe("arrays", () => {
  test.each(["5", "01", "1e0", "-1", " 1", "1.0", "+1", "3", "4294967296", "9007199254740993", "x", ""])(
    "add at %j is refused",
    (token) => {
      refusal(() => applyPatch({ list: [1, 2] }, [{ op: "add", path: `/list/${token}`, value: 9 }]));
    },
  );

  test("add at the end and at - appends", () => {
    expect(
      applyPatch({ list: [1, 2] }, [
        { op: "add", path: "/list/2", value: 3 },
        { op: "add", path: "/list/-", value: 4 },
      ]),
    ).toEqual({ list: [1, 2, 3, 4] });
  });

  test.each([
    { op: "replace", path: "/list/-", value: 1 },
    { op: "replace", path: "/list/2", value: 1 },
    { op: "test", path: "/list/-", value: 1 },
    { op: "copy", from: "/list/-", path: "/b" },
    { op: "move", from: "/list/-", path: "/b" },
    { op: "move", from: "/list/0", path: "/list/2" },
    { op: "add", path: "/list/length", value: 1 },
    { op: "add", path: "/list/0/x", value: 1 },
  ])("%j is refused", (operation) => {
    refusal(() => applyPatch({ list: [1, 2] }, [operation]));
  });

  test("numbers and - are ordinary keys of an object", () => {
    const patch = [
      { op: "add", path: "/o/01", value: 1 },
      { op: "add", path: "/o/-", value: 2 },
      { op: "test", path: "/o/-", value: 2 },
    ];
    expect(applyPatch({ o: {} }, patch)).toEqual({ o: { "01": 1, "-": 2 } });
  });
});

describe("root and empty key", () => {
  test("the empty pointer is the document, the slash is the empty key", () => {
    expect(
      applyPatch({ a: 1 }, [
        { op: "replace", path: "", value: { x: 1 } },
        { op: "add", path: "/", value: 5 },
        { op: "test", path: "", value: { "": 5, x: 1 } },
      ]),
    ).toEqual({ x: 1, "": 5 });
  });

  test.each([5, null, [], "x", true])("a result that is %j is refused", (value) => {
    expect(refusal(() => applyPatch({}, [{ op: "replace", path: "", value }]))).toBe(
      "The patch would leave something that is not a JSON object",
    );
  });

  test("removing the document is refused unless an object follows", () => {
    refusal(() => applyPatch({ a: 1 }, [{ op: "remove", path: "" }]));
    expect(
      applyPatch({ a: 1 }, [
        { op: "remove", path: "" },
        { op: "add", path: "", value: { b: 1 } },
      ]),
    ).toEqual({ b: 1 });
    expect(applyPatch({ a: { b: 1 } }, [{ op: "move", from: "/a", path: "" }])).toEqual({ b: 1 });
  });
});

describe("move and copy", () => {
  test("a value cannot move into itself, by whole tokens", () => {
    expect(refusal(() => applyPatch({ a: {} }, [{ op: "move", from: "/a", path: "/a/b" }]))).toContain(
      "cannot move into itself",
    );
    expect(refusal(() => applyPatch({ a: {} }, [{ op: "move", from: "", path: "/a" }]))).toContain(
      "cannot move into itself",
    );
    expect(applyPatch({ a: 1 }, [{ op: "move", from: "/a", path: "/ab" }])).toEqual({ ab: 1 });
    expect(applyPatch({ a: { x: 1 } }, [{ op: "copy", from: "/a", path: "/a/b" }])).toEqual({
      a: { x: 1, b: { x: 1 } },
    });
    expect(applyPatch({ a: 1 }, [{ op: "move", from: "/a", path: "/a" }])).toEqual({ a: 1 });
  });

  test("a copy shares nothing with what it was copied from", () => {
    expect(
      applyPatch({ a: { x: 1 } }, [
        { op: "copy", from: "/a", path: "/b" },
        { op: "add", path: "/a/y", value: 2 },
      ]),
    ).toEqual({ a: { x: 1, y: 2 }, b: { x: 1 } });
  });

  test("a value given once and used twice is two values", () => {
    const shared = { x: 1 };
    expect(
      applyPatch({}, [
        { op: "add", path: "/a", value: shared },
        { op: "add", path: "/b", value: shared },
        { op: "add", path: "/a/y", value: 2 },
      ]),
    ).toEqual({ a: { x: 1, y: 2 }, b: { x: 1 } });
    expect(shared).toEqual({ x: 1 });
  });

  test("copies cannot grow the document without end, in size or in depth", () => {
    const doubling = Array.from({ length: 5_000 }, (_, at) => ({ op: "copy", from: "/a", path: `/a/${at}` }));
    const spent = processorMs(() => {
      expect(refusal(() => applyPatch({ a: {} }, doubling))).toMatch(/nest too deep|copies too much/);
      const wide = Array.from({ length: 5_000 }, () => ({ op: "copy", from: "/a", path: "/b/-" }));
      expect(refusal(() => applyPatch({ a: "x".repeat(100_000), b: [] }, wide))).toContain("copies too much");
    });
    expect(spent).toBeLessThan(2_000);
  });

  test("moves cannot nest deeper than a body may", () => {
    const document = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`k${at}`, {}]));
    const patch = Array.from({ length: 79 }, (_, at) => ({ op: "move", from: `/k${at}`, path: `/k${at + 1}/in` }));
    expect(refusal(() => applyPatch(document, patch))).toBe("The patched document nests deeper than 64 levels");
  });
});

describe("test operation", () => {
  test.each([
    [1, 1.0, true],
    [1, "1", false],
    [0, false, false],
    [null, 0, false],
    [{ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 }, true],
    [[1, 2], [2, 1], false],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{}, [], false],
    [[], {}, false],
    ["é", "e\u0301", false],
  ])("%j against %j", (stored, value, equal) => {
    const run = (): unknown => applyPatch({ v: stored }, [{ op: "test", path: "/v", value }]);
    if (equal) expect(run()).toEqual({ v: stored });
    else refusal(run);
  });

  test("a failing one names index, kind and path but neither value", () => {
    const patch = [
      { op: "add", path: "/x", value: "canary-new" },
      { op: "test", path: "/token", value: "canary-guess" },
    ];
    expect(refusal(() => applyPatch({ token: "canary-stored" }, patch))).toBe(
      'Cannot apply operation 1 (test "/token"): the stored value is another',
    );
  });
});

describe("prototypes", () => {
  const places = [
    "/__proto__/p",
    "/__proto__",
    "/a/__proto__/p",
    "/constructor/prototype/p",
    "/a/constructor/prototype",
    "/list/constructor/prototype/p",
  ];

  test.each(places)("path %s is refused for every kind", (path) => {
    for (const op of ["add", "replace", "test", "remove"])
      refusal(() => applyPatch({ a: {}, list: [] }, [{ op, path, value: 1 }]));
    for (const op of ["move", "copy"]) {
      refusal(() => applyPatch({ a: {}, list: [] }, [{ op, from: "/a", path }]));
      refusal(() => applyPatch({ a: {}, list: [] }, [{ op, from: path, path: "/b" }]));
    }
    expect(({} as { p?: number }).p).toBeUndefined();
  });

  test.each(['{"__proto__":{"p":1}}', '{"a":[{"__proto__":1}]}', '{"constructor":{"prototype":{"p":1}}}'])(
    "value %s is refused",
    (text) => {
      for (const op of ["add", "replace", "test"])
        refusal(() => applyPatch({ a: 1 }, [{ op, path: "/a", value: JSON.parse(text) }]));
    },
  );

  test.each(["/constructor/name", "/toString", "/hasOwnProperty", "/a/length"])(
    "inherited %s does not exist",
    (from) => {
      refusal(() => applyPatch({ a: {} }, [{ op: "copy", from, path: "/b" }]));
      refusal(() => applyPatch({ a: {} }, [{ op: "replace", path: from, value: 1 }]));
    },
  );

  test("constructor alone and toString are ordinary keys", () => {
    expect(
      applyPatch({}, [
        { op: "add", path: "/constructor", value: 1 },
        { op: "add", path: "/toString", value: 2 },
      ]),
    ).toEqual({ constructor: 1, toString: 2 });
  });

  test("a prototype cannot be put together from two harmless operations", () => {
    const patch = [
      { op: "add", path: "/constructor", value: {} },
      { op: "add", path: "/x", value: {} },
      { op: "move", from: "/x", path: "/constructor/prototype" },
    ];
    refusal(() => applyPatch({}, patch));
    refusal(() =>
      applyPatch({}, [
        { op: "add", path: "/x", value: { prototype: {} } },
        { op: "move", from: "/x", path: "/constructor" },
      ]),
    );
  });
});

test("an error never repeats a value, whatever fails", () => {
  const canary = "canary-4711";
  const document = { token: canary, list: [canary], deep: { token: canary } };
  const failing = [
    { op: "test", path: "", value: {} },
    { op: "test", path: "/deep", value: { token: 1 } },
    { op: "replace", path: "/none", value: canary },
    { op: "add", path: "/token/x", value: canary },
    { op: "add", path: "/list/9", value: canary },
    { op: "copy", from: "/none", path: "/a" },
    { op: "move", from: "/deep", path: "/deep/in" },
    { op: "replace", path: "", value: canary },
    { op: "add", path: "/a", value: JSON.parse(`{"__proto__":"${canary}"}`) },
  ];
  for (const operation of failing) expect(refusal(() => applyPatch(document, [operation]))).not.toContain(canary);
});

test("a long path is shortened in the error", () => {
  expect(
    refusal(() => applyPatch({}, [{ op: "replace", path: `/${"x".repeat(100_000)}`, value: 1 }])).length,
  ).toBeLessThan(300);
});

test("5,000 operations on one document are quick", () => {
  const patch = Array.from({ length: 5_000 }, (_, at) => ({
    op: at % 5 === 4 ? "remove" : "add",
    path: `/k${at % 1_000}`,
    value: { at, text: "x" },
  }));
  expect(Object.keys(applyPatch({}, patch))).toHaveLength(800);
  expect(bestProcessorMs(() => applyPatch({}, patch))).toBeLessThan(200);
});
