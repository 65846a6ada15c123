/** Turns a definition document of one protocol into tools, and calls them. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** What every list and search needs of a tool; schemas come from `describe`. */
export interface ToolSummary {
  readonly id: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** Names of parameters and top body properties, for search. */
  readonly parameterNames: readonly string[];
}

/** Self-contained: `$ref`s point into their own `$defs`. */
export interface ToolSchemas {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

export interface Definition {
  /** Suggested service id before clean-up, such as info.title. */
  readonly title: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly version: string;
  readonly configSchema: JsonSchema;
  readonly secretsSchema: JsonSchema;
  readonly tools: readonly ToolSummary[];
  /** Everything else the adapter needs to describe and call the tools: opaque text, stored with the service. */
  readonly plan: string;
}

/** Where the adapter finds a service's plan; `hash` identifies the text, `load` is called only when it is not cached. */
export interface PlanReference {
  readonly hash: string;
  load(): Promise<string>;
}

export interface Hydration {
  readonly serviceId: string;
  readonly plan: PlanReference;
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

export interface Invocation {
  readonly toolId: string;
  readonly parameters: unknown;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A service made ready: holds its configuration and credentials. */
export interface HydratedService {
  /** Resolves with the tool's result as plain JSON. Rejects with Failure. */
  invoke(invocation: Invocation): Promise<unknown>;
}

export interface Adapter {
  /** openapi, mcp, grpc, graphql, … */
  readonly id: string;
  /** Pure in its input. Rejects with Failure invalid_request when the document cannot be used, naming why. */
  define(document: { readonly text: string; readonly url?: string | undefined }): Promise<Definition>;
  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas>;
  /** Rejects with Failure when configuration or secrets cannot work. */
  hydrate(hydration: Hydration): Promise<HydratedService>;
  close(): Promise<void>;
}
