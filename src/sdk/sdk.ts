/**
 * What a module is to the server: the contract between Troupe and code that others write. Types only, so that a module has
 * nothing of ours in it: `import type { AdapterModule } from "troupe/sdk"`.
 *
 * A module is a package whose package.json has a member `troupe` (`ModuleManifest`) and whose `main` file has one default export: an
 * `AdapterModule` or an `EnvironmentModule`. It runs in a process of its own: no network but `context.fetch`, no files but
 * its own folder, no environment variables, bounded memory. Everything that crosses the border is plain JSON.
 *
 * A module may import its own files and, of what Node brings: assert, assert/strict, buffer, console, constants, crypto, events, fs,
 * fs/promises, path, path/posix, path/win32, perf_hooks, process, punycode, querystring, stream, stream/consumers, stream/promises, stream/web,
 * string_decoder, timers, timers/promises, url, util, util/types, vm, zlib. Any other import of Node's is an error that says so.
 *
 * No synchronous stretch over 10 s: while calls wait for the process it is asked every 2 s whether it is alive, and ended when it has answered
 * nothing for 10 s. Its calls then fail, and it is started again. Cut long work into parts with `await setImmediate()` of
 * "node:timers/promises" between them; awaiting a promise that is settled already lets nothing else run.
 */

/** Member `troupe` of package.json. */
export interface ModuleManifest {
  /** Letters, digits, `_`, `-` or `$`; for an adapter also the name services refer to it by. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly type: "adapter" | "environment";
  readonly description: string;
  /** Semver range of Troupe versions it runs in. */
  readonly engines: string;
  /** File with the default export, relative to package.json: JavaScript (ES module), or TypeScript with erasable types only. */
  readonly main: string;
  /** PNG, WebP or SVG of at most 256 KiB, relative to package.json. */
  readonly icon?: string;
}

export type JsonSchema = Readonly<Record<string, unknown>> | boolean;
export type JsonObject = Readonly<Record<string, unknown>>;

export interface FetchRequest {
  /** Absolute http or https URL. The server judges every address and refuses private ones it was not told to allow. */
  readonly url: string;
  /** Default GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Redirects followed, for GET and HEAD. Default 0: a 3xx is an answer like any other. */
  readonly redirectsMax?: number;
  /** For the whole exchange. Default and most: the time limit of tool calls. */
  readonly timeoutMs?: number;
}

export interface FetchAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** After redirects. */
  readonly url: string;
}

/** One line of the server's log, with the module's id. Lines beyond a bound per second are dropped and counted. */
export interface ModuleLog {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What a module gets at setup. */
export interface ModuleContext {
  /** Valid against `configSchema`, with its defaults. */
  readonly config: JsonObject;
  /** Valid against `secretsSchema`. */
  readonly secrets: JsonObject;
  readonly log: ModuleLog;
  /** The only way out. Rejects with an Error that has `code`: upstream_failed, timeout, too_large. */
  fetch(request: FetchRequest): Promise<FetchAnswer>;
}

/**
 * Thrown errors become the caller's answer. An Error with `code` `invalid_request` (the caller's fault), `upstream_failed` (the target's),
 * `timeout` or `conflict` is answered as such; any other is `upstream_failed`. The message is shown to the caller: no secrets in it.
 */
export interface ModuleError extends Error {
  readonly code?: "invalid_request" | "upstream_failed" | "timeout" | "conflict";
}

/* ---- adapters ---- */

export interface AdapterModule {
  readonly type: "adapter";
  /** Settings of the module itself (not of services); default: none. */
  readonly configSchema?: JsonSchema;
  readonly secretsSchema?: JsonSchema;
  /** Called once in each process, before anything else. */
  setup(context: ModuleContext): ModuleAdapter | Promise<ModuleAdapter>;
}

export interface DocumentInput {
  /** The definition document as it was downloaded or given. */
  readonly document: string;
  /** Where it came from. */
  readonly url?: string;
}

export interface ToolDefinition {
  /** Unique within the service. A JavaScript identifier can be called as `services.petstore.getPet()`. */
  readonly id: string;
  readonly name: string;
  readonly summary?: string;
  readonly description?: string;
  /** Of the parameters, which the server checks before `invoke`. Default: any object. */
  readonly inputSchema?: JsonSchema;
  /** Of the result, for documentation. Default: anything. */
  readonly outputSchema?: JsonSchema;
}

export interface ServiceDefinition {
  readonly name: string;
  readonly summary?: string;
  readonly description?: string;
  /** Default `0.0.0`. */
  readonly version?: string;
  /** Settings of a service; default: none. */
  readonly configSchema?: JsonSchema;
  readonly secretsSchema?: JsonSchema;
  readonly tools: readonly ToolDefinition[];
  /** What `hydrate` needs of the document: any JSON, stored with the service. */
  readonly plan?: unknown;
}

export interface ServiceToHydrate {
  readonly serviceId: string;
  /** As `generateDefinition` gave it. */
  readonly plan: unknown;
  readonly config: JsonObject;
  readonly secrets: JsonObject;
}

export interface ToolInvocation {
  readonly toolId: string;
  readonly parameters: JsonObject;
  /** Aborted when the caller goes away or time is up; then nobody waits for the answer. */
  readonly signal: AbortSignal;
}

export interface ModuleAdapter<Hydrated = unknown> {
  /** Pure: the same document gives the same definition. */
  generateDefinition(input: DocumentInput): ServiceDefinition | Promise<ServiceDefinition>;
  /** Makes a service ready; what it returns is given to `invoke`. Again for the same id: in place of the former. */
  hydrate(service: ServiceToHydrate): Hydrated | Promise<Hydrated>;
  invoke(hydrated: Hydrated, invocation: ToolInvocation): unknown;
  /** Lets go of what `hydrate` opened. */
  dehydrate?(hydrated: Hydrated): void | Promise<void>;
}

/* ---- environments ---- */

export interface EnvironmentModule {
  readonly type: "environment";
  readonly configSchema?: JsonSchema;
  readonly secretsSchema?: JsonSchema;
  setup(context: ModuleContext): ModuleEnvironment | Promise<ModuleEnvironment>;
}

export interface ProgramRun {
  /** Unique in this process. */
  readonly runId: string;
  readonly code: string;
  /** `envConfig` of the request. */
  readonly env: JsonObject;
  readonly limits: { readonly memoryMb: number; readonly outputBytes: number; readonly cpuMs: number | null };
  stdout(text: string): void;
  stderr(text: string): void;
  /** Shallow-merged into the structured output, later keys win. */
  output(part: JsonObject): void;
  /** Rejects with an Error that has `code` and `status`. */
  callTool(serviceId: string, toolId: string, parameters?: unknown): Promise<unknown>;
}

export type ProgramEnd =
  | { readonly status: "success" }
  | { readonly status: "failed"; readonly reason: "thrown" | "syntax" | "memory"; readonly error: string };

export interface ToolToDocument {
  readonly serviceId: string;
  readonly id: string;
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

export interface ModuleEnvironment {
  execute(run: ProgramRun): Promise<ProgramEnd>;
  /** Must make `execute` of that run settle within a second, else the whole process is ended. Unknown ids: nothing. */
  kill(runId: string): void;
  /** Markdown for agents: how to write programs. */
  docs(): string | Promise<string>;
  /** Markdown for agents: how to call one tool. */
  toolDocs(tool: ToolToDocument): string | Promise<string>;
}
