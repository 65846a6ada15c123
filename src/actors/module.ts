/**
 * A module: an adapter or an environment, built in or installed from a package, with its configuration and secrets.
 *
 * It owns the record, the settings, the flags, and which package serves and which one served before. The packages lie on disk; being in
 * service is memory of the module runtime, made again at every start.
 *
 * 1. `enabled` is only ever set after the module was put in service with its current settings.
 * 2. Another package takes over only when it could be put in service; until then, and if it cannot, the former serves.
 * 3. The package that served before is kept until the next one takes over, so that there is always something to go back to.
 * 4. A module that keeps crashing is `failed`, with its reason: enabled, but out of service until somebody acts. If it took over only
 *    lately, the package before it takes over again by itself, and the sweep leaves the broken version alone.
 * 5. A built-in module has no package, no source and cannot be deleted.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { moduleProbationMs } from "../limits.ts";
import type { JsonSchema } from "../ports/adapter.ts";
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
import { type ModulePorts, performModuleEffect } from "./module-effects.ts";
import { type ResealedMessage, resealTicket } from "./reseal.ts";

/** What one package, or this version of the server, says of the module. */
const content = {
  name: z.string(),
  description: z.string(),
  version: z.string(),
  /** SHA-256 of the package, hex; "" for a built-in. */
  hash: z.string(),
  hasIcon: z.boolean(),
  configSchema: configuredShape.configSchema,
  secretsSchema: configuredShape.secretsSchema,
};

const contentSchema = z.object(content);

const stateSchema = z.object({
  id: z.string().min(1),
  type: z.enum(["adapter", "environment"]),
  isBuiltin: z.boolean(),
  ...configuredShape,
  ...content,
  /** Where the package came from: a URL; "" for a built-in. */
  source: z.string(),
  /** The registry entry it was installed from, with the address of its descriptor; or null. */
  registry: z.object({ registryId: z.string(), entryId: z.string(), descriptor: z.string() }).nullable(),
  enabled: z.boolean(),
  /** Why it cannot be used: its package is gone or broken, or this machine lacks something. Null: it can. */
  missing: z.string().nullable(),
  /** Why it was given up. */
  failed: z.string().nullable(),
  createdAt: z.int(),
  updatedAt: z.int(),
  /** When this package took over. */
  versionSince: z.int(),
  autoUpdate: z.boolean(),
  autoUpdateConstraint: z.string().nullable(),
  previous: contentSchema.nullable(),
  /** The version that was gone back from by itself. */
  brokenVersion: z.string().nullable(),
});

export type ModuleState = z.infer<typeof stateSchema>;

export interface ModuleContent {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly hash: string;
  readonly hasIcon: boolean;
  readonly configSchema: JsonSchema;
  readonly secretsSchema: JsonSchema;
}

export interface ActivationPurpose {
  /** recover: a start of one that was given up, so that its fault shows at once if it is still there. */
  readonly kind: "enable" | "reconfigure" | "start" | "recover";
  readonly tickets: readonly string[];
}

export type ModuleMessage =
  /** A module of this server, at every start. */
  | {
      readonly type: "register";
      readonly id: string;
      readonly moduleType: ModuleState["type"];
      readonly enabled: boolean;
      readonly missing: string | null;
      readonly content: ModuleContent;
    }
  | {
      readonly type: "install";
      readonly id: string;
      readonly moduleType: ModuleState["type"];
      readonly source: string;
      readonly registry: ModuleState["registry"];
      readonly autoUpdate: boolean;
      readonly constraint: string | null;
      readonly content: ModuleContent;
    }
  /** Puts an enabled module in service: at every start, and on reload. `missing` is what its package was found to be. */
  | { readonly type: "start"; readonly missing: string | null }
  | { readonly type: "replace"; readonly source: string; readonly content: ModuleContent }
  | { readonly type: "rollBack" }
  | { readonly type: "fail"; readonly hash: string; readonly reason: string }
  | { readonly type: "setAutoUpdate"; readonly autoUpdate: boolean; readonly constraint: string | null }
  | { readonly type: "setEnabled"; readonly enabled: boolean }
  | { readonly type: "delete" }
  | ConfigPatch
  | ({ readonly type: "patchSecrets" } & SecretsRequest)
  | SecretsSealed
  | { readonly type: "reseal" }
  | ResealedMessage
  | { readonly type: "activated"; readonly generation: number; readonly purpose: ActivationPurpose }
  | { readonly type: "activationFailed"; readonly purpose: ActivationPurpose; readonly failure: Failure }
  | { readonly type: "takenOver"; readonly basis: number; readonly takeover: Takeover }
  | { readonly type: "takeoverFailed"; readonly failure: Failure };

