/**
 * A service: an installed integration, its configuration and secrets, and which of its tools may be called.
 *
 * It owns the record, the stored configuration, the sealed secrets and the flags. The definition document, the tool list and the
 * adapter's plan lie beside the record as blobs. Being hydrated (ready on its adapter) is memory of the adapters, made again
 * when needed: `generation` says of what.
 *
 * 1. `enabled` is only ever set after a hydration of the current generation succeeded.
 * 2. Secrets are opened and sealed by effects; the state never holds a plain value, and a seal made from an older state is made again.
 * 3. A patch is stored whole or not at all; on an enabled service it stays stored even when the hydration that follows fails.
 * 4. `config` is always an object.
 * 5. Sealing the same secrets with another key changes the envelope only: no generation, no time, no hydration.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import type { Definition } from "../ports/adapter.ts";
import { newestFirst } from "../runtime/keys.ts";
import type { IndexEntry, Kind, Step } from "../runtime/kind.ts";
import {
  answered,
  type ConfigPatch,
  configuredShape,
  outdatedSecrets,
  requireValidConfig,
  resealedStep,
  type SecretsRequest,
  type SecretsSealed,
  secretsSealedStep,
  unconfigured,
  withConfigPatch,
} from "./configured.ts";
import { type ResealedMessage, resealTicket } from "./reseal.ts";
import { performServiceEffect, type ServicePorts } from "./service-effects.ts";

const stateSchema = z.object({
  id: z.string().min(1),
  adapter: z.string().min(1),
  /** Where the document came from: a URL, or "" for an inline definition. */
  source: z.string(),
  /** The registry entry it was installed from, or null. */
  registry: z.object({ registryId: z.string(), definitionId: z.string() }).nullable(),
  name: z.string(),
  summary: z.string(),
  description: z.string(),
  version: z.string(),
  /** SHA-256 of the document, and of the adapter's plan for it, hex. */
  hash: z.string(),
  planHash: z.string(),
  enabled: z.boolean(),
  /** Why the definition no longer works, or null. */
  stale: z.string().nullable(),
  createdAt: z.int(),
  updatedAt: z.int(),
  autoUpdate: z.boolean(),
  autoUpdateConstraint: z.string().nullable(),
  ...configuredShape,
  /** SHA-256 of the icon that the registry has for it, hex; null: none. */
  icon: z.string().nullable(),
  disabledTools: z.array(z.string()),
});

export type ServiceState = z.infer<typeof stateSchema>;

/** Large values beside the record: the document as given, the tool summaries (JSON array), the adapter's plan, the icon in base64. */
export type ServiceBlob = "document" | "tools" | "plan" | "icon";

/** Why a hydration is made, and which waiting callers its end settles. */
export interface HydrationPurpose {
  readonly kind: "enable" | "reconfigure" | "replace";
  readonly tickets: readonly string[];
}

export type ServiceMessage =
  | {
      readonly type: "install";
      readonly id: string;
      readonly adapter: string;
      readonly source: string;
      readonly registry: ServiceState["registry"];
      readonly autoUpdate: boolean;
      readonly constraint: string | null;
      readonly content: ServiceContent;
    }
  /** Another definition for an installed service; an enabled one changes over only if it works. */
  | { readonly type: "replace"; readonly content: ServiceContent }
  | { readonly type: "markStale"; readonly reason: string }
  | { readonly type: "setAutoUpdate"; readonly autoUpdate: boolean; readonly constraint: string | null }
  | ConfigPatch
  | ({ readonly type: "patchSecrets" } & SecretsRequest)
  | { readonly type: "setEnabled"; readonly enabled: boolean }
  | { readonly type: "setToolEnabled"; readonly toolId: string; readonly enabled: boolean }
  | { readonly type: "delete" }
  | SecretsSealed
  | { readonly type: "reseal" }
  | ResealedMessage
  | { readonly type: "replacementReady"; readonly basis: number; readonly content: ServiceContent }
  | { readonly type: "hydrated"; readonly generation: number; readonly purpose: HydrationPurpose }
  | { readonly type: "hydrationFailed"; readonly purpose: HydrationPurpose; readonly failure: Failure };

/** A definition document and what the adapter made of it. */
export interface ServiceContent {
  readonly document: string;
  readonly definition: Definition;
  /** Of the registry where it has one, else the document's own. */
  readonly version: string;
  readonly hash: string;
  readonly planHash: string;
  /** Ids of the tools that the content before had: those that are new to it start disabled. Absent at installation. */
  readonly formerTools?: readonly string[] | undefined;
  /** `base64` of its bytes; null: the registry has none any more; absent: whatever is stored stays. */
  readonly icon?: { readonly hash: string; readonly base64: string } | null | undefined;
}

