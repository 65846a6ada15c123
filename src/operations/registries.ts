/** Operations on registries: API document 4.1–4.4 and the registry rows of the REST surface. */
import { z } from "zod";
import {
  type NewAuth,
  type RegistryState,
  registrySort,
  type SealedToken,
  type SetupOutcome,
} from "../actors/registry.ts";
import { exchangeAndSeal, openCredentials, sealCredentials } from "../actors/registry-effects.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import { fieldAtFault } from "../errors/field-at-fault.ts";
import { tokenExchangeMs } from "../limits.ts";
import type { Advertisement, EntryKind } from "../ports/registry-reader.ts";
import type { CallContext, Operation } from "./operation.ts";
import { decodeCursor, type Page, toPage, walk } from "./page.ts";
import type { Registries, RegistriesOptions } from "./registry-access.ts";
import { type AcceptedSetup, acceptSetup } from "./registry-setup.ts";
import {
  type AuthOutcome,
  type AuthSetup,
  type AuthState,
  authSetupInput,
  authStateShape,
  definitionsShape,
  modulesShape,
  outcomeShape,
  type RegistryRecord,
  registryShape,
  toRegistryRecord,
} from "./registry-shapes.ts";
import { withMarker } from "./rpc-requests.ts";
import { browseLimit, cursor, label, page, pageLimit, registryIdField, slug, urlText } from "./shapes.ts";

export interface RegistryOperationsOptions extends RegistriesOptions {
  readonly access: Registries;
}

const byId = z.object({ id: registryIdField });
const addInput = z.object({
  baseUrl: urlText.meta({
    description: "Absolute http or https URL; the well-known document lies under its origin",
    example: "https://registry.example.com",
  }),
  id: label.pipe(slug).optional().meta({
    description: "In place of the id that the registry advertises",
    pattern: "^[A-Za-z0-9_-]+$",
    example: "community",
  }),
  auth: authSetupInput.optional(),
});
const addOutput = registryShape
  .extend({ auth: outcomeShape.nullable() })
  .meta({ id: "AddedRegistry", description: "The registry, and what became of credentials that were given" });
const listInput = z.object({ cursor, limit: pageLimit });
/** As it is, blanks and all: a registry's cursor is its own affair. */
const forwarded = z
  .string()
  .refine((value) => value.trim() !== "", "must not be blank")
  .meta({ minLength: 1 })
  .optional();
const browseInput = byId.extend({
  query: forwarded.describe("Free text; what matches is the registry's affair"),
  cursor: forwarded.describe("The nextCursor of the page before, passed on unchanged"),
  limit: browseLimit,
});
const definitionsInput = browseInput.extend({ kind: forwarded.describe("Kind of definition, passed on") });
const modulesInput = browseInput.extend({
  type: z.enum(["adapter", "environment"]).optional().describe("Type of module, passed on"),
});
const setAuthInput = z.intersection(byId, authSetupInput);

