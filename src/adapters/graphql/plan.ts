/**
 * The plan: all that describing and calling the tools of one GraphQL schema needs. It is made once by `define`, stored with the
 * service as opaque text, and read by the schema worker only. The server sees a `ServicePlan` and, for each tool, a `ReadyTool`.
 */
import type { JsonSchema } from "../../ports/adapter.ts";

export const planVersion = 1;

export interface Plan {
  readonly version: typeof planVersion;
  readonly service: ServicePlan;
  /** Schema definition language, printed by us; null: a service that was not synced yet. */
  readonly sdl: string | null;
}

export interface ServicePlan {
  /** Absolute URL the document names; null: only configuration can tell. */
  readonly endpoint: string | null;
}

export type OperationKind = "query" | "mutation";

/** What a call needs. Every text in it is either a name or a type of the checked schema, or printed from its syntax tree. */
export interface ReadyTool {
  readonly operation: OperationKind;
  readonly field: string;
  /** Name and type, as written in GraphQL, of each argument. */
  readonly arguments: readonly (readonly [name: string, type: string])[];
  /** `{ id name }`, or null where the field has nothing to select from. */
  readonly selection: string | null;
  readonly inputSchema: JsonSchema;
}

/** The parameter that is not an argument: names that begin with two underscores are GraphQL's own, so it never clashes. */
export const selectParameter = "__select";
