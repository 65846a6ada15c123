/** Definitions that keep to the contract in no way: each is refused, naming what is wrong. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { hosted, type OpenHost, openSharedHost, writeModule } from "./modules.ts";

/** One for the file: nothing that a module does may spoil it for the next. */
let host: OpenHost;
beforeAll(async () => {
  host = await openSharedHost({ startMs: 2_000 });
});
afterAll(() => host.close());

describe("a definition", () => {
  const cases: readonly (readonly [name: string, answer: string, kind: string, message: string])[] = [
    ["that is nothing", `undefined`, "invalid_request", "cannot be used"],
    ["that is text", `"tools"`, "invalid_request", "cannot be used"],
    ["without tools", `{ name: "a" }`, "invalid_request", `"tools"`],
    ["without a name", `{ tools: [] }`, "invalid_request", `"name"`],
    ["with a member that is not in the contract", `{ name: "a", tools: [], extra: 1 }`, "invalid_request", "extra"],
    ["with a tool without id", `{ name: "a", tools: [{ name: "x" }] }`, "invalid_request", `"tools.0.id"`],
    ["with an empty id", `{ name: "a", tools: [{ id: "", name: "x" }] }`, "invalid_request", `"tools.0.id"`],
    [
      "with an id twice",
      `{ name: "a", tools: [{ id: "x", name: "x" }, { id: "x", name: "y" }] }`,
      "invalid_request",
      `the tool id "x" occurs twice`,
    ],
    [
      "with a schema that is a list",
      `{ name: "a", tools: [{ id: "x", name: "x", inputSchema: [] }] }`,
      "invalid_request",
      "must be a JSON Schema",
    ],
    [
      "with a schema that is none",
      `{ name: "a", tools: [{ id: "x", name: "x", outputSchema: { type: "strin" } }] }`,
      "invalid_request",
      `outputSchema of tool "x"`,
    ],
    [
      "with a settings schema that is none",
      `{ name: "a", tools: [], configSchema: { required: 1 } }`,
      "invalid_request",
      "configSchema",
    ],
    [
      "with a schema of endless work",
      `{ name: "a", tools: [{ id: "x", name: "x", inputSchema: { $defs: Object.fromEntries(Array.from({ length: 40 }, (_, i) => ["d" + i, { allOf: [{ $ref: "#/$defs/d" + (i + 1) }, { $ref: "#/$defs/d" + (i + 1) }] }])), $ref: "#/$defs/d0" } }] }`,
      "invalid_request",
      "too large",
    ],
    [
      "with too many tools",
      `{ name: "a", tools: Array.from({ length: 10001 }, (_, i) => ({ id: "t" + i, name: "t" })) }`,
      "invalid_request",
      "at most 10000 tools",
    ],
    [
      "with text without end",
      `{ name: "a", description: "x".repeat(100000), tools: [] }`,
      "invalid_request",
      `"description"`,
    ],
    ["that is no JSON", `{ name: "a", tools: [], plan: 1n }`, "upstream_failed", "BigInt"],
    [
      "that nests without end",
      `(() => { let deep = {}; for (let i = 0; i < 1000; i++) deep = { deep }; return { name: "a", tools: [], plan: deep } })()`,
      "upstream_failed",
      "nests deeper",
    ],
    [
      "larger than a message",
      `{ name: "a", tools: [], plan: "x".repeat(16 * 1024 * 1024) }`,
      "upstream_failed",
      "is larger than 15728640 bytes",
    ],
    [
      "that is an error",
      `(() => { throw Object.assign(new Error("not mine"), { code: "invalid_request" }) })()`,
      "invalid_request",
      "not mine",
    ],
    ["with half a character", `{ name: "a\\ud800", tools: [] }`, "", ""],
  ];
  it.each(cases)("%s", async (_name, answer, kind, message) => {
    const code = `export default { type: "adapter", setup: () => ({ generateDefinition: () => (${answer}), hydrate() {}, invoke() {} }) }`;
    const adapter = await host.openAdapter(hosted(writeModule(code)));
    onTestFinished(() => adapter.close());
    const defining = adapter.define({ text: "" });
    if (kind === "") return expect(await defining).toMatchObject({ name: "a\ufffd" });
    const failure = (await defining.then(
      () => undefined,
      (error: unknown) => error,
    )) as { kind: string; message: string };
    expect(failure).toMatchObject({ kind });
    expect(failure.message).toContain(message);
  });
});
