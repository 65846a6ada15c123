/**
 * Definition documents. Runs in the document worker.
 *
 *   {"url": "https://…"}                                        no tools until the service is synced
 *   {"command": "…", "args": […], "env": {…}}                   the same, over stdio
 *   … with "server": {…} and "tools": […]                       what discovery makes
 */
import { z } from "zod";
import { mcpToolListCharactersMax, mcpToolsMax } from "../../limits.ts";
import { readCommand, readServerUrl, type ServerAddress } from "./server-address.ts";
import { unusable } from "./unusable.ts";

const text = z.string().nullish();

const toolShape = z.object({
  name: z.string(),
  title: text,
  description: text,
  annotations: z.object({ title: text }).nullish(),
  inputSchema: z.unknown().optional(),
  outputSchema: z.unknown().optional(),
});

const addressShape = z.object({
  url: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
});

const documentShape = addressShape.extend({
  server: z.object({ name: text, title: text, version: text, instructions: text }).default({}),
  tools: z.array(toolShape).max(mcpToolsMax, `holds more than ${mcpToolsMax} tools`).default([]),
});

export type DocumentTool = z.infer<typeof toolShape>;

export interface McpDocument {
  readonly address: ServerAddress;
  readonly server: z.infer<typeof documentShape>["server"];
  readonly tools: readonly DocumentTool[];
}

/** @throws Failure invalid_request. */
export function readDocument(source: string): McpDocument {
  const { server, tools, ...address } = shaped(documentShape, source);
  return { address: toAddress(address), server, tools };
}

/** The address alone, whatever the rest may be: a list of tools that cannot be used is no reason not to ask for a new one. */
export function readAddress(source: string): ServerAddress {
  return toAddress(shaped(addressShape, source));
}

function toAddress({ url, command, args, env }: z.infer<typeof addressShape>): ServerAddress {
  if (url !== undefined && command !== undefined) throw unusable('it has both "url" and "command"');
  if (url !== undefined) return { kind: "http", url: readServerUrl(url) };
  if (command === undefined) throw unusable('it has neither "url" nor "command"');
  return readCommand({ command, args, env });
}

/** A tool list of the most characters allowed, and as much again for the rest and for escapes. */
const charactersMax = 2 * mcpToolListCharactersMax;

function shaped<T>(shape: z.ZodType<T>, source: string): T {
  if (source.length > charactersMax) throw unusable(`it is larger than ${charactersMax} characters`);
  const parsed = shape.safeParse(readJson(source));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue?.path.join(".") ?? "";
  throw unusable(place === "" ? `it is not a JSON object` : `its "${place.slice(0, 100)}": ${issue?.message}`);
}

function readJson(source: string): unknown {
  try {
    return JSON.parse(source.replace(/^\uFEFF/, ""));
  } catch {
    throw unusable("it is not valid JSON");
  }
}
