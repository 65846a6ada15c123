/** Operations on services: API document 4.10–4.12 and the service rows of the REST surface. */
import { z } from "zod";
import { type ServiceMessage, type ServiceState, serviceSort } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import { documentFetchMs, documentParseMs } from "../limits.ts";
import type { Adapters } from "../ports/adapter.ts";
import { constraint } from "./constraint.ts";
import { type Icon, iconRoute, iconShape, toIcon } from "./icons.ts";
import type { CallContext, Operation, Route } from "./operation.ts";
import { decodeCursor, type Page, toPage, walk } from "./page.ts";
import { askService, findService, type ServiceActors } from "./service-actors.ts";
import type { ServiceContents } from "./service-contents.ts";
import { serviceIdFrom, serviceIdProblem } from "./service-id.ts";
import { settingsOperations } from "./settings-rows.ts";
import {
  cursor,
  flag,
  instant,
  isoTime,
  jsonObject,
  label,
  page,
  pageLimit,
  schemaShape,
  serviceIdField,
  text,
  urlText,
} from "./shapes.ts";

export interface ServiceOperationsOptions {
  readonly services: ServiceActors;
  readonly contents: ServiceContents;
  readonly adapters: Adapters;
}

const serviceShape = z
  .object({
    id: z.string().meta({ description: "Identifier; its name in process code", example: "petstore" }),
    name: z.string().meta({ description: "Name to show", example: "Pet store" }),
    summary: z.string().meta({ description: "One line on what it is", example: "Pets and their owners" }),
    description: z.string().meta({ description: "What it is", example: "Pets and their owners" }),
    version: z.string().meta({ description: "Version of the definition", example: "1.2.0" }),
    hash: z.string().meta({ description: "SHA-256 of the definition, hexadecimal", example: "9f86d081884c7d65" }),
    source: z
      .string()
      .meta({ description: "Where the definition came from", example: "https://example.com/pets.json" }),
    adapter: z.string().meta({ description: "Module that calls it", example: "openapi" }),
    enabled: z.boolean().meta({ description: "Whether its tools may be called", example: true }),
    stale: z.boolean().meta({ description: "Its definition cannot be read any more", example: false }),
    effectivelyEnabled: z.boolean().meta({ description: "Its tools can be called now", example: true }),
    hasIcon: z.boolean().meta({ description: "An icon can be read", example: false }),
    createdAt: instant.describe("When it was installed"),
    updatedAt: instant.describe("Last change of the record"),
    autoUpdate: z.boolean().meta({ description: "Takes part in the background update sweep", example: false }),
    autoUpdateConstraint: z
      .string()
      .nullable()
      .meta({ description: "Semver range it is updated within; null: the newest", example: null }),
  })
  .meta({ id: "Service", description: "An installed integration" });

export type ServiceRecord = z.infer<typeof serviceShape>;

const serviceDetail = serviceShape
  .extend({ configSchema: schemaShape, secretsSchema: schemaShape })
  .meta({ id: "ServiceDetail", description: "An installed integration with its schemas" });
const byService = z.object({ serviceId: serviceIdField });

const createInput = z.object({
  id: label.optional().describe("A name in process code; absent: made from the definition"),
  adapter: label.optional().describe("Module to call it with; absent: the one that reads the definition"),
  url: urlText.optional().describe("Where to read the definition"),
  definition: z
    .union([z.string().min(1), jsonObject])
    .optional()
    .describe("The definition itself, as text or JSON"),
  registryId: label.optional().describe("Registry that has the definition; goes with definitionId"),
  definitionId: label.optional().describe("Entry of the registry"),
  version: label.optional().describe("Version to install; absent: the newest within the constraint"),
  autoUpdate: z.boolean().default(false).describe("Take part in the background update sweep; needs a registry"),
  constraint: constraint.nullable().default(null),
});

/** One source, and an id that means something in process code. */
const checkedCreateInput = createInput
  .superRefine((input, issue) => {
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
  })
  .meta({ example: { id: "petstore", url: "https://example.com/pets.json" } });

const listInput = z.object({
  query: text().optional().describe("Text to find in ids, names and descriptions"),
  enabled: flag.optional().describe("Only services that are, or are not, enabled"),
  adapter: z.string().min(1).optional().describe("Only services called by this module"),
  stale: flag.optional().describe("Only services whose definition cannot, or can, be read"),
  cursor,
  limit: pageLimit,
});

/** Whether its tools can be called, as far as the service goes. */
export function isEffectivelyEnabled(state: ServiceState, adapters: Adapters): boolean {
  return state.enabled && state.stale === null && adapters.get(state.adapter) !== undefined;
}

function toServiceRecord(state: ServiceState, adapters: Adapters): ServiceRecord {
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
    hasIcon: state.icon !== null,
    createdAt: isoTime(state.createdAt),
    updatedAt: isoTime(state.updatedAt),
    autoUpdate: state.autoUpdate,
    autoUpdateConstraint: state.autoUpdateConstraint,
  };
}

export function serviceOperations(options: ServiceOperationsOptions): readonly Operation[] {
  const { services, contents, adapters } = options;
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
    output: z.object({ id: serviceIdField }),
    failures: ["not_found", "conflict", "already_exists", "upstream_failed"],
    idempotent: {},
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
      return { service: { ...toServiceRecord(state, adapters), configSchema, secretsSchema } };
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
        ({ state }) => toServiceRecord(state, adapters),
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

  const setEnabled: Operation<z.infer<typeof enabledInput>, { id: string; enabled: boolean }> = {
    name: "setServiceEnabled",
    summary: "Enable or disable a service; enabling validates its settings and makes it ready",
    rpcService,
    route: { method: "POST", path: "/services/{serviceId}/enabled", body: "fields", status: 200 },
    role: "operator",
    input: enabledInput,
    output: z.object({ id: serviceIdField, enabled: z.boolean() }),
    failures: ["conflict", "upstream_failed"],
    run: async ({ serviceId, enabled }, context) => {
      const state = await find(serviceId);
      if (enabled && adapters.get(state.adapter) === undefined) {
        const why = `adapter "${state.adapter}" is missing or disabled`;
        throw new Failure("conflict", `Cannot enable service "${serviceId}": ${why}`);
      }
      const after = await ask(serviceId, { type: "setEnabled", enabled }, context);
      return { id: after.id, enabled: after.enabled };
    },
  };

  const icon: Operation<{ serviceId: string }, Icon> = {
    name: "getServiceIcon",
    summary: "Read the icon that the registry has for a service",
    rpcService,
    route: iconRoute("/services/{serviceId}/icon"),
    role: "agent",
    input: byService,
    output: iconShape,
    run: async ({ serviceId }) => {
      const state = await find(serviceId);
      const base64 = state.icon === null ? undefined : await services.blob(serviceId, "icon");
      const read = base64 === undefined ? undefined : toIcon(Buffer.from(base64, "base64"));
      if (read === undefined) throw new Failure("not_found", `Service "${serviceId}" has no icon`);
      return read;
    },
  };

  return [
    create,
    get,
    list,
    remove,
    setEnabled,
    icon,
    ...settingsOperations({ noun: "Service", idField: "serviceId", path: "/services/{serviceId}", find, ask }),
  ];
}

const enabledInput = byService.extend({ enabled: z.boolean() });

function route(method: "GET", path: string, answer?: Route["answer"]): Route {
  return { method, path, body: "none", status: 200, ...(answer === undefined ? {} : { answer }) };
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
