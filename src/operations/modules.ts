/** Operations on modules: API document 2.5, 4.8 and 4.9, and the module rows of the REST surface. */
import { z } from "zod";
import { type ModuleMessage, type ModuleState, moduleFault, moduleSort } from "../actors/module.ts";
import { Failure } from "../errors/failure.ts";
import { moduleInstallMs } from "../limits.ts";
import { constraint } from "./constraint.ts";
import { type Icon, iconRoute, iconShape, toIcon } from "./icons.ts";
import { askModule, findModule, type ModuleActors } from "./module-actors.ts";
import type { ModuleContents } from "./module-contents.ts";
import type { ModuleUpdates } from "./module-updates.ts";
import type { CallContext, Operation, Route } from "./operation.ts";
import { decodeCursor, type Page, toPage, walk } from "./page.ts";
import { settingsOperations } from "./settings-rows.ts";
import {
  cursor,
  flag,
  instant,
  isoTime,
  label,
  moduleIdField,
  page,
  pageLimit,
  schemaShape,
  slug,
  text,
  urlText,
} from "./shapes.ts";
import { eachActor } from "./walk-actors.ts";

export interface ModuleOperationsOptions {
  readonly modules: ModuleActors;
  readonly contents: ModuleContents;
  readonly updates: ModuleUpdates;
}

const moduleType = z.enum(["adapter", "environment"]);

const version = z.string().meta({ description: "Semantic version", example: "1.2.0" });
const autoUpdate = z.boolean().meta({ description: "Takes part in the background update sweep", example: false });
const autoUpdateConstraint = z
  .string()
  .nullable()
  .meta({ description: "Semver range it is updated within; null: the newest", example: null });

const moduleShape = z
  .object({
    id: z.string().meta({ description: "Identifier", example: "openapi" }),
    name: z.string().meta({ description: "Name to show", example: "OpenAPI" }),
    type: moduleType.describe("What it is for"),
    description: z.string().meta({ description: "What it does", example: "Services described by OpenAPI documents" }),
    version,
    isBuiltin: z.boolean().meta({ description: "Bundled with the server", example: true }),
    enabled: z.boolean().meta({ description: "Whether it is used", example: true }),
    missing: z.boolean().meta({ description: "Cannot be used here", example: false }),
    hasIcon: z.boolean().meta({ description: "An icon can be read", example: false }),
    createdAt: instant.describe("When it was installed"),
    autoUpdate,
    autoUpdateConstraint,
    reason: z.string().nullable().meta({ description: "Why it is missing or was given up", example: null }),
    updatedAt: instant.describe("Last change of the record"),
  })
  .meta({ id: "Module", description: "An installed extension" });

const moduleDetail = moduleShape
  .extend({
    source: z.string().meta({ description: "Where it came from", example: "builtin" }),
    hash: z.string().meta({ description: "SHA-256 of its package, hexadecimal", example: "" }),
    previousVersion: z.string().nullable().meta({ description: "Version to roll back to", example: null }),
    configSchema: schemaShape,
    secretsSchema: schemaShape,
  })
  .meta({ id: "ModuleDetail", description: "An installed extension with its schemas" });

export type ModuleRecord = z.infer<typeof moduleShape>;
type ModuleDetail = z.infer<typeof moduleDetail>;

const byModule = z.object({ moduleId: moduleIdField });
const enabledInput = byModule.extend({ enabled: z.boolean() });
const updatedShape = z.object({ id: moduleIdField, updated: z.boolean().describe("A newer one was taken"), version });
const rolledBackShape = z.object({ id: moduleIdField, version });
const autoUpdateInput = byModule.extend({ autoUpdate, constraint: constraint.nullable().default(null) });
const autoUpdateShape = z.object({ id: moduleIdField, autoUpdate, constraint: autoUpdateConstraint });

