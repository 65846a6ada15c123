/**
 * The page an agent reads before it calls a tool: signature, types, one example call, errors. Everything the tool's document
 * says is foreign text, shown as data: bounded, quoted and inert.
 */
import type { DocumentedTool } from "../../ports/environment.ts";
import { exampleFromSchema } from "../example-from-schema.ts";
import { toolHeading, toolResult } from "../page-sections.ts";
import { isObject } from "../schema-references.ts";
import { typesFromSchemas } from "../types-from-schema.ts";
import { callee, objectLiteral, signature } from "./tool-call.ts";

/** Markdown of at most about 30 KB. */
export function toolDocs(tool: DocumentedTool): string {
  return [toolHeading(tool), call(tool), types(tool), toolResult(tool), errors]
    .filter((part) => part !== "")
    .join("\n");
}

function call(tool: DocumentedTool): string {
  const parameters = objectLiteral(exampleFromSchema(tool.inputSchema));
  return `\
## Call

\`\`\`ts
const result = await ${callee(tool.serviceId, tool.id)}(${parameters});
\`\`\`
`;
}

function types(tool: DocumentedTool): string {
  const declarations = typesFromSchemas([
    { name: "Parameters", schema: tool.inputSchema },
    { name: "Result", schema: tool.outputSchema },
  ]);
  const parameter = isOptional(tool.inputSchema) ? "parameters?: Parameters" : "parameters: Parameters";
  return `\
## Types

\`\`\`ts
${signature(tool.serviceId, tool.id, parameter, "Promise<Result>")}
${declarations}\`\`\`
`;
}

/** Nothing is required, as far as the top of the schema tells. */
function isOptional(schema: unknown): boolean {
  if (!isObject(schema) || schema.type !== "object") return false;
  const isPlain = ["$ref", "allOf", "anyOf", "oneOf", "minProperties"].every(
    (keyword) => schema[keyword] === undefined,
  );
  return isPlain && !(Array.isArray(schema.required) && schema.required.length > 0);
}

const errors = `\
## Errors

A failed call throws an Error with \`code\` and \`status\`: \`invalid_request\` 400 (parameters do not fit), \`not_found\` 404,
\`conflict\` 409 (service or tool disabled or stale), \`upstream_failed\` 502 (target not reached), \`unavailable\` 503,
\`timeout\` 504.
`;
