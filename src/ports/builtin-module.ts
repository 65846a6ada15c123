/** A module that comes with the server: its record is like any other's, its code runs in the server process. */
import type { Adapter, JsonSchema } from "./adapter.ts";
import type { Environment } from "./environment.ts";

interface BuiltinDescription {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly configSchema: JsonSchema;
  readonly secretsSchema: JsonSchema;
  /** Whether it is enabled when the server first meets it. */
  readonly enabledAtFirst: boolean;
  /** Why it cannot be used on this machine, or null. */
  readonly missing: string | null;
}

export interface BuiltinSettings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

export interface BuiltinAdapter extends BuiltinDescription {
  readonly type: "adapter";
  open(settings: BuiltinSettings): Promise<Adapter>;
}

export interface BuiltinEnvironment extends BuiltinDescription {
  readonly type: "environment";
  open(settings: BuiltinSettings): Promise<Environment>;
}

export type BuiltinModule = BuiltinAdapter | BuiltinEnvironment;