export function registryOperations(options: RegistryOperationsOptions): readonly Operation[] {
  const { registries, reader, vault, access } = options;
  const rpcService = "RegistryService";
  /** Base URLs being added: two at once for the same one must not both find it free. */
  const adding = new Set<string>();

  async function add(input: z.infer<typeof addInput>, context: CallContext): Promise<z.infer<typeof addOutput>> {
    const baseUrl = normalizedBaseUrl(input.baseUrl);
    if (adding.has(baseUrl)) throw taken(`a registry with base URL "${baseUrl}" is being added`);
    adding.add(baseUrl);
    try {
      await requireFree(input.id, baseUrl);
      const advertisement = await reader.advertisement(baseUrl, context.signal);
      const id = input.id ?? advertisement.id;
      if (input.id === undefined) await requireFree(id, baseUrl);
      if (!hasCapability(advertisement)) {
        throw new Failure("invalid_request", `"${baseUrl}" advertises no supported definitions or modules capability`);
      }
      const { auth, token, outcome } = await authOfNew(id, baseUrl, input.auth, advertisement, context);
      const state = await ask(id, { type: "add", id, baseUrl, auth, token }, context);
      await access.observe(id, advertisement, context);
      const tokenExpiresAt = state.token?.expiresAt;
      const told = outcome === null || tokenExpiresAt === undefined ? outcome : { ...outcome, tokenExpiresAt };
      return { ...toRegistryRecord(state), auth: told };
    } finally {
      adding.delete(baseUrl);
    }
  }

  async function ask(
    id: string,
    message: Parameters<typeof registries.ask>[1],
    context: CallContext,
  ): Promise<RegistryState> {
    return (await registries.ask(id, message, { deadline: context.deadline })) as RegistryState;
  }

  async function requireFree(id: string | undefined, baseUrl: string): Promise<void> {
    const { items } = await registries.list(`url/${baseUrl}`, undefined, 1);
    if (items.length > 0) throw taken(`a registry with base URL "${baseUrl}" exists already`);
    if (id !== undefined && (await registries.query(id)).state !== null) throw taken(`registry "${id}" exists already`);
  }

  /** A failed exchange creates the registry without credentials; a refusal creates nothing. */
  async function authOfNew(
    id: string,
    baseUrl: string,
    setup: AuthSetup | undefined,
    advertisement: Advertisement,
    context: CallContext,
  ): Promise<{ auth: NewAuth | null; token: SealedToken | null; outcome: AuthOutcome | null }> {
    if (setup === undefined) return { auth: null, token: null, outcome: null };
    const accepted = await acceptSetup(setup, advertisement.auth, baseUrl, reader, context.signal);
    const auth = sealed(id, accepted);
    if (accepted.type === "apiKey") {
      return { auth, token: null, outcome: { type: "apiKey", status: "configured", headerName: accepted.headerName } };
    }
    try {
      const token = await exchangeAndSeal(reader, vault, id, accepted.tokenEndpoint, accepted);
      return { auth, token, outcome: { type: "oauth2", status: "configured" } };
    } catch (error) {
      if (!isFailure(error) || error.kind === "refused") throw error;
      return { auth: null, token: null, outcome: { type: "oauth2", status: "error", message: error.message } };
    }
  }

  function sealed(id: string, accepted: AcceptedSetup): NewAuth {
    if (accepted.type === "apiKey") {
      const { headerName, key } = accepted;
      return { type: "apiKey", headerName, credentials: sealCredentials(vault, id, { key }) };
    }
    const { tokenEndpoint, clientId, clientSecret, scopes } = accepted;
    return {
      type: "oauth2",
      tokenEndpoint,
      credentials: sealCredentials(vault, id, { clientId, clientSecret, scopes }),
    };
  }

  const addRegistry: Operation<z.infer<typeof addInput>, z.infer<typeof addOutput>> = {
    name: "addRegistry",
    summary: "Register a remote catalog by its well-known document, with credentials if it advertises auth",
    rpcService,
    route: { method: "POST", path: "/registries", body: "fields", status: 201 },
    role: "operator",
    input: addInput,
    output: addOutput,
    failures: ["already_exists", "conflict", "upstream_failed"],
    idempotent: {},
    fromRpc: (request) => ({ ...request, ...(request.auth === undefined ? {} : { auth: setupFromRpc(request.auth) }) }),
    extraDeadlineMs: () => tokenExchangeMs,
    run: add,
  };

  const getRegistry: Operation<{ id: string }, { registry: RegistryRecord }> = {
    name: "getRegistry",
    summary: "Read a registry",
    rpcService,
    route: {
      method: "GET",
      path: "/registries/{id}",
      body: "none",
      status: 200,
      answer: { field: "registry", mediaType: "application/json" },
    },
    role: "agent",
    input: byId,
    output: z.object({ registry: registryShape }),
    run: async ({ id }) => ({ registry: toRegistryRecord(await access.find(id)) }),
  };

  const listRegistries: Operation<z.infer<typeof listInput>, Page<RegistryRecord>> = {
    name: "listRegistries",
    summary: "List registries, newest first",
    rpcService,
    route: { method: "GET", path: "/registries", query: ["cursor", "limit"], body: "none", status: 200 },
    role: "agent",
    input: listInput,
    output: page(registryShape),
    run: async ({ cursor: from, limit }) => {
      const after = from === undefined ? undefined : positionOf(decodeCursor(from, ["number", "string"]));
      const walked = await walk(
        {
          read: (position, most) => registries.list("all", position, most),
          sortOf: ({ sort }) => sort,
          keep: () => true,
        },
        after,
        limit,
      );
      return toPage(
        walked,
        ({ state }) => toRegistryRecord(state),
        ({ state }) => [state.createdAt, state.id],
      );
    },
  };

  const deleteRegistry: Operation<{ id: string }, Record<string, never>> = {
    name: "deleteRegistry",
    summary: "Delete a registry with its credentials; what was installed from it stays",
    rpcService,
    route: { method: "DELETE", path: "/registries/{id}", body: "none", status: 204 },
    role: "operator",
    input: byId,
    output: z.object({}),
    run: async ({ id }, context) => {
      await ask(id, { type: "delete" }, context);
      access.forget(id);
      return {};
    },
  };

  const refreshRegistry: Operation<{ id: string }, { registry: RegistryRecord }> = {
    name: "refreshRegistry",
    summary: "Read the registry's well-known document again and note the time",
    rpcService,
    route: {
      method: "POST",
      path: "/registries/{id}/refresh",
      body: "fields",
      status: 200,
      answer: { field: "registry", mediaType: "application/json" },
    },
    role: "operator",
    input: byId,
    output: z.object({ registry: registryShape }),
    failures: ["upstream_failed"],
    run: async ({ id }, context) => {
      access.forget(id);
      const advertisement = await access.advertisement(await access.find(id), context);
      if (!hasCapability(advertisement)) {
        throw new Failure("upstream_failed", `Registry "${id}" no longer advertises a supported capability`);
      }
      return { registry: toRegistryRecord(await ask(id, { type: "refresh" }, context)) };
    },
  };

  async function browse(
    kind: EntryKind,
    input: z.infer<typeof definitionsInput> & { type?: string | undefined },
    context: CallContext,
  ) {
    const { id, ...query } = input;
    const state = await access.find(id);
    const url = await access.capability(state, kind);
    return reader.page(access.access(state, context), kind, url, query);
  }

  const browseDefinitions: Operation<z.infer<typeof definitionsInput>, z.infer<typeof definitionsShape>> = {
    name: "browseDefinitions",
    summary: "Read one page of service definitions, as the registry serves it",
    rpcService,
    route: {
      method: "GET",
      path: "/registries/{id}/definitions",
      query: ["query", "cursor", "limit", "kind"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: definitionsInput,
    output: definitionsShape,
    failures: ["upstream_failed"],
    run: async (input, context) => {
      const { entries, nextCursor } = await browse("definitions", input, context);
      return { definitions: [...entries], nextCursor };
    },
  };

  const browseModules: Operation<z.infer<typeof modulesInput>, z.infer<typeof modulesShape>> = {
    name: "browseModules",
    summary: "Read one page of modules, as the registry serves it",
    rpcService,
    route: {
      method: "GET",
      path: "/registries/{id}/modules",
      query: ["query", "cursor", "limit", "type"],
      body: "none",
      status: 200,
    },
    role: "agent",
    input: modulesInput,
    output: modulesShape,
    failures: ["upstream_failed"],
    run: async (input, context) => {
      const { entries, nextCursor } = await browse("modules", { ...input, kind: undefined }, context);
      return { modules: [...entries], nextCursor };
    },
  };

  const setRegistryAuth: Operation<z.infer<typeof setAuthInput>, { auth: AuthOutcome }> = {
    name: "setRegistryAuth",
    summary: "Store or replace the credentials for a registry, held against what it advertises now",
    rpcService,
    route: { method: "POST", path: "/registries/{id}/auth", body: "fields", status: 200 },
    role: "operator",
    input: setAuthInput,
    output: z.object({ auth: outcomeShape }),
    failures: ["conflict", "upstream_failed"],
    fromRpc: ({ id, auth }) => ({ ...setupFromRpc(auth), id }),
    extraDeadlineMs: () => tokenExchangeMs,
    run: async ({ id, ...setup }, context) => {
      const { baseUrl } = await access.find(id);
      // Told to the actor only afterwards: what is advertised is about to be configured.
      const advertisement = await reader.advertisement(baseUrl, context.signal);
      const accepted = await acceptSetup(setup, advertisement.auth, baseUrl, reader, context.signal).catch(
        async (error) => {
          await access.observe(id, advertisement, context);
          throw error;
        },
      );
      const { deadline } = context;
      const outcome = (await registries.ask(
        id,
        { type: "setAuth", auth: sealed(id, accepted) },
        { deadline },
      )) as SetupOutcome;
      await access.observe(id, advertisement, context);
      return { auth: toOutcome(outcome) };
    },
  };

  const getRegistryAuth: Operation<{ id: string }, AuthState> = {
    name: "getRegistryAuth",
    summary: "Read the configured auth and what the registry advertises now",
    rpcService,
    route: { method: "GET", path: "/registries/{id}/auth", body: "none", status: 200 },
    role: "agent",
    input: byId,
    output: authStateShape,
    failures: ["upstream_failed"],
    run: async ({ id }, context) => {
      const state = await access.find(id);
      const advertisement = await access.advertisement(state, context);
      return toAuthState(state, advertisement, (envelope) => openCredentials(vault, id, envelope).scopes);
    },
  };

  const deleteRegistryAuth: Operation<{ id: string }, Record<string, never>> = {
    name: "deleteRegistryAuth",
    summary: "Delete the credentials for a registry",
    rpcService,
    route: { method: "DELETE", path: "/registries/{id}/auth", body: "none", status: 204 },
    role: "operator",
    input: byId,
    output: z.object({}),
    run: async ({ id }, context) => {
      await ask(id, { type: "deleteAuth" }, context);
      return {};
    },
  };

  return [
    addRegistry,
    getRegistry,
    listRegistries,
    deleteRegistry,
    refreshRegistry,
    browseDefinitions,
    browseModules,
    setRegistryAuth,
    getRegistryAuth,
    deleteRegistryAuth,
  ];
}

/** Adds a registry at the first start; a failure is for the log only. */
export async function seedRegistry(
  operations: readonly Operation[],
  baseUrl: string,
  context: CallContext,
): Promise<boolean> {
  const row = (name: string): Operation | undefined => operations.find((operation) => operation.name === name);
  const list = (await row("listRegistries")?.run({ limit: 1 }, context)) as Page<RegistryRecord>;
  if (list.items.length > 0) return false;
  await row("addRegistry")?.run({ baseUrl }, context);
  return true;
}

/** WHATWG-serialised, without query and fragment. */
function normalizedBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw fieldAtFault("baseUrl", 'Field "baseUrl" must be an absolute http or https URL');
  }
  if (url.username !== "" || url.password !== "") {
    throw fieldAtFault("baseUrl", 'Field "baseUrl" must not hold a user name or password');
  }
  url.search = "";
  url.hash = "";
  return url.href;
}

