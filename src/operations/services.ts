/** Operations on services: API document 4.10–4.12 and the service rows of the REST surface. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { configOf, configTag, type ServiceMessage, type ServiceState, serviceSort } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import { documentFetchMs, documentParseMs } from "../limits.ts";
import type { Hydrations } from "../ports/hydrations.ts";
import { constraint } from "./constraint.ts";
import type { CallContext, Operation, Route } from "./operation.ts";
import { decodeCursor, type Page, toPage, walk } from "./page.ts";
import { askService, findService, type ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";
import { serviceIdFrom, serviceIdProblem } from "./service-id.ts";
import { cursor, flag, instant, isoTime, jsonObject, label, page, pageLimit, text, urlText } from "./shapes.ts";

export interface ServiceOperationsOptions {
  readonly services: ServiceActors;
  readonly contents: ServiceContents;
  readonly hydrations: Hydrations;
}

const serviceShape = z.object({
  id: z.string(),
  name: z.string(),
  summary: z.string(),
  description: z.string(),
  version: z.string(),
  hash: z.string(),
  source: z.string(),
  adapter: z.string(),
  enabled: z.boolean(),
  stale: z.boolean(),
  effectivelyEnabled: z.boolean(),
  hasIcon: z.boolean(),
  createdAt: instant,
  updatedAt: instant,
  autoUpdate: z.boolean(),
  autoUpdateConstraint: z.string().nullable(),
});

export type ServiceRecord = z.infer<typeof serviceShape>;

const schemaShape = z.union([jsonObject, z.boolean()]);
const serviceDetail = serviceShape.extend({ configSchema: schemaShape, secretsSchema: schemaShape });
const configShape = z.object({ config: jsonObject, outdated: z.array(z.string()) });
const secretsShape = z.object({ present: z.array(z.string()), outdated: z.array(z.string()) });

const byService = z.object({ serviceId: z.string().min(1) });
const patchInput = byService.extend({ patch: z.array(z.unknown()) });
const patchBody = { field: "patch", mediaTypes: ["application/json", "application/json-patch+json"] } as const;

const createInput = z.object({
  id: label.optional(),
  adapter: label.optional(),
  url: urlText.optional(),
  definition: z.union([z.string().min(1), jsonObject]).optional(),
  registryId: label.optional(),
  definitionId: label.optional(),
  version: label.optional(),
  autoUpdate: z.boolean().default(false),
  constraint: constraint.nullable().default(null),
});

/** One source, and an id that means something in process code. */
const checkedCreateInput = createInput.superRefine((input, issue) => {
  const { id, url, definition, registryId, definitionId } = input;
  const sources = [url, definition, registryId ?? definitionId].filter((source) => source !== undefined);
  const problems = [
    sources.length === 1
      ? undefined
      : ["url", "or definition, or registryId with definitionId, must be given, and only one of them"],
    (registryId === undefined) === (definitionId === undefined)
      ? undefined
      : ["definitionId", "and registryId go together"],
    registryId === undefined && input.autoUpdate ? ["autoUpdate", "needs a registry to update from"] : undefined,
    id === undefined ? undefined : ["id", serviceIdProblem(id)],
  ];
  for (const [field, message] of problems.filter((problem) => problem !== undefined)) {
    if (field !== undefined && message !== undefined) issue.addIssue({ code: "custom", path: [field], message });
  }
});

const listInput = z.object({
  query: text().optional(),
  enabled: flag.optional(),
  adapter: z.string().min(1).optional(),
  stale: flag.optional(),
  cursor,
  limit: pageLimit,
});

/** Whether its tools can be called, as far as the service goes. */
export function isEffectivelyEnabled(state: ServiceState, adapters: ReadonlySet<string>): boolean {
  return state.enabled && state.stale === null && adapters.has(state.adapter);
}

export function toServiceRecord(state: ServiceState, adapters: ReadonlySet<string>): ServiceRecord {
  const { id, name, summary, description, version, hash, source, adapter, enabled } = state;
  const stale = state.stale !== null;
  return {
    id,
    name,
    summary,
    description,
    version,
    hash,
    source,
    adapter,
    enabled,
    stale,
    effectivelyEnabled: isEffectivelyEnabled(state, adapters),
    hasIcon: false,
    createdAt: isoTime(state.createdAt),
    updatedAt: isoTime(state.updatedAt),
    autoUpdate: state.autoUpdate,
    autoUpdateConstraint: state.autoUpdateConstraint,
  };
}

