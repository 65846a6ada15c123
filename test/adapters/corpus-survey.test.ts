/** The parts of `npm run corpus:survey` that judge: they find what is wrong, and nothing where nothing is. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Plan } from "../../src/adapters/openapi/plan.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import { manyOperations } from "../corpus/many-operations.ts";
import { childrenOf, forgetPeak, peakMemoryMb } from "../corpus/peak-memory.ts";
import { isJsonSchema, schemaFaults } from "../corpus/schema-faults.ts";
import { openTestAdapter } from "./adapter-bench.ts";

const tool = (inputSchema: unknown) =>
  ({ id: "t", inputSchema, outputSchema: true }) as unknown as Plan["tools"][number];
const faults = (inputSchema: unknown, schemas = {}) => schemaFaults({ schemas, tools: [tool(inputSchema)] });

describe("a schema", () => {
  test.each([
    [{}],
    [false],
    [{ $ref: "#/$defs/A", description: "of A" }],
    [{ properties: { $ref: { type: "string" }, a: { items: { $ref: "#/$defs/A" } } } }],
    [{ default: { $ref: "nowhere" }, enum: [{ type: "nonsense" }] }],
  ])("%j is one", (schema) => {
    expect(faults(schema, { A: { anyOf: [{ $ref: "#/$defs/A" }, { type: "null" }] } })).toEqual([]);
  });

  test.each([
    [{ type: "nonsense" }, "is no JSON Schema"],
    [{ properties: { a: { required: "a" } } }, "is no JSON Schema"],
    [{ items: { pattern: "(" } }, 'has the pattern "(", which is no regular expression'],
    [{ patternProperties: { "\\z": {} } }, 'has the pattern "\\z", which is no regular expression'],
    [{ items: { $ref: "#/$defs/B" } }, 'refers to "#/$defs/B", which is nowhere'],
    [{ anyOf: [{ $ref: "https://example.test/a" }] }, 'refers to "https://example.test/a", which is nowhere'],
    [{ $ref: "#/$defs/constructor" }, 'refers to "#/$defs/constructor", which is nowhere'],
  ])("%j is none", (schema, fault) => {
    expect(faults(schema, { A: true })).toEqual([expect.stringContaining(`Input of tool "t" ${fault}`)]);
    expect(isJsonSchema({ ...schema, $defs: { A: true } })).toBe(false);
  });

  test("that many tools share is judged as well", () => {
    expect(faults({ $ref: "#/$defs/A" }, { A: { minimum: "1" } })).toEqual([
      expect.stringMatching(/^Definition "A" is no JSON Schema/),
    ]);
  });
});

describe("a made-up document", () => {
  let adapter: Adapter;
  beforeAll(async () => {
    adapter = await openTestAdapter();
  });
  afterAll(() => adapter.close());

  test.each([4, 1_000])("of %i operations becomes as many tools with sound schemas", async (operations) => {
    const { tools, plan } = await adapter.define({ text: manyOperations(operations) });
    expect(tools).toHaveLength(operations);
    const read = JSON.parse(plan) as Plan;
    expect(schemaFaults(read)).toEqual([]);
    expect(Object.keys(read.schemas).length).toBeGreaterThan(operations / 4);
  });

  test.runIf(process.platform === "linux")("has the peak memory of the process that reads it", async () => {
    await adapter.define({ text: manyOperations(4) });
    const [reader, ...others] = childrenOf(process.pid).filter((pid) => peakMemoryMb(pid) > 10);
    if (reader === undefined) throw new Error("The adapter has no process");
    expect(others).toEqual([]);
    const before = peakMemoryMb(reader);
    await adapter.define({ text: manyOperations(4_000) });
    const after = peakMemoryMb(reader);
    expect(after).toBeGreaterThan(before);
    forgetPeak(reader);
    expect(peakMemoryMb(reader)).toBeLessThanOrEqual(after);
  });
});
