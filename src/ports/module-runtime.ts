/** Modules in service: which adapters can be used and which environment is active. Memory only, made again at every start. */
import type { ModuleStart } from "./module-host.ts";
import type { ModuleType } from "./packages.ts";

export interface ModuleActivation {
  readonly moduleId: string;
  readonly type: ModuleType;
  /** Hash of its package; null: built in. */
  readonly hash: string | null;
  /** Declared values with defaults. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  /** Of a packaged adapter; everything else is started now. */
  readonly start: ModuleStart;
}

export interface ModuleRuntime {
  /**
   * Puts the module in service in place of what served under its id; an environment takes over from the active one, which keeps
   * what it runs. Rejects with Failure, and then whatever served before still does.
   */
  activate(activation: ModuleActivation): Promise<void>;
  /** Takes it out of service. An environment lets its runs end. Unknown ids are left alone. */
  deactivate(moduleId: string): void;
}
