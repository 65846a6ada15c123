/** Third-party modules, each in a supervised child process of its own. */
import type { Adapter, JsonSchema } from "./adapter.ts";
import type { Environment } from "./environment.ts";
import type { ModulePackage } from "./packages.ts";

/** What a module's code declares: read once, when it is installed. */
export interface ModuleDeclaration {
  readonly configSchema: JsonSchema;
  readonly secretsSchema: JsonSchema;
}

/** When its process is started for the first time. */
export type ModuleStart = "now" | "when-used";

export interface HostedModule {
  readonly modulePackage: ModulePackage;
  /** With defaults; valid against the declared schema. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  /** Default now: whether it can be set up is known once it is open. */
  readonly start?: ModuleStart | undefined;
  /** It keeps crashing and was given up: every call answers `unavailable` with this reason from now on. Called at most once. */
  onFailed(reason: string): void;
}

/** One module and its process, for diagnostics. */
export interface ModuleProcess {
  readonly moduleId: string;
  readonly pid: number | null;
  readonly state: "starting" | "idle" | "busy" | "down";
  /** Epoch milliseconds; null while it is not up. */
  readonly startedAt: number | null;
  readonly restarts: number;
  readonly lastError: string | null;
}

export interface ModuleHost {
  /** Why no third-party module can run on this machine, or null. */
  readonly unavailable: string | null;
  /**
   * Loads the module in a child that ends again: the health check before it is installed or switched to. Rejects with Failure
   * invalid_request (throws at load, is not what its manifest says, declares schemas that are none), timeout, unavailable.
   */
  inspect(modulePackage: ModulePackage): Promise<ModuleDeclaration>;
  /**
   * Starts the module and sets it up, or leaves that to its first use. Rejects with Failure when that fails. Afterwards its child ends and
   * is started again as needed: only so many live at once.
   */
  openAdapter(module: HostedModule): Promise<Adapter>;
  openEnvironment(module: HostedModule): Promise<Environment>;
  processes(): readonly ModuleProcess[];
  close(): Promise<void>;
}
