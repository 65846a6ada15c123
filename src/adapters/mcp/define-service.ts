/** A document, read, becomes a definition. Runs in the document worker. */
import { basename } from "node:path";
import { schemaFault } from "../../json/schema-bounds.ts";
import { isSchemaObject } from "../../json/schema-walk.ts";
import { mcpDescriptionCharactersMax, mcpToolNameCharactersMax } from "../../limits.ts";
import type { Definition, JsonSchema, ToolSummary } from "../../ports/adapter.ts";
import { anyObject, type Plan, planVersion, type ToolPlan } from "./plan.ts";
import { type DocumentTool, readDocument } from "./read-document.ts";
import { resultSchema } from "./result-schema.ts";
import { type ServerAddress, shownServer } from "./server-address.ts";
import { configSchema, secretsSchema } from "./settings-schemas.ts";
import { shortened, unusable } from "./unusable.ts";

/** Names of parameters that a search looks at. */
const parameterNamesMax = 200;
const summaryCharactersMax = 120;
const titleCharactersMax = 200;

/** @throws Failure invalid_request naming the tool at fault. */
export function defineService(source: string): Definition {
  const { address, server, tools: given } = readDocument(source);
  const title = shortened(server.title || server.name || nameOf(address), titleCharactersMax);
  const described = cut(server.instructions?.trim() ?? "");
  const tools = given.map(readTool);
  requireUniqueIds(tools);
  const plan: Plan = { version: planVersion, address, tools: tools.map(({ plan }) => plan) };
  return {
    title,
    name: title,
    summary: firstSentence(described) || shownServer(address),
    description: described,
    version: shortened(server.version ?? "", titleCharactersMax),
    configSchema: configSchema(address),
    secretsSchema: secretsSchema(address),
    tools: tools.map(({ summary }) => summary),
    plan: JSON.stringify(plan),
  };
}

interface ReadTool {
  readonly summary: ToolSummary;
  readonly plan: ToolPlan;
}

function readTool({ name, title, description, annotations, ...schemas }: DocumentTool): ReadTool {
  if (name === "" || name.length > mcpToolNameCharactersMax) {
    throw unusable(`the name of a tool has ${name.length} characters; 1 to ${mcpToolNameCharactersMax} are allowed`);
  }
  const inputSchema = readSchema(schemas.inputSchema, `input schema of tool "${name}"`) ?? anyObject;
  const promised = readSchema(schemas.outputSchema, `output schema of tool "${name}"`);
  const id = toolId(name);
  const described = cut(description?.trim() ?? "");
  const shown = shortened(title || annotations?.title || name, titleCharactersMax);
  return {
    summary: {
      id,
      name: shown,
      summary: firstSentence(described),
      description: described,
      parameterNames: parameterNames(inputSchema),
    },
    plan: { id, name, inputSchema, outputSchema: resultSchema(promised) },
  };
}

/** Names are ids as they are; what the protocol does not allow in them, and some servers use, becomes `_`. */
function toolId(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_./-]/gu, "_");
}

function requireUniqueIds(tools: readonly ReadTool[]): void {
  const names = new Map<string, string>();
  for (const { plan } of tools) {
    const other = names.get(plan.id);
    if (other === plan.name) throw unusable(`the server lists tool "${plan.name}" more than once`);
    if (other !== undefined) throw unusable(`tools "${other}" and "${plan.name}" would have the same id "${plan.id}"`);
    names.set(plan.id, plan.name);
  }
}

/** Whether it is a valid JSON Schema is judged when parameters are checked; here only what would make handling it dangerous. */
function readSchema(schema: unknown, what: string): JsonSchema | undefined {
  if (schema === undefined || schema === null) return undefined;
  const fault = schemaFault(schema);
  if (fault !== undefined) throw unusable(`the ${what}: ${fault}`);
  return schema as JsonSchema;
}

function parameterNames(schema: JsonSchema): string[] {
  const properties = isSchemaObject(schema) ? schema.properties : undefined;
  return isSchemaObject(properties) ? Object.keys(properties).slice(0, parameterNamesMax) : [];
}

/** Of the host or the executable, where the server does not say how it is called. */
function nameOf(address: ServerAddress): string {
  return address.kind === "http" ? new URL(address.url).hostname : basename(address.command);
}

function cut(text: string): string {
  const kept = text.toWellFormed();
  return kept.length <= mcpDescriptionCharactersMax
    ? kept
    : `${kept.slice(0, mcpDescriptionCharactersMax).toWellFormed()}…`;
}

function firstSentence(text: string): string {
  const line = text
    .slice(0, summaryCharactersMax * 4)
    .split("\n", 1)[0]!
    .trim();
  return shortened(/^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line, summaryCharactersMax);
}
