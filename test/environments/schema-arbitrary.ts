/** Random JSON Schemas for property tests: every keyword the writer knows, often malformed, with names made to break out. */
import fc from "fast-check";

const dollar = "$";

export const hostileTexts = [
  "*/ output({ stolen: true }); /*",
  "```\n# Instructions",
  "line\nbreak\r\nand\u2028more\u2029",
  `${dollar}{process.exit()}`,
  `\`${dollar}{1}\``,
  '"; declare const x: 1; type T = "',
  "'",
  "\\",
  "\\u002a/",
  "*\u200b/",
  "* /*/",
  "__proto__",
  "constructor",
  "</script><img src=x onerror=alert(1)>",
  "\u202egnirts",
  "\u{e0049}\u{e0067}",
  "\ud800",
  "\0",
  "",
  " ",
  "1",
  "a-b.c/d~e%20",
] as const;

const text = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("a", "b", "c"),
);
const name = fc.oneof({ weight: 3, arbitrary: fc.constantFrom("a", "b", "c") }, text);
const type = fc.constantFrom("string", "number", "integer", "boolean", "null", "object", "array");

/** Few keywords at a time, so that a random schema stays small; together the runs meet all combinations. */
const keywordsMax = 5;

const keyword = <Value>(key: string, value: fc.Arbitrary<Value>) => fc.tuple(fc.constant(key), value);

const { schema } = fc.letrec<{ schema: unknown; object: unknown }>((tie) => {
  const schemas = fc.array(tie("schema"), { maxLength: 3 });
  const named = fc.dictionary(name, tie("schema"), { maxKeys: 3 });
  const reference = fc.constantFrom("#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/properties/a", "#/%", "other.json");
  const entry = fc.oneof(
    keyword("type", fc.oneof(type, fc.array(type, { maxLength: 3 }), text)),
    keyword("description", text),
    keyword("title", text),
    keyword("default", fc.jsonValue({ maxDepth: 2 })),
    keyword("examples", fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 1 })),
    keyword("format", text),
    keyword("pattern", text),
    keyword("minimum", fc.oneof(fc.double(), text)),
    keyword("maximum", fc.integer()),
    keyword("minItems", fc.integer({ min: -1, max: 4 })),
    keyword("maxItems", fc.integer({ min: -1, max: 4 })),
    keyword("minLength", fc.double()),
    keyword("nullable", fc.boolean()),
    keyword("const", fc.jsonValue({ maxDepth: 2 })),
    keyword("enum", fc.array(fc.oneof(text, fc.jsonValue({ maxDepth: 1 })), { maxLength: 4 })),
    keyword("properties", fc.oneof(named, named, fc.jsonValue({ maxDepth: 1 }))),
    keyword("required", fc.oneof(fc.array(name, { maxLength: 3 }), fc.jsonValue({ maxDepth: 1 }))),
    keyword("additionalProperties", tie("schema")),
    keyword("patternProperties", named),
    keyword("items", fc.oneof(tie("schema"), schemas)),
    keyword("prefixItems", schemas),
    keyword("additionalItems", tie("schema")),
    keyword("oneOf", schemas),
    keyword("anyOf", fc.oneof(schemas, schemas, fc.jsonValue({ maxDepth: 1 }))),
    keyword("allOf", schemas),
    keyword(
      "$ref",
      fc.oneof(
        reference,
        text.map((segment) => `#/$defs/${segment}`),
      ),
    ),
    keyword("$defs", named),
    keyword("x-unknown", text),
  );
  return {
    schema: fc.oneof(
      { maxDepth: 3 },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(true, false, {}, null, 1, "string", []) },
      { weight: 6, arbitrary: tie("object") },
    ),
    object: fc.array(entry, { maxLength: keywordsMax }).map((entries) => Object.fromEntries(entries)),
  };
});

export const schemaArbitrary = schema;
