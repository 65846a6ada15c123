/** Configuration and secrets rules: API document 4.10 to 4.12, as tables of schema, stored value and patch. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import {
  declaredPart,
  outdatedPointers,
  patchSettings,
  presentPointers,
  settingsProblems,
  withDefaults,
} from "../../src/json/settings.ts";

type Stored = Record<string, unknown>;

const strict = (properties: Stored, more: Stored = {}): Stored => ({
  type: "object",
  properties,
  additionalProperties: false,
  ...more,
});
const text = { type: "string" };
const number = { type: "number" };

function patched(
  schema: unknown,
  stored: Stored,
  operations: unknown,
  enforceRequired = false,
): { next: unknown; outdated: readonly string[] } {
  return patchSettings({ kind: "config", schema, stored, operations, enforceRequired });
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (isFailure(error) && error.kind === "invalid_request") return error.message;
    throw error;
  }
  throw new Error("Nothing was refused");
}

describe("a schema that dropped a key", () => {
  const schema = strict({ ok: number });
  const stored = { old: 1, ok: 2 };

  test("keeps the stored value and lists it", () => {
    expect(patched(schema, stored, [{ op: "replace", path: "/ok", value: 3 }])).toEqual({
      next: { old: 1, ok: 3 },
      outdated: ["/old"],
    });
    expect(patched(schema, stored, [])).toEqual({ next: stored, outdated: ["/old"] });
  });

  test("refuses a new key, naming it, whatever the operation", () => {
    expect(refusal(() => patched(schema, stored, [{ op: "add", path: "/new", value: 1 }]))).toBe(
      'The config schema does not allow "/new"',
    );
    refusal(() => patched(schema, stored, [{ op: "move", from: "/old", path: "/older" }]));
    refusal(() => patched(schema, stored, [{ op: "copy", from: "/ok", path: "/a~1b" }]));
    expect(refusal(() => patched(schema, stored, [{ op: "replace", path: "", value: { x: 1, "y/z": 2 } }]))).toBe(
      'The config schema does not allow "/x", "/y~1z"',
    );
  });

  test("lets the outdated key be replaced and removed, but nothing new grow in it", () => {
    expect(patched(schema, stored, [{ op: "replace", path: "/old", value: 9 }])).toEqual({
      next: { old: 9, ok: 2 },
      outdated: ["/old"],
    });
    expect(patched(schema, stored, [{ op: "remove", path: "/old" }])).toEqual({ next: { ok: 2 }, outdated: [] });
    expect(patched(schema, { old: { a: 1 } }, [{ op: "replace", path: "/old/a", value: 2 }]).next).toEqual({
      old: { a: 2 },
    });
    expect(refusal(() => patched(schema, { old: { a: 1 } }, [{ op: "add", path: "/old/b", value: 2 }]))).toContain(
      '"/old/b"',
    );
  });

  test("once removed it cannot come back, also within one patch it can", () => {
    refusal(() => patched(schema, { ok: 2 }, [{ op: "add", path: "/old", value: 1 }]));
    expect(
      patched(schema, stored, [
        { op: "remove", path: "/old" },
        { op: "add", path: "/old", value: 2 },
      ]).outdated,
    ).toEqual(["/old"]);
  });

  test("is tolerated when enabling, and the adapter does not see it", () => {
    expect(settingsProblems(schema, stored)).toEqual([]);
    expect(declaredPart(schema, stored)).toEqual({ ok: 2 });
    expect(stored).toEqual({ old: 1, ok: 2 });
  });
});

describe("outdated pointers", () => {
  const item = strict({ id: text });
  const cases: readonly [string, unknown, Stored, readonly string[]][] = [
    ["escaped", strict({}), { "a/b~c": 1 }, ["/a~1b~0c"]],
    ["the empty key", strict({}), { "": 1 }, ["/"]],
    ["nested", strict({ tls: strict({ cert: text }) }), { tls: { cert: "x", key: 1 } }, ["/tls/key"]],
    [
      "where they really are in a list",
      strict({ list: { type: "array", items: item } }),
      { list: [{ id: "a" }, { id: "b", old: 1 }] },
      ["/list/1/old"],
    ],
    [
      "in a tuple",
      strict({ t: { prefixItems: [item, true], items: item } }),
      { t: [{ x: 1 }, { x: 1 }, { x: 1 }] },
      ["/t/0/x", "/t/2/x"],
    ],
    [
      "in a draft-07 tuple",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        properties: { t: { items: [item], additionalItems: item } },
      },
      { t: [{ x: 1 }, { y: 1 }] },
      ["/t/0/x", "/t/1/y"],
    ],
    [
      "through a local reference",
      { ...strict({ a: { $ref: "#/$defs/item" } }), $defs: { item } },
      { a: { id: "x", old: 1 } },
      ["/a/old"],
    ],
    [
      "through a recursive reference",
      strict({ next: { $ref: "#" } }),
      { next: { next: { old: 1 } } },
      ["/next/next/old"],
    ],
    ["through allOf", { allOf: [{ properties: { a: strict({ b: text }) } }] }, { a: { c: 1 } }, ["/a/c"]],
    ["once, though two parts refuse it", { allOf: [strict({ a: text }), strict({ a: text })] }, { z: 1 }, ["/z"]],
    ["in a schema for additional keys", { additionalProperties: item }, { one: { id: "x", old: 1 } }, ["/one/old"]],
    [
      "beside pattern keys",
      { patternProperties: { "^x-": number }, additionalProperties: false },
      { "x-a": 1, y: 2 },
      ["/y"],
    ],
    ["below pattern keys", { patternProperties: { "^x-": item } }, { "x-a": { old: 1 } }, ["/x-a/old"]],
    ["a key whose schema is false", { properties: { gone: false } }, { gone: 1 }, ["/gone"]],
    [
      "unevaluated keys",
      { allOf: [{ properties: { a: text } }], unevaluatedProperties: false },
      { a: "x", b: 1 },
      ["/b"],
    ],
    ["the whole subtree as one", strict({}), { old: { deep: { er: 1 } } }, ["/old"]],
    [
      "in the branch that is meant",
      { oneOf: [strict({ kind: { const: "a" }, x: text }), strict({ kind: { const: "b" }, y: text })] },
      { kind: "a", x: "1", y: "2" },
      ["/y"],
    ],
    [
      "only when every branch refuses",
      { anyOf: [strict({ a: text }), strict({ b: text })] },
      { a: "1", c: "3" },
      ["/c"],
    ],
    [
      "beside a null branch",
      strict({ tls: { anyOf: [{ type: "null" }, strict({ cert: text })] } }),
      { tls: { old: 1 } },
      ["/tls/old"],
    ],
    ["not where keys are open", { properties: { a: text } }, { a: "x", any: { thing: 1 } }, []],
    ["not where additionalProperties is true", { properties: {}, additionalProperties: true }, { any: 1 }, []],
    ["not under a schema of null", { type: "null" }, { any: 1 }, []],
    ["not under a schema of [null]", { type: ["null"], additionalProperties: false }, { any: 1 }, []],
    ["not under true", true, { any: 1 }, []],
    ["not under the empty schema", {}, { any: 1 }, []],
    ["for names on Object.prototype", strict({}), { toString: 1, constructor: 2 }, ["/toString", "/constructor"]],
  ];

  test.each(cases)("are found %s", (_name, schema, stored, outdated) => {
    expect(outdatedPointers(schema, stored)).toEqual(outdated);
    expect(outdatedPointers(schema, declaredPart(schema, stored) as Stored)).toEqual([]);
  });

  test.each(cases)("work as paths of a remove, %s", (_name, schema, stored, outdated) => {
    const result = patched(
      schema,
      stored,
      outdated.map((path) => ({ op: "remove", path })),
    );
    expect(result.outdated).toEqual([]);
    expect(result.next).toEqual(declaredPart(schema, stored));
  });

  test("an outdated key whose element moves is not a new key", () => {
    const schema = strict({ list: { type: "array", items: item } });
    const stored = { list: [{ id: "a" }, { id: "b", old: 1 }] };
    expect(patched(schema, stored, [{ op: "remove", path: "/list/0" }]).outdated).toEqual(["/list/0/old"]);
    expect(patched(schema, stored, [{ op: "add", path: "/list/0", value: { id: "z" } }]).outdated).toEqual([
      "/list/2/old",
    ]);
    expect(refusal(() => patched(schema, stored, [{ op: "add", path: "/list/0/old", value: 1 }]))).toContain(
      "does not allow",
    );
    expect(refusal(() => patched(schema, stored, [{ op: "copy", from: "/list/1", path: "/list/-" }]))).toContain(
      "does not allow",
    );
  });
});

describe("validation", () => {
  const schema = strict(
    { host: text, port: { type: "integer" }, tls: strict({ cert: text, key: text }, { required: ["cert", "key"] }) },
    { required: ["host"] },
  );

  test("declared values are checked, and the message has no value", () => {
    const message = refusal(() => patched(schema, {}, [{ op: "add", path: "/port", value: "canary" }]));
    expect(message).toBe('The config is invalid: "/port" must be integer');
  });

  test("required is demanded only when asked for, at any depth", () => {
    const patch = [{ op: "add", path: "/tls", value: { cert: "c" } }];
    expect(patched(schema, {}, patch).next).toEqual({ tls: { cert: "c" } });
    expect(refusal(() => patched(schema, {}, patch, true))).toBe(
      'The config is invalid: "/host" is required; "/tls/key" is required',
    );
    expect(settingsProblems(schema, { tls: {} })).toHaveLength(3);
  });

  test("branches told apart by what they require do not refuse an incomplete value", () => {
    const either = {
      type: "object",
      oneOf: [{ required: ["token"] }, { required: ["user", "password"] }],
      properties: { token: text, user: text, password: text },
    };
    expect(patched(either, {}, [{ op: "add", path: "/user", value: "u" }]).next).toEqual({ user: "u" });
    refusal(() => patched(either, {}, [{ op: "add", path: "/user", value: "u" }], true));
    refusal(() => patched(either, {}, [{ op: "add", path: "/user", value: 1 }]));
  });

  test("a property named required is a property", () => {
    const named = strict({ required: { type: "boolean" }, properties: text });
    expect(patched(named, {}, [{ op: "add", path: "/required", value: true }]).next).toEqual({ required: true });
    refusal(() => patched(named, {}, [{ op: "add", path: "/required", value: "x" }]));
  });

  test("not and if keep what they demand", () => {
    const never = {
      type: "object",
      not: { required: ["forbidden"] },
      if: { not: { required: ["a"] } },
      else: { properties: { b: number } },
    };
    expect(patched(never, {}, [{ op: "add", path: "/b", value: "text" }]).next).toEqual({ b: "text" });
    refusal(() => patched(never, {}, [{ op: "add", path: "/forbidden", value: 1 }]));
  });

  test("a schema that cannot be used refuses the patch and reports nothing outdated", () => {
    expect(refusal(() => patched({ type: "objec" }, {}, []))).toMatch(
      /^The config cannot be checked: the schema is malformed/,
    );
    expect(outdatedPointers({ type: "objec" }, { a: 1 })).toEqual([]);
    expect(settingsProblems({ type: "objec" }, {})).toHaveLength(1);
  });

  test("null, true and the empty schema take anything", () => {
    for (const open of [{ type: "null" }, { type: ["null"] }, true, {}]) {
      expect(patched(open, { a: 1 }, [{ op: "add", path: "/any", value: [1] }], true)).toEqual({
        next: { a: 1, any: [1] },
        outdated: [],
      });
    }
  });

  test("a document beyond the size bound is refused", () => {
    expect(refusal(() => patched({}, {}, [{ op: "add", path: "/a", value: "x".repeat(1024 * 1024) }]))).toBe(
      "The config would become too large",
    );
  });
});

describe("defaults", () => {
  const schema = strict(
    {
      timeoutMs: { type: "number", default: 30_000 },
      nested: { type: "object", properties: { a: { default: [1] } } },
      made: { default: {}, properties: { b: { default: 2 } } },
      list: { items: { properties: { c: { default: 3 } } } },
      referred: { $ref: "#/$defs/d" },
    },
    { $defs: { d: { default: "x" } }, required: ["timeoutMs"], allOf: [{ properties: { timeoutMs: { default: 1 } } }] },
  );

  test("are filled in for hydration, not stored", () => {
    expect(patched(schema, {}, [], true).next).toEqual({});
    expect(withDefaults(schema, { nested: {}, list: [{}, { c: 9 }], old: 1 })).toEqual({
      timeoutMs: 1,
      nested: { a: [1] },
      made: { b: 2 },
      list: [{ c: 3 }, { c: 9 }],
      referred: "x",
    });
  });

  test("are not shared between values", () => {
    const first = withDefaults(schema, { nested: {} }) as { nested: { a: number[] } };
    first.nested.a.push(2);
    expect(withDefaults(schema, { nested: {} })).toMatchObject({ nested: { a: [1] } });
  });

  test("do not make an absent object, and leave null alone", () => {
    expect(withDefaults(schema, {})).not.toHaveProperty("nested");
    expect(withDefaults({ properties: { a: { default: 1 } } }, { a: null })).toEqual({ a: null });
  });
});

describe("secrets", () => {
  const schema = strict({
    token: text,
    basic: strict({ username: text, password: text }, { required: ["username", "password"] }),
  });
  const secrets = (stored: Stored, operations: unknown): { next: unknown; outdated: readonly string[] } =>
    patchSettings({ kind: "secrets", schema, stored, operations, enforceRequired: false });

  test.each(["test", "copy", "move"])("%s would read values and is refused", (op) => {
    const patch = [
      { op: "add", path: "/token", value: "t" },
      { op, path: "/token", from: "/basic", value: "guess" },
    ];
    expect(refusal(() => secrets({ token: "canary" }, patch))).toBe(
      `Cannot apply operation 1 (${op} "/token"): secrets take only add, replace and remove`,
    );
  });

  test("no error holds a stored or a given value", () => {
    const stored = { token: "canary-stored", old: "canary-old" };
    const failing = [
      [{ op: "replace", path: "/none", value: "canary-new" }],
      [{ op: "add", path: "/token", value: { canary: "canary-new" } }],
      [{ op: "add", path: "/new", value: "canary-new" }],
      [{ op: "replace", path: "", value: "canary-new" }],
      [{ op: "add", path: "/token/x", value: "canary-new" }],
      [{ op: "add", path: "/basic", value: { username: ["canary-new"] } }],
    ];
    for (const operations of failing)
      expect(refusal(() => secrets(stored, operations))).not.toMatch(/canary-(stored|old|new)/);
  });

  test("presence lists leaves as pointers: arrays once, null, empty text and empty objects too", () => {
    expect(presentPointers({})).toEqual([]);
    expect(
      presentPointers({
        token: "x",
        basic: { username: "u", password: "" },
        list: [{ a: 1 }],
        none: null,
        empty: {},
        "a/b": 1,
      }),
    ).toEqual(["/token", "/basic/username", "/basic/password", "/list", "/none", "/empty", "/a~1b"]);
  });

  test("an incomplete pair can be stored one by one", () => {
    expect(secrets({}, [{ op: "add", path: "/basic", value: { username: "u" } }]).next).toEqual({
      basic: { username: "u" },
    });
  });
});

test("whatever the patch: a success adds no undeclared key, and a value without outdated keys gets none", () => {
  const key = fc.constantFrom("a", "b", "old");
  const { schema } = fc.letrec((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.constant<unknown>({}),
      fc.constant<unknown>(true),
      fc
        .dictionary(key, tie("schema"), { maxKeys: 2, noNullPrototype: true })
        .map((properties) => strict(properties as Stored)),
      tie("schema").map((items) => ({ items })),
    ),
  }));
  const value = fc.jsonValue({ maxDepth: 3 });
  const operation = fc.record({
    op: fc.constantFrom("add", "remove", "replace", "copy", "move"),
    path: fc.array(key, { minLength: 1, maxLength: 3 }).map((tokens) => `/${tokens.join("/")}`),
    from: fc.array(key, { minLength: 1, maxLength: 2 }).map((tokens) => `/${tokens.join("/")}`),
    value,
  });
  fc.assert(
    fc.property(
      schema,
      fc.dictionary(key, value, { noNullPrototype: true }),
      fc.array(operation, { maxLength: 3 }),
      (shape, stored, operations) => {
        const before = outdatedPointers(shape, stored);
        try {
          const { next, outdated } = patched(shape, stored, operations);
          if (before.length === 0) expect(outdated).toEqual([]);
          expect(outdatedPointers(shape, next as Stored)).toEqual(outdated);
          expect(outdated.filter((pointer) => pointer.split("/").length === 2 && !before.includes(pointer))).toEqual(
            [],
          );
        } catch (error) {
          expect(isFailure(error)).toBe(true);
        }
      },
    ),
    { numRuns: 300 },
  );
});
