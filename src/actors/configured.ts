/**
 * Configuration and secrets of an actor that has them: services and modules follow the same rules. The owner holds these fields
 * in its state; what is here decides on them, and seals and opens for its effects.
 *
 * 1. A patch is stored whole or not at all.
 * 2. Secrets are opened and sealed by effects; no state holds a plain value, and a seal made from an older state is made again.
 * 3. `generation` grows with each change of what being ready depends on.
 */
import { z } from "zod";
import { Failure, isFailure } from "../errors/failure.ts";
import { parsePointer } from "../json/pointer.ts";
import {
  declaredPart,
  outdatedPointers,
  patchSettings,
  presentPointers,
  requireValid,
  settingsProblems,
  withDefaults,
} from "../json/settings.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import { type ResealedMessage, type ResealOutcome, renewed, resealTicket, type Sealed } from "./reseal.ts";

const jsonSchema = z.union([z.record(z.string(), z.unknown()), z.boolean()]);

/** For the state schema of the owner. */
export const configuredShape = {
  configSchema: jsonSchema,
  secretsSchema: jsonSchema,
  config: z.record(z.string(), z.unknown()),
  /** Envelope of the vault over the JSON of all secrets; null when none were ever set. */
  secrets: z.string().nullable(),
  /** Pointers of secrets that have a value, and of those that the schema no longer defines. */
  secretsPresent: z.array(z.string()),
  secretsOutdated: z.array(z.string()),
  generation: z.int().positive(),
};

export interface Configured extends z.infer<z.ZodObject<typeof configuredShape>> {
  readonly id: string;
  readonly hash: string;
  readonly enabled: boolean;
  readonly updatedAt: number;
}

/** At installation: nothing is stored yet. */
export const unconfigured = { config: {}, secrets: null, secretsPresent: [], secretsOutdated: [], generation: 1 };

export interface ConfigPatch {
  readonly type: "patchConfig";
  readonly patch: readonly unknown[];
  readonly ifMatch?: string | undefined;
}

export interface SecretsRequest {
  readonly patch: readonly unknown[];
  readonly ticket: string;
}

export interface SecretsSealed {
  readonly type: "secretsSealed";
  /** null: every request was refused. */
  readonly sealed: {
    readonly envelope: string;
    readonly present: readonly string[];
    readonly outdated: readonly string[];
  } | null;
  /** The envelope that this was made from. */
  readonly basis: string | null;
  /** Those that `sealed` holds. */
  readonly requests: readonly SecretsRequest[];
  readonly refused: readonly { readonly ticket: string; readonly failure: Failure }[];
}

/** Strong entity tag of the stored configuration, without quotes. */
export function configTag({ hash, generation }: Pick<Configured, "hash" | "generation">): string {
  return `${hash.slice(0, 12)}-${generation}`;
}

export function configOf(state: Configured): { config: Record<string, unknown>; outdated: string[] } {
  return { config: state.config, outdated: [...outdatedPointers(state.configSchema, state.config)] };
}

export function secretsOf(state: Configured): { present: string[]; outdated: string[] } {
  return { present: state.secretsPresent, outdated: state.secretsOutdated };
}

/** Throws Failure: etag_mismatch, invalid_request. `what` names the owner in errors: `service "petstore"`. */
export function withConfigPatch<State extends Configured>(
  state: State,
  { patch, ifMatch }: ConfigPatch,
  what: string,
  now: number,
): State {
  if (ifMatch !== undefined && ifMatch !== configTag(state)) {
    throw new Failure("etag_mismatch", `The configuration of ${what} has changed since it was read`);
  }
  const { next: config } = patchSettings({
    kind: "config",
    schema: state.configSchema,
    stored: state.config,
    operations: patch,
    enforceRequired: state.enabled,
  });
  return { ...state, config, updatedAt: now, generation: state.generation + 1 };
}

export function requireValidConfig(state: Configured): void {
  requireValid("config", settingsProblems(state.configSchema, state.config));
}

/** undefined: another patch was stored in between, the seal must be made again. */
function withSecrets<State extends Configured>(
  state: State,
  { sealed, basis }: SecretsSealed,
  now: number,
): State | undefined {
  if (sealed === null) return state;
  if (basis !== state.secrets) return undefined;
  return {
    ...state,
    secrets: sealed.envelope,
    secretsPresent: [...sealed.present],
    secretsOutdated: [...sealed.outdated],
    updatedAt: now,
    generation: state.generation + 1,
  };
}