const installInput = z
  .object({
    source: urlText.optional().describe("URL of a package"),
    hash: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, "must be a SHA-256 in hexadecimal")
      .optional()
      .describe("SHA-256 of the package, hexadecimal; goes with source"),
    registryId: slug.optional().describe("Registry that has the module; goes with moduleId"),
    moduleId: slug.optional().describe("Entry of the registry"),
    version: label.optional().describe("Version to install; absent: the newest within the constraint"),
    autoUpdate: autoUpdate.default(false),
    constraint: constraint.nullable().default(null),
  })
  .superRefine((input, issue) => {
    const refuse = (field: string, message: string): void => issue.addIssue({ code: "custom", path: [field], message });
    const { source, hash, registryId, moduleId } = input;
    if ((source === undefined) === (registryId === undefined)) {
      refuse("source", "or registryId with moduleId must be given, and only one of them");
    }
    if ((registryId === undefined) !== (moduleId === undefined)) refuse("moduleId", "and registryId go together");
    if (hash !== undefined && source === undefined) refuse("hash", "goes with source: a registry has its own");
    if (registryId === undefined && input.autoUpdate) refuse("autoUpdate", "needs a registry to update from");
  })
  .meta({ example: { registryId: "community", moduleId: "csv" } });

type InstallInput = z.infer<typeof installInput>;

const listInput = z.object({
  query: text().optional().describe("Text to find in names and descriptions"),
  type: moduleType.optional().describe("Only modules of this type"),
  isBuiltin: flag.optional().describe("Only modules that are, or are not, bundled with the server"),
  enabled: flag.optional().describe("Only modules that are, or are not, enabled"),
  missing: flag.optional().describe("Only modules that can, or cannot, be used here"),
  cursor,
  limit: pageLimit,
});

function toModuleRecord(state: ModuleState): ModuleRecord {
  const { id, name, type, description, version, isBuiltin, enabled, missing, hasIcon, autoUpdate } = state;
  return {
    id,
    name,
    type,
    description,
    version,
    isBuiltin,
    enabled,
    missing: missing !== null,
    hasIcon,
    createdAt: isoTime(state.createdAt),
    autoUpdate,
    autoUpdateConstraint: state.autoUpdateConstraint,
    reason: moduleFault(state),
    updatedAt: isoTime(state.updatedAt),
  };
}

function toDetail(state: ModuleState): ModuleDetail {
  const { source, hash, configSchema, secretsSchema, previous } = state;
  const previousVersion = previous?.version ?? null;
  return { ...toModuleRecord(state), source, hash, previousVersion, configSchema, secretsSchema };
}

