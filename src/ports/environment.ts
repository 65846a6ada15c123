/** What programs run in, and what agents read about it. */
import type { JsonSchema } from "./adapter.ts";
import type { Executor } from "./executor.ts";

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
  docs(): Promise<string>;
  /** Markdown: how to call one tool from process code. */
  toolDocs(tool: DocumentedTool): Promise<string>;
  /** Runs its programs. */
  readonly executor: Executor;
  /** After its last run has ended: ends whatever it keeps alive. */
  close(): Promise<void>;
}