/** Another content takes over: a newer one, or the one before. */
export interface Takeover {
  readonly content: ModuleContent;
  readonly source: string;
  /** back: there is nothing before it any more. `broken` is then the version not to take again. */
  readonly direction: "forward" | "back";
  readonly broken: string | null;
}

export type ModuleEffect =
  | { readonly type: "activate"; readonly state: ModuleState; readonly purpose: ActivationPurpose }
  | { readonly type: "takeOver"; readonly candidate: ModuleState; readonly basis: number; readonly takeover: Takeover }
  | { readonly type: "deactivate" }
  | { readonly type: "removePackages"; readonly hashes: readonly string[] }
  | { readonly type: "sealSecrets"; readonly state: ModuleState; readonly requests: readonly SecretsRequest[] }
  | { readonly type: "reseal"; readonly state: ModuleState };

type ModuleStep = Step<ModuleState, ModuleEffect>;

const takeoverTicket = "takeover";

export const moduleKind: Kind<ModuleState, ModuleMessage, ModuleEffect, ModulePorts> = {
  name: "module",
  version: 1,
  schema: stateSchema,

  decide(state, message, now) {
    if (message.type === "register") return register(state, message, now);
    if (message.type === "install") return install(state, message, now);
    if (state === null) return absent(message);
    switch (message.type) {
      case "start":
        return start(state, message.missing, now);
      case "replace":
        return takeOver(state, { ...message, direction: "forward", broken: null }, now);
      case "rollBack":
        return rollBack(state, now);
      case "fail":
        return fail(state, message.hash, message.reason, now);
      case "setAutoUpdate":
        return setAutoUpdate(state, message, now);
      case "setEnabled":
        return message.enabled ? enable(state) : disable(state, now);
      case "delete":
        return remove(state);
      case "patchConfig":
        return reconfigured(withConfigPatch(state, message, `module "${state.id}"`, now));
      case "patchSecrets":
        return { state, defer: message.ticket, effects: [{ type: "sealSecrets", state, requests: [message] }] };
      case "secretsSealed":
        return secretsSealed(state, message, now);
      case "reseal":
        return { state, defer: resealTicket, effects: [{ type: "reseal", state }] };
      case "resealed":
        return resealedStep(state, message);
      case "activated":
        return activated(state, message.generation, message.purpose, now);
      case "activationFailed":
        return activationFailed(state, message.purpose, message.failure, now);
      case "takenOver":
        return takenOver(state, message.basis, message.takeover, now);
      case "takeoverFailed":
        return { state, settle: [{ ticket: takeoverTicket, failure: message.failure }] };
    }
  },

  index: (state): readonly IndexEntry[] => [{ name: "all", sort: moduleSort(state.createdAt, state.id) }],
  owed: () => [],
  perform: performModuleEffect,
};

export function moduleSort(createdAt: number, id: string): string {
  return newestFirst(createdAt, id);
}

/** Why calls of it cannot be answered now, or null. */
export function moduleFault(state: ModuleState): string | null {
  return state.missing ?? state.failed;
}

function register(
  state: ModuleState | null,
  message: Extract<ModuleMessage, { type: "register" }>,
  now: number,
): ModuleStep {
  const { id, moduleType, enabled, missing } = message;
  if (state !== null && !state.isBuiltin) {
    throw new Failure("already_exists", `Module "${id}" is built in now: the installed one of the same id is not used`);
  }
  const described = stored(message.content);
  const next: ModuleState =
    state === null
      ? {
          ...newModule(id, moduleType, now),
          ...described,
          isBuiltin: true,
          enabled: enabled && missing === null,
          missing,
        }
      : { ...state, ...described, missing };
  const same = state !== null && JSON.stringify(state) === JSON.stringify(next);
  return same ? { state, reply: state } : { state: next, reply: next };
}

function install(
  state: ModuleState | null,
  message: Extract<ModuleMessage, { type: "install" }>,
  now: number,
): ModuleStep {
  const { id, moduleType, source, registry, autoUpdate, constraint } = message;
  if (state !== null) throw new Failure("already_exists", `Module "${id}" exists already`);
  const installed: ModuleState = {
    ...newModule(id, moduleType, now),
    ...stored(message.content),
    source,
    registry,
    autoUpdate,
    autoUpdateConstraint: constraint,
  };
  return { state: installed, reply: installed };
}

