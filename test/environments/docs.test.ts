/** Agents copy from these pages, so what they show is compiled: declarations, signatures and examples together. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { transformSync } from "oxc-transform";
import { expect, test } from "vitest";
import { declarations } from "../../src/environments/javascript/declarations.ts";
import { environmentDocs } from "../../src/environments/javascript/environment-docs.ts";
import { toolDocs } from "../../src/environments/javascript/tool-docs.ts";
import type { JsonSchema } from "../../src/ports/adapter.ts";
import type { DocumentedTool } from "../../src/ports/environment.ts";
import { hostileTexts, schemaArbitrary } from "./schema-arbitrary.ts";

const tsc = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url));

const placeOrder: DocumentedTool = {
  serviceId: "petstore",
  id: "placeOrder",
  name: "placeOrder",
  summary: "Order a pet",
  description: "The pet must be available.",
  inputSchema: {
    type: "object",
    required: ["body"],
    properties: {
      query: { type: "object", properties: { express: { type: "boolean" } } },
      body: { $ref: "#/$defs/NewOrder" },
    },
    $defs: {
      NewOrder: {
        type: "object",
        required: ["petId"],
        properties: { petId: { type: "integer" }, note: { type: ["string", "null"] } },
      },
    },
  },
  outputSchema: {
    type: "object",
    required: ["status", "headers", "body"],
    properties: { status: { type: "integer" }, headers: { type: "object" }, body: { type: "object" } },
  },
};

function codeBlocks(markdown: string): string[] {
  return [...markdown.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code ?? "");
}

/** Compile errors of one program, with nothing known but standard ECMAScript. */
async function compileErrors(program: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-docs-"));
  try {
    const options = [
      "--noEmit",
      "--strict",
      "--target",
      "es2024",
      "--lib",
      "es2024",
      "--types",
      "",
      "--module",
      "esnext",
    ];
    await writeFile(join(folder, "program.ts"), `${program}\nexport {};\n`);
    await promisify(execFile)(process.execPath, [tsc, ...options, "program.ts"], { cwd: folder });
    return "";
  } catch (error) {
    return (error as { stdout?: string }).stdout || String(error);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const inFunction = (code: string) => `void (async () => {\n${code}\n});\n`;

test("the environment's declarations and examples compile together", async () => {
  const [shown, ...examples] = codeBlocks(environmentDocs());
  expect(shown).toBe(declarations);
  expect(examples).toHaveLength(3);
  expect(await compileErrors(declarations + examples.map(inFunction).join("\n"))).toBe("");
});

test("the environment page names its bounds, from settings where they are given", () => {
  expect(environmentDocs()).toContain("| 102400 characters |");
  expect(environmentDocs({ timeoutMs: 1234, memoryMb: 5, outputBytes: 6, toolTimeoutMs: 7 })).toContain("else 1234 ms");
});

test("a tool's signature, types and example call compile together", async () => {
  const [call = "", types = ""] = codeBlocks(toolDocs(placeOrder));
  expect(call).toBe("const result = await services.petstore.placeOrder({ body: { petId: 1 } });\n");
  const wrong = 'services.petstore.placeOrder({ body: { petId: "one" } });';
  expect(await compileErrors(types + inFunction(`${call}\nvoid result.status.toFixed();`))).toBe("");
  expect(await compileErrors(types + inFunction(wrong))).toContain("'string' is not assignable to type 'number'");
});

test("a tool page explains that HTTP answers are results, and only where they are", () => {
  expect(toolDocs(placeOrder)).toContain("Every answer is a result");
  expect(toolDocs({ ...placeOrder, outputSchema: { oneOf: [placeOrder.outputSchema] } })).toContain("Every answer");
  expect(toolDocs({ ...placeOrder, outputSchema: true })).not.toContain("Every answer is a result");
  expect(toolDocs({ ...placeOrder, outputSchema: { oneOf: [] } })).not.toContain("Every answer is a result");
});

test("parameters may be left out where none is required", () => {
  const optional = "placeOrder(parameters?: Parameters)";
  expect(toolDocs(placeOrder)).not.toContain(optional);
  expect(toolDocs({ ...placeOrder, inputSchema: { type: "object", required: [] } })).toContain(optional);
});

test.each([
  ["petstore", "list-pets", 'services.petstore["list-pets"]({})'],
  ["petstore", "then", 'services.petstore.tools["then"].invoke({})'],
  ["petstore", "tools", 'services.petstore.tools["tools"].invoke({})'],
  ["petstore", "toString", 'services.petstore.tools["toString"].invoke({})'],
  ["petstore", "GET /pets/{id}", 'services.petstore["GET /pets/{id}"]({})'],
  ["$", "_", "services.$._({})"],
])("the call of tool %s %s is %s", async (serviceId, id, expected) => {
  const [call = "", types = ""] = codeBlocks(
    toolDocs({ ...placeOrder, serviceId, id, inputSchema: { type: "object" } }),
  );
  expect(call).toBe(`const result = await ${expected};\n`);
  expect(await compileErrors(types + inFunction(call))).toBe("");
});

test.each(hostileTexts)("the foreign text %j stays data on a tool's page", (text) => {
  const page = toolDocs({ ...placeOrder, name: text, summary: `a ${text}`, description: `b ${text} ![i](http://x)` });
  const calm = toolDocs({ ...placeOrder, name: "n", summary: "a", description: "b" });
  const structure = (markdown: string) => markdown.split("\n").filter((line) => /^(#|```|[^>]*`)/.test(line));
  expect(structure(page)).toEqual(structure(calm));
  const quotes = page.split("\n").filter((line) => line.startsWith(">"));
  expect(quotes.join("\n")).not.toMatch(/<|!\[|[\u202e\u200b\u2028]/);
});

test("whatever the schemas and names, the page is bounded, its fences are closed and its code parses", () => {
  const name = fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(schemaArbitrary, schemaArbitrary, name, (inputSchema, outputSchema, text) => {
      const page = toolDocs({
        ...placeOrder,
        inputSchema: inputSchema as JsonSchema,
        outputSchema: outputSchema as JsonSchema,
        id: text,
        description: text,
      });
      expect(Buffer.byteLength(page)).toBeLessThan(32 * 1024);
      expect(page.match(/^```/gm)).toHaveLength(4);
      const [call = "", types = ""] = codeBlocks(page);
      expect(transformSync("call.ts", call).errors).toEqual([]);
      expect(transformSync("types.ts", types).errors).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