function taken(what: string): Failure {
  return new Failure("already_exists", `Cannot add the registry: ${what}`);
}

function hasCapability({ definitions, modules }: Advertisement): boolean {
  return definitions !== null || modules !== null;
}

function toOutcome(outcome: SetupOutcome): AuthOutcome {
  const { auth, token } = outcome.state;
  if (outcome.status === "error") return { type: "oauth2", status: "error", message: outcome.message };
  if (auth?.type === "apiKey") return { type: "apiKey", status: "configured", headerName: auth.headerName };
  return { type: "oauth2", status: "configured", ...(token === null ? {} : { tokenExpiresAt: token.expiresAt }) };
}

function toAuthState(
  { auth, token }: RegistryState,
  advertisement: Advertisement,
  scopesOf: (envelope: string) => readonly string[],
): AuthState {
  const advertised = advertisement.auth;
  return {
    authType: auth?.type ?? null,
    ...(auth?.type === "oauth2" ? { tokenEndpoint: auth.tokenEndpoint } : {}),
    headerName: auth?.type === "apiKey" ? auth.headerName : null,
    tokenExpiresAt: token?.expiresAt ?? null,
    availableScopes: advertised?.type === "oauth2" ? advertised.scopes.map((scope) => ({ ...scope })) : [],
    configuredScopes: auth?.type === "oauth2" ? [...scopesOf(auth.credentials)] : [],
  };
}

/** The protobuf form cannot tell an absent list from an empty one: `no_scopes` says empty. */
function setupFromRpc(setup: unknown): Record<string, unknown> {
  const { scopes, ...others } = (setup ?? {}) as Record<string, unknown>;
  const isChosen = Array.isArray(scopes) && scopes.length > 0;
  return withMarker(isChosen ? { ...others, scopes } : others, "noScopes", "scopes", []);
}

function positionOf([createdAt, id]: readonly (string | number)[]): string {
  return registrySort(Number(createdAt), String(id));
}