/** Who waits for the same thing gets the same answer. */
export function answered<Reply>(tickets: readonly string[], reply: Reply): { ticket: string; reply: Reply }[] {
  return tickets.map((ticket) => ({ ticket, reply }));
}

/** `reconfigure`: what puts the new secrets to use, with who waits for that; undefined when nothing is in use. */
export function secretsSealedStep<State extends Configured, Effect>(
  state: State,
  message: SecretsSealed,
  now: number,
  reconfigure: (next: State, tickets: readonly string[]) => Effect | undefined,
) {
  const { requests, refused } = message;
  const next = withSecrets(state, message, now);
  if (next === undefined) {
    return { state, settle: refused, effects: [{ type: "sealSecrets", state, requests } as const] };
  }
  const tickets = requests.map(({ ticket }) => ticket);
  const effect = tickets.length === 0 ? undefined : reconfigure(next, tickets);
  if (effect === undefined) return { state: next, settle: [...refused, ...answered(tickets, next)] };
  return { state: next, settle: refused, effects: [effect] };
}

/**
 * Which secrets the schema of another content does not define. Judged by where they are, because no decision opens them; what lies
 * inside an array is judged at the next patch.
 */
export function outdatedSecrets(schema: Configured["secretsSchema"], present: readonly string[]): string[] {
  const shape: Record<string, unknown> = {};
  for (const pointer of present) {
    const tokens = parsePointer(pointer) ?? [];
    const parent = tokens.slice(0, -1).reduce<Record<string, unknown>>((value, token) => {
      value[token] ??= {};
      return value[token] as Record<string, unknown>;
    }, shape);
    parent[tokens.at(-1) ?? ""] = null;
  }
  return [...outdatedPointers(schema, shape)];
}

/** The same secrets under another key change the envelope only: no generation, no time. */
export function resealedStep<State extends Configured>(
  state: State,
  message: ResealedMessage,
): { state: State; settle: { ticket: string; reply: ResealOutcome }[] } {
  const settle = [{ ticket: resealTicket, reply: { unreadable: message.unreadable } }];
  const secrets = state.secrets === null ? null : renewed(state.secrets, message);
  return { state: secrets === state.secrets ? state : { ...state, secrets }, settle };
}

/** For effects: patches of the secrets, one after another, each whole or not at all; and one seal of what comes of them. */
export function sealSecrets(
  state: Configured,
  requests: readonly SecretsRequest[],
  vault: Vault,
  context: SealContext,
): SecretsSealed {
  let patched: ReturnType<typeof patchSettings> | undefined;
  const accepted: SecretsRequest[] = [];
  const refused: { ticket: string; failure: Failure }[] = [];
  for (const request of requests) {
    try {
      patched = patchSettings({
        kind: "secrets",
        schema: state.secretsSchema,
        stored: patched?.next ?? openSecrets(state, vault, context),
        operations: request.patch,
        enforceRequired: state.enabled,
      });
      accepted.push(request);
    } catch (error) {
      if (!isFailure(error)) throw error;
      refused.push({ ticket: request.ticket, failure: error });
    }
  }
  const sealed = patched && {
    envelope: vault.seal(JSON.stringify(patched.next), context),
    present: presentPointers(patched.next),
    outdated: patched.outdated,
  };
  return { type: "secretsSealed", sealed: sealed ?? null, basis: state.secrets, requests: accepted, refused };
}

export interface OpenSettings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
}

/** What code receives: declared values, with defaults. Throws Failure when secrets are unreadable or, unless `partial`, incomplete. */
export function openSettings(
  state: Configured,
  vault: Vault,
  context: SealContext,
  { partial = false }: { readonly partial?: boolean } = {},
): OpenSettings {
  const secrets = openSecrets(state, vault, context);
  if (!partial) requireValid("secrets", settingsProblems(state.secretsSchema, secrets));
  return {
    config: withDefaults(state.configSchema, state.config),
    secrets: declaredPart(state.secretsSchema, secrets),
  };
}

function openSecrets({ secrets }: Configured, vault: Vault, context: SealContext): Record<string, unknown> {
  return secrets === null ? {} : (JSON.parse(vault.open(secrets, context)) as Record<string, unknown>);
}

export function sealedIn({ secrets }: Configured, context: SealContext): readonly Sealed[] {
  return secrets === null ? [] : [{ envelope: secrets, context }];
}