export function moduleOperations({ modules, contents, updates }: ModuleOperationsOptions): readonly Operation[] {
  const rpcService = "ModuleService";
  const find = (id: string): Promise<ModuleState> => findModule(modules, id);
  const ask = (id: string, message: ModuleMessage, context: CallContext): Promise<ModuleState> =>
    askModule(modules, id, message, context);
  const act = (below: string): Route => ({
    method: "POST",
    path: `/modules/{moduleId}${below}`,
    body: "fields",
    status: 200,
  });

  const install: Operation<InstallInput, { module: ModuleDetail }> = {
    name: "installModule",
    summary: "Install a module from a URL, a file or a registry, after proving its hash; it starts disabled",
    rpcService,
    route: {
      method: "POST",
      path: "/modules",
      body: "fields",
      status: 201,
      answer: { field: "module", mediaType: "application/json" },
    },
    role: "operator",
    input: installInput,
    output: z.object({ module: moduleDetail }),
    failures: ["not_found", "conflict", "already_exists", "upstream_failed"],
    idempotent: {},
    extraDeadlineMs: () => moduleInstallMs,
    run: async (input, context) => {
      if (input.moduleId !== undefined) await requireFree(modules, input.moduleId);
      const { id, type, source, registry, content } = await contents.find(input, context);
      const { autoUpdate, constraint } = input;
      try {
        const state = await ask(
          id,
          { type: "install", id, moduleType: type, source, registry, autoUpdate, constraint, content },
          context,
        );
        return { module: toDetail(state) };
      } catch (error) {
        await contents.discard(id, content.hash);
        throw error;
      }
    },
  };

  const get: Operation<{ moduleId: string }, { module: ModuleDetail }> = {
    name: "getModule",
    summary: "Read a module",
    rpcService,
    route: {
      method: "GET",
      path: "/modules/{moduleId}",
      body: "none",
      status: 200,
      answer: { field: "module", mediaType: "application/json" },
    },
    role: "agent",
    input: byModule,
    output: z.object({ module: moduleDetail }),
    run: async ({ moduleId }) => ({ module: toDetail(await find(moduleId)) }),
  };

  const list: Operation<z.infer<typeof listInput>, Page<ModuleRecord>> = {
    name: "listModules",
    summary: "List modules, newest first",
    rpcService,
    route: {
      method: "GET",
      path: "/modules",
      query: ["query", "type", "isBuiltin", "enabled", "missing", "cursor", "limit"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: listInput,
    output: page(moduleShape),
    run: async (input) => {
      const [createdAt, id] = input.cursor === undefined ? [] : decodeCursor(input.cursor, ["number", "string"]);
      const walked = await walk(
        {
          read: (position, most) => modules.list("all", position, most),
          sortOf: ({ sort }) => sort,
          keep: ({ state }) => matches(state, input),
        },
        createdAt === undefined ? undefined : moduleSort(Number(createdAt), String(id)),
        input.limit,
      );
      return toPage(
        walked,
        ({ state }) => toModuleRecord(state),
        ({ state }) => [state.createdAt, state.id],
      );
    },
  };

  const remove: Operation<{ moduleId: string }, Record<string, never>> = {
    name: "deleteModule",
    summary: "Delete an installed module; services of an adapter stay, and cannot be called without it",
    rpcService,
    route: { method: "DELETE", path: "/modules/{moduleId}", body: "none", status: 204 },
    role: "operator",
    input: byModule,
    output: z.object({}),
    failures: ["conflict"],
    run: async ({ moduleId }, context) => {
      await ask(moduleId, { type: "delete" }, context);
      return {};
    },
  };

  // One at a time: of two environments enabled at once, each would disable the other.
  let switching: Promise<unknown> = Promise.resolve();

  async function enable(moduleId: string, context: CallContext): Promise<ModuleState> {
    const state = await ask(moduleId, { type: "setEnabled", enabled: true }, context);
    if (state.type === "environment") {
      for await (const other of eachActor(modules)) {
        if (other.type !== "environment" || other.id === moduleId || !other.enabled) continue;
        await ask(other.id, { type: "setEnabled", enabled: false }, context);
      }
    }
    return state;
  }

  const setEnabled: Operation<z.infer<typeof enabledInput>, { id: string; enabled: boolean }> = {
    name: "setModuleEnabled",
    summary: "Enable or disable a module; of environments one is active, and the former finishes what it runs",
    rpcService,
    route: act("/enabled"),
    role: "operator",
    input: enabledInput,
    output: z.object({ id: moduleIdField, enabled: z.boolean() }),
    failures: ["conflict", "upstream_failed"],
    run: async ({ moduleId, enabled }, context) => {
      const { type } = await find(moduleId);
      const work = (): Promise<ModuleState> =>
        enabled ? enable(moduleId, context) : ask(moduleId, { type: "setEnabled", enabled }, context);
      if (type === "adapter") return toEnabled(await work());
      const turn = switching.then(work, work);
      switching = turn.catch(() => {});
      return toEnabled(await turn);
    },
  };

  const update: Operation<{ moduleId: string }, z.infer<typeof updatedShape>> = {
    name: "updateModule",
    summary: "Take the newest version its registry offers within the constraint, never an older one",
    rpcService,
    route: act("/update"),
    role: "operator",
    input: byModule,
    output: updatedShape,
    failures: ["conflict", "upstream_failed"],
    extraDeadlineMs: () => moduleInstallMs,
    run: async ({ moduleId }, context) => {
      const state = await find(moduleId);
      const after = await updates.update(state, context);
      return { id: moduleId, updated: after !== undefined, version: after?.version ?? state.version };
    },
  };

  const rollBack: Operation<{ moduleId: string }, z.infer<typeof rolledBackShape>> = {
    name: "rollBackModule",
    summary: "Go back to the version before the last update",
    rpcService,
    route: act("/rollback"),
    role: "operator",
    input: byModule,
    output: rolledBackShape,
    failures: ["conflict", "upstream_failed"],
    extraDeadlineMs: () => moduleInstallMs,
    run: async ({ moduleId }, context) => {
      await find(moduleId);
      const { id, version } = await updates.rollBack(moduleId, context);
      return { id, version };
    },
  };

  const reload: Operation<Record<string, never>, { modules: number; faulty: number }> = {
    name: "reloadModules",
    summary: "Look at every package on disk again, and try again what failed",
    rpcService,
    route: { method: "POST", path: "/modules/reload", body: "fields", status: 200 },
    role: "operator",
    input: z.object({}),
    output: z.object({
      modules: z.int().meta({ description: "Modules there are", example: 6 }),
      faulty: z.int().meta({ description: "Those that cannot be used", example: 0 }),
    }),
    extraDeadlineMs: () => moduleInstallMs,
    run: (_, context) => updates.startAll(context),
  };

  const setAutoUpdate: Operation<z.infer<typeof autoUpdateInput>, z.infer<typeof autoUpdateShape>> = {
    name: "setModuleAutoUpdate",
    summary: "Set whether the module takes part in the background update sweep, and within which range",
    rpcService,
    route: act("/auto-update"),
    role: "operator",
    input: autoUpdateInput,
    output: autoUpdateShape,
    failures: ["conflict"],
    run: async ({ moduleId, autoUpdate, constraint }, context) => {
      const state = await ask(moduleId, { type: "setAutoUpdate", autoUpdate, constraint }, context);
      return { id: moduleId, autoUpdate: state.autoUpdate, constraint: state.autoUpdateConstraint };
    },
  };

  const icon: Operation<{ moduleId: string }, Icon> = {
    name: "getModuleIcon",
    summary: "Read the icon of a module",
    rpcService,
    route: iconRoute("/modules/{moduleId}/icon"),
    role: "agent",
    input: byModule,
    output: iconShape,
    run: async ({ moduleId }) => {
      const content = await contents.icon(moduleId);
      const read = content === undefined ? undefined : toIcon(content);
      if (read === undefined) {
        throw new Failure("not_found", `Module "${moduleId}" has no icon that is a PNG, WebP or SVG image`);
      }
      return read;
    },
  };

  return [
    install,
    get,
    list,
    remove,
    setEnabled,
    update,
    rollBack,
    reload,
    setAutoUpdate,
    ...settingsOperations({ noun: "Module", idField: "moduleId", path: "/modules/{moduleId}", find, ask }),
    icon,
  ];
}

/** Before anything is downloaded; the actor decides again. */
async function requireFree(modules: ModuleActors, id: string): Promise<void> {
  if ((await modules.query(id)).state !== null) throw new Failure("already_exists", `Module "${id}" exists already`);
}

function toEnabled({ id, enabled }: ModuleState): { id: string; enabled: boolean } {
  return { id, enabled };
}

function matches(state: ModuleState, input: z.infer<typeof listInput>): boolean {
  const { query, type, isBuiltin, enabled, missing } = input;
  const words = query?.trim().toLowerCase() ?? "";
  return (
    (type === undefined || state.type === type) &&
    (isBuiltin === undefined || state.isBuiltin === isBuiltin) &&
    (enabled === undefined || state.enabled === enabled) &&
    (missing === undefined || (state.missing !== null) === missing) &&
    [state.id, state.name, state.description].some((field) => field.toLowerCase().includes(words))
  );
}
