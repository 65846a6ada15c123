/** Parameters against foreign schemas, in the real worker: what fits, what is refused and how it is said, and what may not hold up others. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openParameterChecks } from "../../src/adapters/parameter-checks/parameter-checks.ts";
import { parameterProblemsMax, parametersCheckMs } from "../../src/limits.ts";
import type { JsonSchema } from "../../src/ports/adapter.ts";
import type { ParameterChecks } from "../../src/ports/parameter-checks.ts";
import { measureLongestTurn, realClock, recordingLog } from "./adapter-bench.ts";

let checks: ParameterChecks;
beforeAll(() => {
  checks = openParameterChecks({ clock: realClock, log: recordingLog() });
});
afterAll(() => checks.close());

let keys = 0;
const subject = 'Parameters of tool "t"';
function check(schema: JsonSchema, parameters: unknown, options: { key?: string; signal?: AbortSignal } = {}) {
  keys += 1;
  return checks.check({ key: `schema ${keys}`, schema, parameters, subject, ...options });
}

const person: JsonSchema = {
  type: "object",
  properties: { name: { type: "string", minLength: 2 }, age: { type: "integer" }, kind: { enum: ["a", "b"] } },
  required: ["name"],
  additionalProperties: false,
};
const draft07 = "http://json-schema.org/draft-07/schema#";

describe("parameters that fit", () => {
  test.each<readonly [string, JsonSchema, unknown]>([
    ["an object", person, { name: "Ada", age: 36 }],
    ["anything, where the schema says true", true, 7],
    ["draft-07 tuples", { $schema: draft07, items: [{ type: "string" }], additionalItems: false }, ["x"]],
    [
      "draft-07 definitions",
      { $schema: draft07, $ref: "#/definitions/a", definitions: { a: { type: "string" } } },
      "x",
    ],
    ["2020-12 tuples", { prefixItems: [{ type: "string" }], items: false }, ["x"]],
    ["2019-09, read as 2020-12", { $schema: "https://json-schema.org/draft/2019-09/schema", type: "string" }, "x"],
    ["draft-06, read as draft-07", { $schema: "http://json-schema.org/draft-06/schema", type: "string" }, "x"],
    ["draft-07 by https", { $schema: "https://json-schema.org/draft-07/schema#", type: "string" }, "x"],
    ["a pattern with look-ahead", { type: "string", pattern: "^(?!x)[a-z]+$" }, "abc"],
    ["an unknown format", { type: "string", format: "phone-of-sorts" }, "x"],
    ["an $id of somewhere", { $id: "https://example.com/a.json", $ref: "#/$defs/a", $defs: { a: true } }, 1],
  ])("%s", async (_, schema, parameters) => {
    await expect(check(schema, parameters)).resolves.toBeUndefined();
  });
});

describe("parameters that do not fit are refused naming the fields", () => {
  test.each<readonly [string, JsonSchema, unknown, string]>([
    ["a missing property", person, {}, `the parameters must have property "name"`],
    ["a strange property", person, { name: "Ada", nick: 1 }, `the parameters may not have property "nick"`],
    ["a wrong type", person, { name: "Ada", age: "1" }, "/age must be integer"],
    ["a value outside an enum", person, { name: "Ada", kind: "c" }, `/kind must be one of "a", "b"`],
    ["a nested place", { properties: { a: { items: { type: "null" } } } }, { a: [null, 1] }, "/a/1 must be null"],
    ["an inherited property", { required: ["toString"] }, {}, `the parameters must have property "toString"`],
    ["nothing fits", false, {}, "the parameters boolean schema is false"],
    ["no parameters at all", person, undefined, "the parameters must be object"],
  ])("%s", async (_, schema, parameters, text) => {
    await expect(check(schema, parameters)).rejects.toMatchObject({
      kind: "invalid_request",
      message: `${subject} do not fit: ${text}`,
    });
  });

  test("fields are given apart, and only the first of many", async () => {
    const refused = check(
      { items: { type: "string" } },
      Array.from({ length: 100 }, (_, at) => at),
    );
    await expect(refused).rejects.toMatchObject({
      details: {
        fields: Array.from({ length: parameterProblemsMax }, (_, at) => expect.objectContaining({ field: `${at}` })),
      },
    });
  });
});

describe("schemas that cannot be used are refused saying why", () => {
  let deep: JsonSchema = true;
  for (let depth = 0; depth < 200; depth += 1) deep = { not: deep };
  const doubling = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`d${at}`, { allOf: Array(2).fill({ $ref: `#/$defs/d${at + 1}` }) }]),
  );
  test.each<readonly [string, unknown, RegExp]>([
    ["a number", 7, /neither an object nor a boolean$/],
    ["a list", [], /neither an object nor a boolean$/],
    ["a type that is none", { type: "text" }, /malformed at "\/type"/],
    ["properties that are a list", { properties: [] }, /malformed at "\/properties"/],
    ["draft-04", { $schema: "http://json-schema.org/draft-04/schema#" }, /neither draft-07 nor 2020-12$/],
    ["a dialect that is no text", { $schema: {} }, /neither draft-07 nor 2020-12$/],
    ["a reference to nowhere", { $ref: "#/$defs/none" }, /can't resolve reference #\/\$defs\/none/],
    ["a reference to another host", { $ref: "https://example.com/a.json" }, /can't resolve reference https/],
    ["a broken pattern", { pattern: "(" }, /Invalid regular expression/],
    ["one nested too deep", deep, /nests too deep$/],
    ["one too large", { description: "x".repeat(2_000_000) }, /too large$/],
    [
      "one that doubles with each reference",
      { $ref: "#/$defs/d0", $defs: { ...doubling, d30: true } },
      /references are followed$/,
    ],
    ["an asynchronous one", { $async: true }, /asynchronous/],
  ])("%s", async (_, schema, reason) => {
    await expect(check(schema as JsonSchema, {})).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(new RegExp(`^The tool's input schema cannot be used: .*${reason.source}`)),
    });
  });

  test("a schema that refers to itself without end is refused, and the worker goes on", async () => {
    await expect(check({ $ref: "#" }, {})).rejects.toMatchObject({
      kind: "invalid_request",
      message: `${subject} cannot be checked: they or their schema nest without end`,
    });
    await check(true, {});
  });

  test("the refusal is remembered, and other schemas are not touched by it", async () => {
    const key = "broken";
    await expect(check({ type: "text" }, {}, { key })).rejects.toMatchObject({ kind: "invalid_request" });
    // Were the schema asked for again, this one would pass.
    await expect(check(true, {}, { key })).rejects.toMatchObject({ kind: "invalid_request" });
    await check(true, {});
  });
});

describe("what takes for ever ends the worker and nobody else's check", () => {
  test("a pattern that backtracks times out, while others wait and are answered", async () => {
    const held = check({ type: "string", pattern: "^(\\w+\\s?)*\\1$" }, `${"aaaaaaaaaaaaaaaa ".repeat(4)}!`);
    const turned = measureLongestTurn();
    const others = Promise.all([check(person, { name: "Ada" }), check(true, 1)]);
    await expect(held).rejects.toMatchObject({
      kind: "timeout",
      message: `${subject} took longer than ${parametersCheckMs} ms`,
    });
    expect(await others).toHaveLength(2);
    expect(turned()).toBeLessThan(parametersCheckMs);
  });

  test("the classic catastrophic pattern runs in linear time", async () => {
    await expect(check({ type: "string", pattern: "^(a+)+$" }, `${"a".repeat(100_000)}!`)).rejects.toMatchObject({
      kind: "invalid_request",
    });
  });

  test("a caller who leaves is answered at once", async () => {
    await expect(check(person, {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: "cancelled" });
  });
});

test("one key means one schema: it is compiled once and used by all who name it", async () => {
  const key = "person";
  await Promise.all(Array.from({ length: 50 }, () => check(person, { name: "Ada" }, { key })));
  await expect(check(false, {}, { key })).rejects.toMatchObject({ message: expect.stringContaining('"name"') });
});

test("more schemas than are kept come and go without their callers noticing", async () => {
  for (let round = 0; round < 2; round += 1) {
    const all = Array.from({ length: 300 }, (_, at) => check({ const: at }, at, { key: `many ${at}` }));
    expect(await Promise.all(all)).toHaveLength(300);
  }
});

test("after closing, a check is refused", async () => {
  const closed = openParameterChecks({ clock: realClock, log: recordingLog() });
  await closed.close();
  await expect(closed.check({ key: "k", schema: true, parameters: {}, subject })).rejects.toMatchObject({
    kind: "unavailable",
  });
});
