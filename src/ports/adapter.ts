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
  /** Lets go of connections and sessions. Called once, when nobody will call it any more; calls in flight may still end. */
  close?(): void;
}

/** Whom to ask what it offers. At install settings are empty; later they are those of the service. */
export interface DiscoveryTarget {
  /** As the caller gave it, or as it is stored with the service. */
  readonly url?: string | undefined;
  /** What was given inline, or is stored now. */
  readonly document?: string | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

/** The adapters that can be used now; they come and go with their modules. */
export interface Adapters {
  get(id: string): Adapter | undefined;
  ids(): readonly string[];
}

export interface Adapter {
  /** openapi, mcp, grpc, graphql, … */
  readonly id: string;
  /** Pure in its input. Rejects with Failure invalid_request when the document cannot be used, naming why. */
  define(document: { readonly text: string; readonly url?: string | undefined }): Promise<Definition>;
  /**
   * Only where the target itself says what it offers (MCP, gRPC reflection, GraphQL introspection): asks it and resolves with the
   * document that `define` reads. Rejects with Failure upstream_failed, timeout, invalid_request, cancelled.
   */
  discover?(target: DiscoveryTarget): Promise<string>;
  describe(plan: PlanReference, toolId: string): Promise<ToolSchemas>;
  /** Rejects with Failure when configuration or secrets cannot work. */
  hydrate(hydration: Hydration): Promise<HydratedService>;
  close(): Promise<void>;
}