export type ServiceEffect =
  | { readonly type: "sealSecrets"; readonly state: ServiceState; readonly requests: readonly SecretsRequest[] }
  | { readonly type: "reseal"; readonly state: ServiceState }
  | { readonly type: "hydrate"; readonly state: ServiceState; readonly purpose: HydrationPurpose }
  /** Makes the service ready with a content that is not stored yet. */
  | {
      readonly type: "tryContent";
      readonly candidate: ServiceState;
      readonly basis: number;
      readonly content: ServiceContent;
    }
  | { readonly type: "drop" };

type ServiceStep = Step<ServiceState, ServiceEffect>;

export const serviceKind: Kind<ServiceState, ServiceMessage, ServiceEffect, ServicePorts> = {
  name: "service",
  version: 2,
  schema: stateSchema,
  // Version 1 knew no icons.
  migrate: (old) => ({ ...(old as object), icon: null }),

  decide(state, message, now) {
    if (message.type === "install") return install(state, message, now);
    if (state === null) return absent(message);
    switch (message.type) {
      case "patchConfig":
        return patchConfig(state, message, now);
      case "patchSecrets":
        return { state, defer: message.ticket, effects: [{ type: "sealSecrets", state, requests: [message] }] };
      case "secretsSealed":
        return secretsSealed(state, message, now);
      case "reseal":
        return { state, defer: resealTicket, effects: [{ type: "reseal", state }] };
      case "resealed":
        return resealedStep(state, message);
      case "replace":
        return replace(state, message.content, now);
      case "replacementReady":
        return replacementReady(state, message.basis, message.content, now);
      case "markStale":
        return markStale(state, message.reason, now);
      case "setAutoUpdate":
        return setAutoUpdate(state, message, now);
      case "setEnabled":
        return message.enabled ? enable(state) : disable(state, now);
      case "setToolEnabled":
        return setToolEnabled(state, message.toolId, message.enabled, now);
      case "delete":
        return { state: null, effects: [{ type: "drop" }] };
      case "hydrated":
        return hydrated(state, message.generation, message.purpose, now);
      case "hydrationFailed":
        return { state, settle: message.purpose.tickets.map((ticket) => ({ ticket, failure: message.failure })) };
    }
  },

  index,
  owed: () => [],
  perform: performServiceEffect,
};

function install(
  state: ServiceState | null,
  message: Extract<ServiceMessage, { type: "install" }>,
  now: number,
): ServiceStep {
  if (state !== null) throw new Failure("already_exists", `Service "${message.id}" exists already`);
  const { id, adapter, source, registry, autoUpdate, constraint, content } = message;
  const installed: ServiceState = {
    id,
    adapter,
    source,
    registry,
    ...described(content),
    enabled: false,
    stale: null,
    createdAt: now,
    updatedAt: now,
    autoUpdate,
    autoUpdateConstraint: constraint,
    ...unconfigured,
    icon: content.icon?.hash ?? null,
    disabledTools: [],
  };
  return { state: installed, reply: installed, blobs: blobsOf(content) };
}

/** What the record says of its content. */
function described({ definition, version, hash, planHash }: ServiceContent) {
  const { name, summary, description, configSchema, secretsSchema } = definition;
  return {
    name,
    summary,
    description,
    version,
    hash,
    planHash,
    configSchema: configSchema as ServiceState["configSchema"],
    secretsSchema: secretsSchema as ServiceState["secretsSchema"],
  };
}

function blobsOf({ document, definition, icon }: ServiceContent): Partial<Record<ServiceBlob, string | null>> {
  const blobs = { document, tools: toolsText(definition), plan: definition.plan };
  return icon === undefined ? blobs : { ...blobs, icon: icon?.base64 ?? null };
}

/** As stored: in ascending order of id. */
export function toolsText({ tools }: Definition): string {
  return JSON.stringify([...tools].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)));
}

/**
 * Configuration and secrets stay, outdated or not. Flags of tools stay by their id; a tool that nobody has seen yet is not called before
 * somebody allows it, except where there were no tools at all.
 */
function withContent(state: ServiceState, content: ServiceContent, now: number): ServiceState {
  const ids = new Set(content.definition.tools.map(({ id }) => id));
  const former = new Set(content.formerTools);
  const unseen = former.size === 0 ? [] : [...ids].filter((id) => !former.has(id));
  return {
    ...state,
    ...described(content),
    secretsOutdated: outdatedSecrets(
      content.definition.secretsSchema as ServiceState["secretsSchema"],
      state.secretsPresent,
    ),
    icon: content.icon === undefined ? state.icon : (content.icon?.hash ?? null),
    stale: null,
    disabledTools: [...new Set([...state.disabledTools.filter((id) => ids.has(id)), ...unseen])],
    updatedAt: now,
    generation: state.generation + 1,
  };
}

function replace(state: ServiceState, content: ServiceContent, now: number): ServiceStep {
  const candidate = withContent(state, content, now);
  if (!state.enabled) return { state: candidate, reply: candidate, blobs: blobsOf(content) };
  requireValidConfig(candidate);
  const effect: ServiceEffect = { type: "tryContent", candidate, basis: state.generation, content };
  return { state, defer: "replace", effects: [effect] };
}

