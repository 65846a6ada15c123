/** What agents read about the environment their programs run in. */
import type { JsonSchema } from "./adapter.ts";

export interface DocumentedTool {
  readonly serviceId: string;
  readonly id: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

export interface Environment {
  /** javascript, python, … */
  readonly id: string;
  /** Markdown: how to write process code. */
  docs(): string;
  /** Markdown: how to call one tool from process code. */
  toolDocs(tool: DocumentedTool): string;
}
