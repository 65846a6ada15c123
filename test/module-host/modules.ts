/** Modules as tests write them: a folder with a package.json and one file of code. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { describeProblems, validate } from "../../src/json/schema.ts";
import { type ModuleHostOptions, openModuleHost } from "../../src/module-host/module-host.ts";
import type { Log, LogFields, LogLevel } from "../../src/ports/log.ts";
import type { HostedModule, ModuleHost } from "../../src/ports/module-host.ts";
import type { ModulePackage, ModuleType } from "../../src/ports/packages.ts";
import type { ParameterChecks } from "../../src/ports/parameter-checks.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { loopbackFetcher } from "../adapters/loopback-fetcher.ts";

export interface Written {
  readonly id?: string;
  readonly type?: ModuleType;
  readonly main?: string;
}

export function writeModule(
  code: string,
  { id = "sample", type = "adapter", main = "main.js" }: Written = {},
): ModulePackage {
  const folder = mkdtempSync(join(tmpdir(), "troupe-module-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: id, version: "1.0.0", type: "module" }));
  writeFileSync(join(folder, main), code);
  return {
    manifest: {
      id,
      name: id,
      version: "1.0.0",
      type,
      description: "",
      engines: "*",
      main,
      hasIcon: false,
    },
    hash: randomBytes(32).toString("hex"),
    folder,
  };
}

/** An adapter whose tools are what `tools` names: each a function body of (hydrated, parameters, signal, context). */
export function adapterCode(tools: Readonly<Record<string, string>>, before = ""): string {
  const functions = Object.entries(tools).map(
    ([id, body]) => `${JSON.stringify(id)}: async (hydrated, parameters, signal, context) => { ${body} }`,
  );
  return `
${before}
const tools = { ${functions.join(",\n")} };
let hydrations = 0;
export default {
  type: "adapter",
  setup: (context) => ({
    generateDefinition: ({ document, url }) => ({
      name: "Sample",
      description: document,
      tools: Object.keys(tools).map((id) => ({ id, name: id })),
      plan: { document, url: url ?? null },
    }),
    hydrate: (service) => ({ ...service, hydrations: ++hydrations, module: context.config }),
    invoke: (hydrated, { toolId, parameters, signal }) => tools[toolId](hydrated, parameters, signal, context),
  }),
};`;
}

/** An environment whose programs are functions of `run` by name: a program's code is the name. */
export function environmentCode(programs: Readonly<Record<string, string>>): string {
  const functions = Object.entries(programs).map(
    ([name, body]) => `${JSON.stringify(name)}: async (run, killed) => { ${body} }`,
  );
  return `
const programs = { ${functions.join(",\n")} };
const kills = new Map();
export default {
  type: "environment",
  setup: () => ({
    execute: async (run) => {
      const { promise, resolve } = Promise.withResolvers();
      kills.set(run.runId, resolve);
      return (await programs[run.code](run, promise)) ?? { status: "success" };
    },
    kill: (runId) => kills.get(runId)?.(),
    docs: () => "# Programs",
    toolDocs: (tool) => \`call \${tool.serviceId}.\${tool.id}\`,
  }),
};`;
}

export interface LogLine extends LogFields {
  readonly level: LogLevel;
  readonly event: string;
  readonly message: string;
}

export class MemoryLog implements Log {
  readonly lines: LogLine[] = [];
  debug = this.#at("debug");
  info = this.#at("info");
  warn = this.#at("warn");
  error = this.#at("error");

  of(event: string): readonly LogLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  #at(level: LogLevel) {
    return (event: string, message: string, fields: LogFields = {}) => {
      this.lines.push({ level, event, message, ...fields });
    };
  }
}

/** In this very process, without bounds: what is checked here is that it is asked. */
export const plainChecks: ParameterChecks = {
  async check({ schema, parameters, subject }) {
    const problems = validate(schema, parameters);
    if (problems.length > 0) throw new Failure("invalid_request", `${subject}: ${describeProblems(problems)}`);
  },
  async close() {},
};

export type OpenHost = ModuleHost & { readonly log: MemoryLog };

/** Closed when its test ends. */
export async function openHost(options: Partial<ModuleHostOptions> = {}): Promise<OpenHost> {
  const host = await openSharedHost(options);
  onTestFinished(() => host.close());
  return host;
}

export async function openSharedHost(options: Partial<ModuleHostOptions> = {}): Promise<OpenHost> {
  const log = new MemoryLog();
  const host = await openModuleHost({
    fetcher: loopbackFetcher,
    parameterChecks: plainChecks,
    clock: systemClock,
    unsandboxed: false,
    toolTimeoutMs: 10_000,
    log,
    ...options,
  });
  return Object.assign(host, { log });
}

export function hosted(modulePackage: ModulePackage, given: Partial<HostedModule> = {}): HostedModule {
  return { modulePackage, config: {}, secrets: {}, onFailed: () => undefined, ...given };
}

/** An opened adapter with one hydrated service. */
export async function openService(host: ModuleHost, modulePackage: ModulePackage, given: Partial<HostedModule> = {}) {
  const adapter = await host.openAdapter(hosted(modulePackage, given));
  onTestFinished(() => adapter.close());
  const definition = await adapter.define({ text: "" });
  const reference = plan(definition.plan);
  const service = await adapter.hydrate({ serviceId: "s", plan: reference, config: {}, secrets: {} });
  return { adapter, service };
}

/** A plan as it is stored. */
export function plan(text: string) {
  return { hash: text, load: async () => text };
}

/** A call as the server makes it. */
export function invocation(toolId: string, parameters: unknown = {}, timeoutMs = 10_000) {
  return { toolId, parameters, timeoutMs, signal: new AbortController().signal };
}
