/**
 * What a third-party adapter makes of a document, held to the contract before anything of it is stored. Everything the server needs later
 * goes into the plan text: the schemas of the tools for `describe` and the parameter check, and the adapter's own plan for `hydrate`.
 */
import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { schemaProblem } from "../json/schema.ts";
import { moduleNameCharactersMax, moduleSchemasSliceMs, moduleTextCharactersMax, moduleToolsMax } from "../limits.ts";
import type { Definition, JsonSchema, ToolSchemas, ToolSummary } from "../ports/adapter.ts";
import type { ServiceDefinition, ToolDefinition } from "../sdk/sdk.ts";

const name = z.string().min(1).max(moduleNameCharactersMax);
const text = z.string().max(moduleTextCharactersMax);
const schema = z.custom<JsonSchema>(
  (value) => typeof value === "boolean" || (typeof value === "object" && value !== null && !Array.isArray(value)),
  "must be a JSON Schema: an object or a boolean",
);

const tool = z.strictObject({
  id: name,
  name,
  summary: text.optional(),
  description: text.optional(),
  inputSchema: schema.optional(),
  outputSchema: schema.optional(),
});

const definition = z.strictObject({
  name,
  summary: text.optional(),
  description: text.optional(),
  version: name.optional(),
  configSchema: schema.optional(),
  secretsSchema: schema.optional(),
  tools: z.array(tool).max(moduleToolsMax, `must hold at most ${moduleToolsMax} tools`),
  plan: z.unknown().optional(),
});

type Checked = z.infer<typeof definition>;
type CheckedTool = Checked["tools"][number];
/** The compiler compares the check with the contract: what a module may answer is accepted. */
type Accepts<Sent extends Checked> = Sent;
export type AcceptedDefinition = Accepts<Omit<ServiceDefinition, "tools"> & { tools: ToolDefinition[] }>;

/** Schemas where the module names none. */
export const noSettings: JsonSchema = { type: "object", additionalProperties: false };
const anyObject: JsonSchema = { type: "object" };

export interface PlanContents {
  readonly tools: Readonly<Record<string, ToolSchemas>>;
  readonly plan: unknown;
}

/** Rejects with Failure invalid_request that names the module and what is wrong with its answer. */
export async function checkedDefinition(moduleId: string, answer: unknown): Promise<Definition> {
  const refuse = (fault: string) => {
    throw new Failure(
      "invalid_request",
      `Adapter "${moduleId}" answered with a definition that cannot be used: ${fault}`,
    );
  };
  const parsed = definition.safeParse(answer);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return refuse(`"${(issue?.path ?? []).join(".")}" ${issue?.message ?? "is wrong"}`);
  }
  const found: Checked = parsed.data;
  await checkSchemas(found, refuse);
  return toDefinition(found);
}

async function checkSchemas(found: Checked, refuse: (fault: string) => void): Promise<void> {
  const ids = new Set<string>();
  const check = (what: string, schema: JsonSchema | undefined) => {
    const fault = schema === undefined ? undefined : schemaProblem(schema);
    if (fault !== undefined) refuse(`${what}: ${fault}`);
  };
  check("configSchema", found.configSchema);
  check("secretsSchema", found.secretsSchema);
  let sliceStart = performance.now();
  for (const { id, inputSchema, outputSchema } of found.tools) {
    if (ids.has(id)) refuse(`the tool id "${id}" occurs twice`);
    ids.add(id);
    check(`inputSchema of tool "${id}"`, inputSchema);
    check(`outputSchema of tool "${id}"`, outputSchema);
    if (performance.now() - sliceStart < moduleSchemasSliceMs) continue;
    await setImmediate();
    sliceStart = performance.now();
  }
}

function toDefinition(found: Checked): Definition {
  const contents: PlanContents = {
    // Without a prototype a tool may be called `__proto__` and still be found.
    tools: Object.assign(
      Object.create(null),
      Object.fromEntries(
        found.tools.map(({ id, inputSchema = anyObject, outputSchema = true }) => [id, { inputSchema, outputSchema }]),
      ),
    ),
    plan: found.plan ?? null,
  };
  return {
    title: found.name,
    name: found.name,
    summary: found.summary ?? "",
    description: found.description ?? "",
    version: found.version ?? "0.0.0",
    configSchema: found.configSchema ?? noSettings,
    secretsSchema: found.secretsSchema ?? noSettings,
    tools: found.tools.map(summaryOf),
    plan: JSON.stringify(contents),
  };
}

function summaryOf({ id, name, summary = "", description = "", inputSchema }: CheckedTool): ToolSummary {
  return { id, name, summary, description, parameterNames: parameterNames(inputSchema) };
}

function parameterNames(schema: JsonSchema | undefined): readonly string[] {
  const properties = typeof schema === "object" ? schema.properties : undefined;
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}
