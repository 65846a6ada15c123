/** Documents as the world writes them: each becomes tools with valid schemas, and one call of each arrives as its document says. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type { Adapter, Definition, JsonSchema, PlanReference } from "../../src/ports/adapter.ts";
import { type CorpusEntry, corpus, corpusInstalled, corpusText } from "../corpus/corpus.ts";
import { type Call, defined, openTestAdapter } from "./adapter-bench.ts";
import { openRecordingServer, type RecordingServer } from "./recording-server.ts";
import { checkRequestAgainstDocument, operationsAt } from "./request-check.ts";
import { valueFor } from "./schema-values.ts";

/** Tools of one document that are looked at: describing all of Kubernetes ten times over would prove nothing more. */
const toolsCheckedMax = 6;
/** Tools tried until the generated parameters fit. */
const toolsTriedMax = 40;

if (!corpusInstalled) {
  test("the corpus is not installed: run npm run corpus to hold the adapter to real documents", () => {
    expect(corpusInstalled).toBe(false);
  });
}

describe.runIf(corpusInstalled)("real documents", () => {
  let adapter: Adapter;
  let server: RecordingServer;
  const metaschema = new Ajv2020({ strict: false });
  addFormats.default(metaschema);

  beforeAll(async () => {
    [adapter, server] = await Promise.all([openTestAdapter(), openRecordingServer()]);
  });
  afterAll(async () => {
    await Promise.all([adapter.close(), server.close()]);
  });

  test.each(corpus.map((entry) => [entry.name, entry] as const))(
    "%s becomes tools, and a call of one arrives as the document says",
    async (_, entry) => {
      await holdTo(entry, corpusText(entry));
    },
  );

  test("a real document written as YAML becomes the same tools", async () => {
    const entry = corpus.find((each) => each.name === "Spotify")!;
    const tree = JSON.parse(corpusText(entry)) as object;
    const asJson = await adapter.define({ text: corpusText(entry) });
    const asYaml = await adapter.define({ text: stringify(tree, { aliasDuplicateObjects: false }) });
    expect(asYaml.tools).toEqual(asJson.tools);
    expect(asYaml.plan).toBe(asJson.plan);
  });

  async function holdTo(entry: CorpusEntry, text: string): Promise<void> {
    const document = JSON.parse(text) as Record<string, unknown>;
    expect(String(document.openapi).startsWith(entry.openapi)).toBe(true);
    const { definition, plan, call } = await defined(adapter, text);
    expect(definition.tools.length).toBe(operationCount(document));
    expect(new Set(definition.tools.map((tool) => tool.id)).size).toBe(definition.tools.length);
    for (const tool of definition.tools) expect(tool.id).toMatch(/^[A-Za-z_$][A-Za-z0-9_$]*$/);
    for (const schema of [definition.configSchema, definition.secretsSchema])
      expect(metaschema.validateSchema(schema as object)).toBe(true);
    for (const tool of spread(definition.tools, toolsCheckedMax)) {
      const { inputSchema, outputSchema } = await adapter.describe(plan, tool.id);
      for (const schema of [inputSchema, outputSchema]) expect([tool.id, problemsOf(schema)]).toEqual([tool.id, null]);
    }
    await callOne(document, definition, plan, call);
  }

  function problemsOf(schema: JsonSchema): string | null {
    return metaschema.validateSchema(schema as object) === true ? null : metaschema.errorsText(metaschema.errors);
  }

  async function callOne(
    document: Record<string, unknown>,
    definition: Definition,
    plan: PlanReference,
    call: Call,
  ): Promise<void> {
    const { toolId, parameters } = await callable(definition, plan);
    const result = await call(toolId, parameters, {
      config: { serverUrl: `${server.origin}/base` },
      secrets: secretsFor(definition),
    });
    expect(result).toMatchObject({ status: 200 });
    const recorded = server.last();
    expect(checkRequestAgainstDocument(document, recorded, "/base").problems).toEqual([]);
    // An operation without an id has a tool all the same, under a name made up from method and path.
    const ids = operationsAt(document, recorded, "/base").map(bare);
    expect(ids.includes("") || ids.includes(bare(toolId))).toBe(true);
  }

  /** The first of the tools with most slots for which valid parameters can be made up. */
  async function callable(
    definition: Definition,
    plan: PlanReference,
  ): Promise<{ toolId: string; parameters: unknown }> {
    const rich = definition.tools.toSorted(
      (left, right) => Number(right.parameterNames.length > 2) - Number(left.parameterNames.length > 2),
    );
    for (const { id } of rich.slice(0, toolsTriedMax)) {
      const { inputSchema } = await adapter.describe(plan, id);
      const parameters = valueFor(inputSchema);
      const validator = new Ajv2020({ strict: false, ownProperties: true, validateSchema: false, logger: false });
      addFormats.default(validator);
      if (validator.validate(inputSchema as object, parameters)) return { toolId: id, parameters };
    }
    throw new Error("No parameters could be made up for any of the tools tried");
  }
});

function operationCount(document: Record<string, unknown>): number {
  const methods = new Set(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);
  return Object.values(document.paths as Record<string, object>).flatMap((item) =>
    Object.keys(item).filter((key) => methods.has(key)),
  ).length;
}

function secretsFor({ secretsSchema }: Definition): Record<string, unknown> {
  const { properties } = secretsSchema as { properties: Record<string, { type: string }> };
  return Object.fromEntries(
    Object.entries(properties).map(([id, { type }]) => [
      id,
      type === "object" ? { username: "u", password: "p" } : "secret",
    ]),
  );
}

function spread<T>(items: readonly T[], max: number): T[] {
  const step = Math.max(1, Math.ceil(items.length / max));
  return items.filter((_, index) => index % step === 0);
}

/** Operation ids and tool ids differ in what stands between letters only. */
function bare(id: string | undefined): string {
  return (id ?? "").replaceAll(/[^A-Za-z0-9]/g, "");
}