export function serviceOperations(options: ServiceOperationsOptions): readonly Operation[] {
  const { services, contents, hydrations } = options;
  const rpcService = "ServiceService";

  const find = (id: string): Promise<ServiceState> => findService(services, id);
  const ask = (id: string, message: ServiceMessage, context: CallContext): Promise<ServiceState> =>
    askService(services, id, message, context);

  const create: Operation<z.infer<typeof createInput>, { id: string }> = {
    name: "createService",
    summary: "Install a service from a definition document, by URL or inline; it starts disabled",
    rpcService,
    route: { method: "POST", path: "/services", body: "fields", status: 201 },
    role: "operator",
    input: checkedCreateInput,
    output: z.object({ id: z.string() }),
    extraDeadlineMs: () => 3 * documentFetchMs + documentParseMs,
    run: async (input, context) => {
      if (input.id !== undefined && (await services.query(input.id)).state !== null) {
        throw new Failure("already_exists", `Service "${input.id}" exists already`);
      }
      const found = await contents.find(input, context);
      const id = input.id ?? serviceIdFrom(found.suggestedId);
      const { adapter, source, registry, content } = found;
      const { autoUpdate, constraint } = input;
      await ask(id, { type: "install", id, adapter, source, registry, autoUpdate, constraint, content }, context);
      return { id };
    },
  };

  const get: Operation<{ serviceId: string }, { service: z.infer<typeof serviceDetail> }> = {
    name: "getService",
    summary: "Read a service",
    rpcService,
    route: route("GET", "/services/{serviceId}", { field: "service", mediaType: "application/json" }),
    role: "agent",
    input: byService,
    output: z.object({ service: serviceDetail }),
    run: async ({ serviceId }) => {
      const state = await find(serviceId);
      const { configSchema, secretsSchema } = state;
      return { service: { ...toServiceRecord(state, hydrations.adapters), configSchema, secretsSchema } };
    },
  };

  const list: Operation<z.infer<typeof listInput>, Page<ServiceRecord>> = {
    name: "listServices",
    summary: "List services, newest first",
    rpcService,
    route: {
      method: "GET",
      path: "/services",
      query: ["query", "enabled", "adapter", "stale", "cursor", "limit"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: listInput,
    output: page(serviceShape),
    run: async (input) => {
      const after =
        input.cursor === undefined ? undefined : positionOf(decodeCursor(input.cursor, ["number", "string"]));
      const walked = await walk(
        {
          read: (position, most) => services.list("all", position, most),
          sortOf: ({ sort }) => sort,
          keep: ({ state }) => matches(state, input),
        },
        after,
        input.limit,
      );
      return toPage(
        walked,
        ({ state }) => toServiceRecord(state, hydrations.adapters),
        ({ state }) => [state.createdAt, state.id],
      );
    },
  };

  const remove: Operation<{ serviceId: string }, Record<string, never>> = {
    name: "deleteService",
    summary: "Delete a service with its configuration and secrets",
    rpcService,
    route: { method: "DELETE", path: "/services/{serviceId}", body: "none", status: 204 },
    role: "operator",
    input: byService,
    output: z.object({}),
    run: async ({ serviceId }, context) => {
      await ask(serviceId, { type: "delete" }, context);
      return {};
    },
  };

  const getConfig: Operation<{ serviceId: string }, z.infer<typeof configShape> & { etag: string }> = {
    name: "getServiceConfig",
    summary: "Read the stored configuration",
    rpcService,
    route: { ...route("GET", "/services/{serviceId}/config"), etag: "etag" },
    role: "agent",
    input: byService,
    output: configShape.extend({ etag: z.string() }),
    run: async ({ serviceId }) => {
      const state = await find(serviceId);
      return { ...configOf(state), etag: configTag(state) };
    },
  };

  const getConfigSchema: Operation<{ serviceId: string }, { configSchema: z.infer<typeof schemaShape> }> = {
    name: "getServiceConfigSchema",
    summary: "Read the JSON Schema of the configuration",
    rpcService,
    route: route("GET", "/services/{serviceId}/config/schema"),
    role: "agent",
    input: byService,
    output: z.object({ configSchema: schemaShape }),
    run: async ({ serviceId }) => ({ configSchema: (await find(serviceId)).configSchema }),
  };

  const patchConfig: Operation<z.infer<typeof patchConfigInput>, z.infer<typeof configShape>> = {
    name: "patchServiceConfig",
    summary: "Change the stored configuration by JSON Patch",
    rpcService,
    route: { method: "PATCH", path: "/services/{serviceId}/config", body: patchBody, status: 200, ifMatch: "ifMatch" },
    role: "operator",
    input: patchConfigInput,
    output: configShape,
    run: async ({ serviceId, patch, ifMatch }, context) =>
      configOf(await ask(serviceId, { type: "patchConfig", patch, ifMatch }, context)),
  };

  const getSecrets: Operation<{ serviceId: string }, z.infer<typeof secretsShape>> = {
    name: "getServiceSecrets",
    summary: "Tell which secrets have a value, never the values",
    rpcService,
    route: route("GET", "/services/{serviceId}/secrets"),
    role: "agent",
    input: byService,
    output: secretsShape,
    run: async ({ serviceId }) => secretsOf(await find(serviceId)),
  };

  const getSecretsSchema: Operation<{ serviceId: string }, { secretsSchema: z.infer<typeof schemaShape> }> = {
    name: "getServiceSecretsSchema",
    summary: "Read the JSON Schema of the secrets",
    rpcService,
    route: route("GET", "/services/{serviceId}/secrets/schema"),
    role: "agent",
    input: byService,
    output: z.object({ secretsSchema: schemaShape }),
    run: async ({ serviceId }) => ({ secretsSchema: (await find(serviceId)).secretsSchema }),
  };

  const patchSecrets: Operation<z.infer<typeof patchInput>, z.infer<typeof secretsShape>> = {
    name: "patchServiceSecrets",
    summary: "Set or remove secrets by JSON Patch (add, replace, remove); values are write-only",
    rpcService,
    route: { method: "PATCH", path: "/services/{serviceId}/secrets", body: patchBody, status: 200 },
    role: "operator",
    input: patchInput,
    output: secretsShape,
    run: async ({ serviceId, patch }, context) =>
      secretsOf(await ask(serviceId, { type: "patchSecrets", patch, ticket: randomUUID() }, context)),
  };

  const setEnabled: Operation<z.infer<typeof enabledInput>, { id: string; enabled: boolean }> = {
    name: "setServiceEnabled",
    summary: "Enable or disable a service; enabling validates its settings and makes it ready",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/enabled", body: "fields", status: 200 },
    role: "operator",
    input: enabledInput,
    output: z.object({ id: z.string(), enabled: z.boolean() }),
    run: async ({ serviceId, enabled }, context) => {
      const state = await find(serviceId);
      if (enabled && !hydrations.adapters.has(state.adapter)) {
        throw new Failure("conflict", `Cannot enable service "${serviceId}": adapter "${state.adapter}" is missing`);
      }
      const after = await ask(serviceId, { type: "setEnabled", enabled }, context);
      return { id: after.id, enabled: after.enabled };
    },
  };

  return [
    create,
    get,
    list,
    remove,
    getConfig,
    getConfigSchema,
    patchConfig,
    getSecrets,
    getSecretsSchema,
    patchSecrets,
    setEnabled,
  ];
}

const patchConfigInput = patchInput.extend({ ifMatch: z.string().optional() });
const enabledInput = byService.extend({ enabled: z.boolean() });

function route(method: "GET", path: string, answer?: Route["answer"]): Route {
  return { method, path, body: "none", status: 200, ...(answer === undefined ? {} : { answer }) };
}

function secretsOf(state: ServiceState): { present: string[]; outdated: string[] } {
  return { present: state.secretsPresent, outdated: state.secretsOutdated };
}

function matches(state: ServiceState, { query, enabled, adapter, stale }: z.infer<typeof listInput>): boolean {
  const words = query?.trim().toLowerCase() ?? "";
  return (
    (enabled === undefined || state.enabled === enabled) &&
    (stale === undefined || (state.stale !== null) === stale) &&
    (adapter === undefined || state.adapter === adapter) &&
    [state.id, state.name, state.summary, state.description].some((field) => field.toLowerCase().includes(words))
  );
}

function positionOf([createdAt, id]: readonly (string | number)[]): string {
  return serviceSort(Number(createdAt), String(id));
}