function newModule(id: string, type: ModuleState["type"], now: number) {
  return {
    id,
    type,
    isBuiltin: false,
    ...unconfigured,
    source: "",
    registry: null,
    enabled: false,
    missing: null,
    failed: null,
    createdAt: now,
    updatedAt: now,
    versionSince: now,
    autoUpdate: false,
    autoUpdateConstraint: null,
    previous: null,
    brokenVersion: null,
  };
}

/** Only what belongs to a content, so that messages may carry more. */
function stored(from: ModuleContent): z.infer<typeof contentSchema> {
  const { name, description, version, hash, hasIcon, configSchema, secretsSchema } = from;
  return { name, description, version, hash, hasIcon, configSchema, secretsSchema } as z.infer<typeof contentSchema>;
}

/** Reports about a module deleted meanwhile have nobody to answer. */
function absent(message: ModuleMessage): ModuleStep {
  switch (message.type) {
    case "secretsSealed":
    case "resealed":
    case "activationFailed":
    case "takeoverFailed":
    case "start":
    case "fail":
      return { state: null };
    case "activated":
    case "takenOver":
      return { state: null, effects: [{ type: "deactivate" }] };
    default:
      throw new Failure("not_found", "There is no such module");
  }
}

function start(state: ModuleState, missing: string | null, now: number): ModuleStep {
  const found: ModuleState =
    state.missing === missing && state.failed === null ? state : { ...state, missing, failed: null, updatedAt: now };
  if (!found.enabled) return { state: found, reply: found };
  if (missing !== null) return { state: found, reply: found, effects: [{ type: "deactivate" }] };
  const purpose: ActivationPurpose = { kind: state.failed === null ? "start" : "recover", tickets: ["start"] };
  return { state: found, defer: "start", effects: [{ type: "activate", state: found, purpose }] };
}

function enable(state: ModuleState): ModuleStep {
  if (state.missing !== null) throw new Failure("conflict", `Cannot enable module "${state.id}": ${state.missing}`);
  if (state.enabled && state.failed === null) return { state, reply: state };
  requireValidConfig(state);
  const purpose = { kind: "enable", tickets: ["enable"] } as const;
  return { state, defer: "enable", effects: [{ type: "activate", state, purpose }] };
}

function disable(state: ModuleState, now: number): ModuleStep {
  if (!state.enabled) return { state, reply: state };
  const disabled: ModuleState = { ...state, enabled: false, failed: null, updatedAt: now };
  return { state: disabled, reply: disabled, effects: [{ type: "deactivate" }] };
}

/** The settings are stored already; an enabled module is put in service again with them. */
function reconfigured(next: ModuleState): ModuleStep {
  if (!next.enabled || next.missing !== null) return { state: next, reply: next };
  const purpose = { kind: "reconfigure", tickets: ["reconfigure"] } as const;
  return { state: next, defer: "reconfigure", effects: [{ type: "activate", state: next, purpose }] };
}

function secretsSealed(state: ModuleState, message: SecretsSealed, now: number): ModuleStep {
  return secretsSealedStep(state, message, now, (next, tickets): ModuleEffect | undefined =>
    next.enabled && next.missing === null
      ? { type: "activate", state: next, purpose: { kind: "reconfigure", tickets } }
      : undefined,
  );
}

function activated(state: ModuleState, generation: number, purpose: ActivationPurpose, now: number): ModuleStep {
  if (generation !== state.generation) return { state, effects: [{ type: "activate", state, purpose }] };
  const { kind, tickets } = purpose;
  // Disabled while it was being started or configured: then it must not stay in service.
  if (kind !== "enable" && !state.enabled) {
    return { state, settle: answered(tickets, state), effects: [{ type: "deactivate" }] };
  }
  if (state.enabled && state.failed === null) return { state, settle: answered(tickets, state) };
  const enabled: ModuleState = { ...state, enabled: true, failed: null, updatedAt: now };
  return { state: enabled, settle: answered(tickets, enabled) };
}

/** At a start nobody waits for an answer: the reason is kept where operators look. */
function activationFailed(state: ModuleState, purpose: ActivationPurpose, failure: Failure, now: number): ModuleStep {
  const settle = purpose.tickets.map((ticket) => ({ ticket, failure }));
  if (purpose.kind !== "start" && purpose.kind !== "recover") return { state, settle };
  const failed: ModuleState = { ...state, failed: failure.message, updatedAt: now };
  return { state: failed, settle };
}

