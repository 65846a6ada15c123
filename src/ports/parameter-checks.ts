/** Checks parameters against foreign JSON Schemas away from the server: a schema or pattern that takes for ever ends a worker, not us. */
import type { JsonSchema } from "./adapter.ts";

export interface ParameterCheck {
  /** Identifies the schema, so that it is compiled once: plan hash and tool id. */
  readonly key: string;
  readonly schema: JsonSchema;
  readonly parameters: unknown;
  /** Opens error texts: `Parameters of tool "getPet"`. */
  readonly subject: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ParameterChecks {
  /** Rejects with Failure: invalid_request naming the fields, timeout, cancelled, overloaded, unavailable. */
  check(check: ParameterCheck): Promise<void>;
  close(): Promise<void>;
}