function replacementReady(state: ServiceState, basis: number, content: ServiceContent, now: number): ServiceStep {
  const candidate = withContent(state, content, now);
  // Configured or replaced in between: try again with what is so now.
  if (basis !== state.generation) {
    return { state, effects: [{ type: "tryContent", candidate, basis: state.generation, content }] };
  }
  return { state: candidate, blobs: blobsOf(content), settle: [{ ticket: "replace", reply: candidate }] };
}

/** Its stored document no longer makes a definition: it is not called any more until an update mends it. */
function markStale(state: ServiceState, reason: string, now: number): ServiceStep {
  const stale: ServiceState = { ...state, stale: reason, updatedAt: now };
  return { state: stale, reply: stale, effects: [{ type: "drop" }] };
}

function setAutoUpdate(
  state: ServiceState,
  { autoUpdate, constraint }: Extract<ServiceMessage, { type: "setAutoUpdate" }>,
  now: number,
): ServiceStep {
  if (state.registry === null) {
    throw new Failure(
      "conflict",
      `Service "${state.id}" was not installed from a registry: it has nothing to update from`,
    );
  }
  const next: ServiceState = { ...state, autoUpdate, autoUpdateConstraint: constraint, updatedAt: now };
  return { state: next, reply: next };
}

/** Reports about a service deleted meanwhile have nobody to answer. */
function absent(message: ServiceMessage): ServiceStep {
  switch (message.type) {
    case "secretsSealed":
    case "resealed":
    case "hydrationFailed":
      return { state: null };
    case "replacementReady":
    case "hydrated":
      return { state: null, effects: [{ type: "drop" }] };
    default:
      throw new Failure("not_found", "There is no such service");
  }
}

function patchConfig(state: ServiceState, message: ConfigPatch, now: number): ServiceStep {
  const next = withConfigPatch(state, message, `service "${state.id}"`, now);
  if (!next.enabled) return { state: next, reply: next };
  const ticket = "reconfigure";
  return {
    state: next,
    defer: ticket,
    effects: [{ type: "hydrate", state: next, purpose: { kind: ticket, tickets: [ticket] } }],
  };
}

function secretsSealed(state: ServiceState, message: SecretsSealed, now: number): ServiceStep {
  return secretsSealedStep(state, message, now, (next, tickets): ServiceEffect | undefined =>
    next.enabled ? { type: "hydrate", state: next, purpose: { kind: "reconfigure", tickets } } : undefined,
  );
}

function enable(state: ServiceState): ServiceStep {
  if (state.stale !== null) {
    throw new Failure("conflict", `Cannot enable service "${state.id}": its definition is stale (${state.stale})`);
  }
  if (state.enabled) return { state, reply: state };
  requireValidConfig(state);
  const ticket = "enable";
  return { state, defer: ticket, effects: [{ type: "hydrate", state, purpose: { kind: ticket, tickets: [ticket] } }] };
}

function disable(state: ServiceState, now: number): ServiceStep {
  if (!state.enabled) return { state, reply: state };
  const disabled: ServiceState = { ...state, enabled: false, updatedAt: now };
  return { state: disabled, reply: disabled, effects: [{ type: "drop" }] };
}

function hydrated(state: ServiceState, generation: number, purpose: HydrationPurpose, now: number): ServiceStep {
  if (generation !== state.generation) return { state, effects: [{ type: "hydrate", state, purpose }] };
  const { kind, tickets } = purpose;
  const next: ServiceState =
    kind === "reconfigure" || state.enabled ? state : { ...state, enabled: true, updatedAt: now };
  return { state: next, settle: answered(tickets, next) };
}

function setToolEnabled(state: ServiceState, toolId: string, enabled: boolean, now: number): ServiceStep {
  if (isToolEnabled(state, toolId) === enabled) return { state, reply: state };
  const others = state.disabledTools.filter((id) => id !== toolId);
  const next: ServiceState = { ...state, disabledTools: enabled ? others : [...others, toolId], updatedAt: now };
  return { state: next, reply: next };
}

export function isToolEnabled(state: ServiceState, toolId: string): boolean {
  return !state.disabledTools.includes(toolId);
}

/** The gates of a call that the service itself can close, in order. */
export function admitCall(state: ServiceState, toolId: string): void {
  const what = `Cannot call tool "${toolId}" of service "${state.id}"`;
  if (state.stale !== null) throw new Failure("conflict", `${what}: its definition is stale (${state.stale})`);
  if (!state.enabled) throw new Failure("conflict", `${what}: the service is disabled`);
  if (!isToolEnabled(state, toolId)) throw new Failure("conflict", `${what}: the tool is disabled`);
}

/** `all` is newest first, `id` ascending. */
function index(state: ServiceState): readonly IndexEntry[] {
  return [
    { name: "all", sort: serviceSort(state.createdAt, state.id) },
    { name: "id", sort: state.id },
  ];
}

export function serviceSort(createdAt: number, id: string): string {
  return newestFirst(createdAt, id);
}
