/**
 * The page an agent reads before it calls a tool from Python: one example call, types, errors. Types are written as for
 * JavaScript: TypeScript says in few words what Python needs a class for, and agents read both.
 */
import type { DocumentedTool } from "../../ports/environment.ts";
import { exampleFromSchema } from "../example-from-schema.ts";
import { toolHeading, toolResult } from "../page-sections.ts";
import { typesFromSchemas } from "../types-from-schema.ts";
import { argumentsText, callee } from "./python-call.ts";

/** Markdown of at most about 30 KB. */
export function pythonToolDocs(tool: DocumentedTool): string {
  return [
    toolHeading(tool),
    call(tool),
    types(tool),
    toolResult(tool).replaceAll("result.status", 'result["status"]'),
    errors,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function call(tool: DocumentedTool): string {
  return `\
## Call

\`\`\`python
result = ${callee(tool.serviceId, tool.id)}(${argumentsText(exampleFromSchema(tool.inputSchema))})
\`\`\`
`;
}

function types(tool: DocumentedTool): string {
  return `\
## Types

In TypeScript notation. The members of \`Parameters\` are the keyword arguments; objects are dicts, arrays are lists, and null is
\`None\`.

\`\`\`ts
${typesFromSchemas([
  { name: "Parameters", schema: tool.inputSchema },
  { name: "Result", schema: tool.outputSchema },
])}\`\`\`
`;
}

const errors = `\
## Errors

A failed call raises \`ToolError\` with \`code\` and \`status\`: \`invalid_request\` 400 (parameters do not fit), \`not_found\` 404,
\`conflict\` 409 (service or tool disabled or stale), \`upstream_failed\` 502 (target not reached), \`unavailable\` 503,
\`timeout\` 504.
`;