function takeOver(state: ModuleState, takeover: Takeover, now: number): ModuleStep {
  requireInstalled(state, "update");
  const candidate = withTakeover(state, takeover, now);
  // A disabled module is not in service: there is nothing to try, and nothing to lose.
  if (!state.enabled) {
    return { state: candidate, reply: candidate, effects: removals(state, candidate) };
  }
  requireValidConfig(candidate);
  return {
    state,
    defer: takeoverTicket,
    effects: [{ type: "takeOver", candidate, basis: state.generation, takeover }],
  };
}

function takenOver(state: ModuleState, basis: number, takeover: Takeover, now: number): ModuleStep {
  const candidate = withTakeover(state, takeover, now);
  // Configured in between: try again with what is so now.
  if (basis !== state.generation) {
    return { state, effects: [{ type: "takeOver", candidate, basis: state.generation, takeover }] };
  }
  const settle = [{ ticket: takeoverTicket, reply: candidate }];
  const effects = removals(state, candidate);
  return { state: candidate, settle, effects: state.enabled ? effects : [...effects, { type: "deactivate" }] };
}

/** Invariant 3. Settings stay as they are, outdated or not. */
function withTakeover(
  state: ModuleState,
  { content: next, source, direction, broken }: Takeover,
  now: number,
): ModuleState {
  return {
    ...state,
    ...stored(next),
    secretsOutdated: outdatedSecrets(stored(next).secretsSchema, state.secretsPresent),
    source,
    missing: null,
    failed: null,
    previous: direction === "forward" ? stored(state) : null,
    brokenVersion: direction === "forward" ? null : (broken ?? state.version),
    versionSince: now,
    updatedAt: now,
    generation: state.generation + 1,
  };
}

/** Packages that nothing refers to any more. */
function removals(before: ModuleState, after: ModuleState): ModuleEffect[] {
  const kept = [after.hash, after.previous?.hash];
  const gone = [before.hash, before.previous?.hash].filter((hash) => hash !== undefined && !kept.includes(hash));
  return gone.length === 0 ? [] : [{ type: "removePackages", hashes: gone as string[] }];
}

function rollBack(state: ModuleState, now: number): ModuleStep {
  requireInstalled(state, "roll back");
  if (state.previous === null) {
    throw new Failure("conflict", `Cannot roll back module "${state.id}": there is no version before ${state.version}`);
  }
  return takeOver(state, backTo(state, state.previous), now);
}

function backTo(state: ModuleState, previous: NonNullable<ModuleState["previous"]>): Takeover {
  return { content: previous as ModuleContent, source: state.source, direction: "back", broken: state.version };
}

/** Invariant 4. */
function fail(state: ModuleState, hash: string, reason: string, now: number): ModuleStep {
  if (state.hash !== hash || !state.enabled) return { state };
  const failed: ModuleState = { ...state, failed: reason, updatedAt: now };
  const isNew = now - state.versionSince < moduleProbationMs;
  if (state.previous === null || !isNew) return { state: failed };
  const takeover = backTo(state, state.previous);
  const candidate = withTakeover(failed, takeover, now);
  return { state: failed, effects: [{ type: "takeOver", candidate, basis: state.generation, takeover }] };
}

function setAutoUpdate(
  state: ModuleState,
  { autoUpdate, constraint }: Extract<ModuleMessage, { type: "setAutoUpdate" }>,
  now: number,
): ModuleStep {
  if (state.registry === null) {
    throw new Failure(
      "conflict",
      `Module "${state.id}" was not installed from a registry: it has nothing to update from`,
    );
  }
  const next: ModuleState = { ...state, autoUpdate, autoUpdateConstraint: constraint, updatedAt: now };
  return { state: next, reply: next };
}

function remove(state: ModuleState): ModuleStep {
  requireInstalled(state, "delete");
  const hashes = [state.hash, ...(state.previous === null ? [] : [state.previous.hash])];
  return { state: null, effects: [{ type: "deactivate" }, { type: "removePackages", hashes }] };
}

/** Invariant 5. */
function requireInstalled(state: ModuleState, verb: string): void {
  if (state.isBuiltin) throw new Failure("conflict", `Cannot ${verb} module "${state.id}": it is built in`);
}
