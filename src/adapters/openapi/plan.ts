/**
 * The plan: all that describing and calling the tools of one document needs, as plain JSON. It is made once by `define`,
 * stored with the service as opaque text, and read by the definition worker only. The server sees a `ServicePlan` and, for each call, a
 * `PreparedRequest`.
 */

/** Schemas refer to `#/$defs/<name>`; the definitions of all tools are kept once, in `Plan.schemas`. */
export type Schema = { readonly [keyword: string]: unknown } | boolean;
export type MutableSchema = { [keyword: string]: unknown };

export const planVersion = 1;

export interface Plan {
  readonly version: typeof planVersion;
  readonly service: ServicePlan;
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly tools: readonly ToolPlan[];
}

/** What `hydrate` needs: where the service lives and which credentials it knows. */
export interface ServicePlan {
  /** Address of the document; relative server URLs are resolved against it. */
  readonly documentUrl: string | null;
  readonly servers: readonly Server[];
  /** Every tool names servers of its own, so the service's are never used. */
  readonly serversUnused: boolean;
  readonly schemes: Readonly<Record<string, SecurityScheme>>;
}

export interface Server {
  /** May hold `{variables}` and may be relative. */
  readonly url: string;
  readonly variables: Readonly<Record<string, ServerVariable>>;
}

export interface ServerVariable {
  readonly default: string | null;
  readonly enum: readonly string[];
  readonly description: string;
}

export type SecurityScheme =
  | {
      readonly kind: "apiKey";
      readonly in: "header" | "query" | "cookie";
      readonly name: string;
      readonly description: string;
    }
  | { readonly kind: "basic"; readonly description: string }
  /** Sent as `Authorization: <prefix> <secret>`. */
  | { readonly kind: "authorization"; readonly prefix: string; readonly description: string }
  | { readonly kind: "unsupported"; readonly reason: string };

/** All schemes of one requirement together; an empty one allows anonymous calls. */
export type Requirement = readonly string[];

export type ParameterPlace = "path" | "query" | "headers" | "cookies";
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject"
  | "content";

export interface ParameterPlan {
  readonly name: string;
  readonly place: ParameterPlace;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly allowReserved: boolean;
}

export interface PropertyEncoding {
  readonly contentType: string | null;
  readonly style: "form" | "spaceDelimited" | "pipeDelimited" | "deepObject" | null;
  readonly explode: boolean;
  readonly allowReserved: boolean;
}

export interface BodyContent {
  readonly mediaType: string;
  /** For forms: how each property is written, where the document says so. */
  readonly encoding: Readonly<Record<string, PropertyEncoding>>;
}

export interface ToolPlan {
  readonly id: string;
  readonly method: string;
  /** Template with `{names}`; starts with a slash and holds no fragment. */
  readonly path: string;
  /** Absent: those of the service. */
  readonly servers?: readonly Server[];
  /** Alternatives; an empty list means no credentials are sent. */
  readonly security: readonly Requirement[];
  /** Schemes whose key the operation also lists as a parameter: sent whenever there is a secret, whatever `security` says. */
  readonly keys: readonly string[];
  readonly parameters: readonly ParameterPlan[];
  /** First is the one used unless `contentType` names another. Empty: the operation takes no body. */
  readonly contents: readonly BodyContent[];
  /** Accept header. */
  readonly accept: string;
  readonly inputSchema: Schema;
  readonly outputSchema: Schema;
}

/** A call with everything in its place except server and credentials. */
export interface PreparedRequest {
  readonly method: string;
  /** Begins with a slash. */
  readonly path: string;
  /** Without the question mark; may be empty. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly servers?: readonly Server[];
  readonly security: readonly Requirement[];
  readonly keys: readonly string[];
}
