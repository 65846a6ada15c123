/** Agents copy from these pages, so what they show is run: the examples, and the call of every tool however it is named. */
import fc from "fast-check";
import { expect, it, test } from "vitest";
import { exampleFromSchema } from "../../src/environments/example-from-schema.ts";
import { pythonDocs } from "../../src/environments/python/python-docs.ts";
import { pythonToolDocs } from "../../src/environments/python/python-tool-docs.ts";
import { toSnakeCase } from "../../src/json/snake-case.ts";
import type { JsonSchema } from "../../src/ports/adapter.ts";
import type { DocumentedTool } from "../../src/ports/environment.ts";
import type { ToolAnswer, ToolCall } from "../../src/ports/executor.ts";
import { runProgram } from "../executor/program.ts";
import { describePython } from "../executor/python-machine.ts";
import { hostileTexts, schemaArbitrary } from "./schema-arbitrary.ts";

const bounds = { timeoutMs: 1234, memoryMb: 5, outputBytes: 6, toolTimeoutMs: 7 };

const placeOrder: DocumentedTool = {
  serviceId: "petstore",
  id: "placeOrder",
  name: "placeOrder",
  summary: "Order a pet",
  description: "The pet must be available.",
  inputSchema: {
    type: "object",
    required: ["body"],
    properties: { body: { type: "object", required: ["petId"], properties: { petId: { type: "integer" } } } },
  },
  outputSchema: {
    type: "object",
    required: ["status", "headers", "body"],
    properties: { status: { type: "integer" }, headers: { type: "object" }, body: { type: "object" } },
  },
};

function pythonBlocks(markdown: string): string[] {
  return [...markdown.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code]) => code ?? "");
}

test("the environment page names its bounds", () => {
  expect(pythonDocs(bounds)).toContain("else 1234 ms");
  expect(pythonDocs(bounds)).toContain("| memory | 5 MB |");
});

test("a tool's page shows the call, the types and how HTTP answers are read", () => {
  const page = pythonToolDocs(placeOrder);
  expect(pythonBlocks(page)).toEqual(['result = services.petstore.place_order(body={"petId": 1})\n']);
  expect(page).toContain("type Parameters = {");
  expect(page).toContain('`result["status"]` is the HTTP status');
  expect(pythonToolDocs({ ...placeOrder, outputSchema: true })).not.toContain("HTTP status");
});

test.each([
  ["petstore", "listPets", "services.petstore.list_pets()"],
  ["petstore", "list-pets", "services.petstore.list_pets()"],
  ["petstore", "getHTTPStatus", "services.petstore.get_http_status()"],
  ["pet-store", "list_pets", 'services["pet-store"].list_pets()'],
  ["petstore", "import", 'services.petstore.tools["import"]()'],
  ["petstore", "tools", 'services.petstore.tools["tools"]()'],
  ["petstore", "Tools", 'services.petstore.tools["Tools"]()'],
  ["petstore", "__init__", 'services.petstore.tools["__init__"]()'],
  ["petstore", "GET /pets/{id}", 'services.petstore.tools["GET /pets/{id}"]()'],
  ["class", "a", 'services["class"].a()'],
])("the call of tool %s %s is %s", (serviceId, id, expected) => {
  const [call] = pythonBlocks(pythonToolDocs({ ...placeOrder, serviceId, id, inputSchema: { type: "object" } }));
  expect(call).toBe(`result = ${expected}\n`);
});

test.each([
  ["getPet", "get_pet"],
  ["get-pet", "get_pet"],
  ["get_pet", "get_pet"],
  ["GetPetById", "get_pet_by_id"],
  ["getHTTPStatus", "get_http_status"],
  ["v2Pets", "v2_pets"],
])("Python spells %s as %s", (id, spelled) => {
  expect(toSnakeCase(id)).toBe(spelled);
  expect(toSnakeCase(spelled)).toBe(spelled);
});

describePython("Python pages", (current) => {
  const petstore = ({ toolId, parameters }: ToolCall): ToolAnswer => {
    if (toolId === "list_pets") return { ok: true, value: { body: [{ name: "Rex" }] } };
    if (toolId === "get_stats") return { ok: true, value: { body: { pets: 5 } } };
    const { petId } = (parameters as { path: { petId: number } }).path;
    return { ok: true, value: { status: 200, body: { name: `pet ${petId}` } } };
  };

  it("the examples of the environment page do what they say", async () => {
    const examples = pythonBlocks(pythonDocs(bounds));
    const results = await Promise.all(examples.map((code) => runProgram(current(), code, { tool: petstore })));
    expect(results.map(({ output }) => output)).toEqual([
      { names: ["Rex"], total: 5 },
      { pet: { name: "pet 7" } },
      { names: ["pet 1", "pet 2", "pet 3"] },
    ]);
    const failing = (): ToolAnswer => ({ ok: false, message: "No", code: "not_found", status: 404 });
    expect((await runProgram(current(), examples[1] as string, { tool: failing })).output).toEqual({
      failed: "not_found",
      message: "No",
    });
  });

  it("whatever the schemas and names, the page is bounded, its fences are closed, and its call calls that tool with that example", async () => {
    const name = fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: "binary" }));
    const tools = fc.sample(fc.record({ inputSchema: schemaArbitrary, id: name, serviceId: name }), {
      numRuns: 200,
      seed: 1,
    });
    const calls: string[] = [];
    for (const tool of tools) {
      const page = pythonToolDocs({
        ...placeOrder,
        ...tool,
        description: tool.id,
        inputSchema: tool.inputSchema as JsonSchema,
      });
      expect(Buffer.byteLength(page)).toBeLessThan(32 * 1024);
      expect(page.match(/^```/gm)).toHaveLength(4);
      calls.push(pythonBlocks(page)[0] as string);
    }
    const code = "for call in env['calls']: exec(call, {'services': services})";
    const result = await runProgram(current(), code, { env: { calls }, tool: () => ({ ok: true, value: null }) });
    expect(result.stderr).toBe("");
    for (const [index, { id, serviceId, inputSchema }] of tools.entries()) {
      const call = result.calls[index];
      expect(call?.serviceId).toBe(serviceId.toWellFormed());
      expect(call?.toolId).toBe(call?.spelling === undefined ? id.toWellFormed() : toSnakeCase(id));
      const example = JSON.stringify(exampleFromSchema(inputSchema) ?? null);
      const parameters = JSON.stringify(call?.parameters ?? {});
      expect(JSON.parse(parameters)).toEqual(JSON.parse(example.toWellFormed()) ?? expect.anything());
    }
  });
});
