/** What a tool of this face is, and what it is given when it is called. */
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { ToolField } from "./input-schema.ts";

export interface McpTool {
  /** Within `^[a-zA-Z0-9_-]{1,64}$`, which every model provider takes. */
  readonly name: string;
  readonly title: string;
  /** For a language model: what it does, when to use it, what comes back, an example. */
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly fields: Readonly<Record<string, ToolField>>;
  /** The row whose rate limit a call counts for. */
  readonly countsAs: string;
  /** Rejects with Failure for what becomes an error result. The arguments are checked by the rows. */
  run(args: ToolArguments, context: ToolContext): Promise<CallToolResult>;
}

export type ToolArguments = Readonly<Record<string, unknown>>;

export interface ToolContext {
  /** Calls a row as the caller of this tool. Rejects with Failure only. */
  call<Output>(row: string, input: unknown): Promise<Output>;
  /** What the row makes of `input`, without calling it. Throws Failure invalid_request. */
  check<Input>(row: string, input: unknown): Input;
  /** Milliseconds, on the monotonic clock. */
  now(): number;
  /** Undefined when the client has not asked for progress. */
  readonly progress: Progress | undefined;
}

/** `done` must grow. Never rejects: a client that cannot be told is not told. */
export type Progress = (step: {
  readonly done: number;
  readonly total: number;
  readonly message: string;
}) => Promise<void>;

/** The fields that go to a row, of what the client sent: names that a tool does not have never reach one. */
export function pick(args: ToolArguments, ...names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => args[name] !== undefined).map((name) => [name, args[name]]));
}
