/**
 * A registry: a remote catalog, the credentials for it, and the token they buy.
 *
 * It owns the record, the pinned auth, the sealed credentials, the token and what was last said about drift. Reading the
 * registry for a caller is not its work: operations fetch in their caller's time and ask it only for what to send.
 *
 * 1. Header name and token endpoint are pinned at setup; what the registry advertises later never changes them.
 * 2. One exchange per credential generation at a time: everybody who needs a token waits for the same one.
 * 3. An exchange that ends after its credentials were replaced changes nothing.
 * 4. A failed exchange deletes no credentials and blocks no later setup.
 * 5. A token handed out after a refusal is newer than the refused one (`number` only grows).
 * 6. A setup under way (`setup`) changes nothing of what serves until its exchange has ended.
 * 7. Sealing the same credentials or token with another key changes envelopes only: no generation, no number, no time.
 */
import { z } from "zod";
import { Failure } from "../errors/failure.ts";
import { tokenSkewMs } from "../limits.ts";
import type { AdvertisedAuth } from "../ports/registry-reader.ts";
import { newestFirst } from "../runtime/keys.ts";
import type { IndexEntry, Kind, Step } from "../runtime/kind.ts";
import { type DriftEvent, driftOf } from "./registry-drift.ts";
import { performRegistryEffect, type RegistryPorts } from "./registry-effects.ts";
import { type ResealedMessage, type ResealOutcome, renewed, resealTicket } from "./reseal.ts";

const authSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("apiKey"), generation: z.int(), headerName: z.string(), credentials: z.string() }),
  z.object({ type: z.literal("oauth2"), generation: z.int(), tokenEndpoint: z.string(), credentials: z.string() }),
]);

const tokenSchema = z.object({
  generation: z.int(),
  number: z.int(),
  /** Envelope of the vault over the access token (and a refresh token, which is kept and never used). */
  envelope: z.string(),
  expiresAt: z.int(),
});

const stateSchema = z.object({
  id: z.string().min(1),
  baseUrl: z.string(),
  lastSyncedAt: z.int().nullable(),
  createdAt: z.int(),
  updatedAt: z.int(),
  auth: authSchema.nullable(),
  /** Counts setups and removals, so that no two credentials ever share a generation. */
  generations: z.int().nonnegative(),
  token: tokenSchema.nullable(),
  /** Counts tokens issued. */
  tokens: z.int().nonnegative(),
  /** Generation an exchange is under way for, or owed after a restart. */
  exchanging: z.int().nullable(),
  /** Credentials whose first exchange has not ended yet. */
  setup: authSchema.nullable(),
  /** What was last logged about the advertisement; "" when there was nothing to say. */
  drift: z.string(),
});

export type RegistryState = z.infer<typeof stateSchema>;
export type RegistryAuth = z.infer<typeof authSchema>;

/** Credentials as an operation has sealed them; the actor numbers them. */
export type NewAuth =
  | { readonly type: "apiKey"; readonly headerName: string; readonly credentials: string }
  | { readonly type: "oauth2"; readonly tokenEndpoint: string; readonly credentials: string };

export interface SealedToken {
  readonly envelope: string;
  readonly lifetimeMs: number;
}

/** What to send to the registry now. Envelopes are for the vault. */
export type Authorization =
  | { readonly type: "anonymous" }
  | { readonly type: "apiKey"; readonly headerName: string; readonly credentials: string }
  | { readonly type: "oauth2"; readonly envelope: string; readonly number: number }
  /** The credentials were replaced while a token for them was awaited: ask again. */
  | { readonly type: "again" };

export type SetupOutcome =
  | { readonly status: "configured"; readonly state: RegistryState }
  | { readonly status: "error"; readonly message: string; readonly state: RegistryState };

export type RegistryMessage =
  | {
      readonly type: "add";
      readonly id: string;
      readonly baseUrl: string;
      readonly auth: NewAuth | null;
      readonly token: SealedToken | null;
    }
  | { readonly type: "refresh" }
  | { readonly type: "delete" }
  | { readonly type: "setAuth"; readonly auth: NewAuth }
  | { readonly type: "deleteAuth" }
  /** `refused`: number of a token the registry answered 401 to. */
  | { readonly type: "authorize"; readonly refused: number | null }
  | { readonly type: "observe"; readonly advertised: AdvertisedAuth | null }
  | { readonly type: "tokenIssued"; readonly generation: number; readonly token: SealedToken }
  | { readonly type: "exchangeFailed"; readonly generation: number; readonly failure: Failure }
  | { readonly type: "reseal" }
  | ResealedMessage;

export type RegistryEffect =
  | { readonly type: "exchange"; readonly auth: RegistryAuth }
  | { readonly type: "reseal"; readonly state: RegistryState };

type RegistryStep = Step<RegistryState, RegistryEffect>;

export const registryKind: Kind<RegistryState, RegistryMessage, RegistryEffect, RegistryPorts> = {
  name: "registry",
  version: 1,
  schema: stateSchema,

  decide(state, message, now) {
    if (message.type === "add") return add(state, message, now);
    if (state === null) return absent(message);
    switch (message.type) {
      case "refresh": {
        const synced: RegistryState = { ...state, lastSyncedAt: now, updatedAt: now };
        return { state: synced, reply: synced };
      }
      case "delete":
        return { state: null };
      case "setAuth":
        return setAuth(state, message.auth, now);
      case "deleteAuth":
        return deleteAuth(state, now);
      case "authorize":
        return authorize(state, message.refused, now);
      case "observe":
        return observe(state, message.advertised);
      case "tokenIssued":
        return tokenIssued(state, message.generation, message.token, now);
      case "exchangeFailed":
        return exchangeFailed(state, message.generation, message.failure, now);
      case "reseal":
        return { state, defer: resealTicket, effects: [{ type: "reseal", state }] };
      case "resealed":
        return resealed(state, message);
    }
  },

  index,

  owed(state) {
    const effects: RegistryEffect[] = [];
    if (state.setup !== null) effects.push({ type: "exchange", auth: state.setup });
    if (state.exchanging !== null && state.auth !== null) effects.push({ type: "exchange", auth: state.auth });
    return effects;
  },

  perform: performRegistryEffect,
};

function add(
  state: RegistryState | null,
  message: Extract<RegistryMessage, { type: "add" }>,
  now: number,
): RegistryStep {
  if (state !== null) throw new Failure("already_exists", `Registry "${message.id}" exists already`);
  const added: RegistryState = {
    id: message.id,
    baseUrl: message.baseUrl,
    lastSyncedAt: null,
    createdAt: now,
    updatedAt: now,
    auth: message.auth === null ? null : { ...message.auth, generation: 1 },
    generations: message.auth === null ? 0 : 1,
    token: message.token === null ? null : numbered(message.token, 1, 1, now),
    tokens: message.token === null ? 0 : 1,
    exchanging: null,
    setup: null,
    drift: "",
  };
  return { state: added, reply: added };
}

/** Reports about a registry deleted meanwhile have nobody to answer. */
function absent(message: RegistryMessage): RegistryStep {
  switch (message.type) {
    case "tokenIssued":
    case "exchangeFailed":
    case "resealed":
      return { state: null };
    default:
      throw new Failure("not_found", "There is no such registry");
  }
}

function setAuth(state: RegistryState, auth: NewAuth, now: number): RegistryStep {
  const generation = state.generations + 1;
  const setup: RegistryAuth = { ...auth, generation };
  const overtaken = state.setup === null ? [] : [{ ticket: setupTicket(state.setup.generation), failure: replaced() }];
  if (setup.type === "apiKey") {
    const next = configured({ ...state, generations: generation }, setup, null, now);
    return {
      state: next,
      reply: { status: "configured", state: next } satisfies SetupOutcome,
      settle: [...overtaken, ...overtakenTokens(state)],
    };
  }
  return {
    state: { ...state, generations: generation, setup },
    defer: setupTicket(generation),
    settle: overtaken,
    effects: [{ type: "exchange", auth: setup }],
  };
}

/** New credentials take over: a token of the old ones is never sent again (invariant 3). */
function configured(state: RegistryState, auth: RegistryAuth, token: SealedToken | null, now: number): RegistryState {
  const tokens = state.tokens + (token === null ? 0 : 1);
  return {
    ...state,
    auth,
    token: token === null ? null : numbered(token, auth.generation, tokens, now),
    tokens,
    exchanging: null,
    setup: null,
    updatedAt: now,
  };
}

function deleteAuth(state: RegistryState, now: number): RegistryStep {
  if (state.auth === null && state.setup === null) {
    throw new Failure("not_found", `Registry "${state.id}" has no auth configured`);
  }
  const next: RegistryState = {
    ...state,
    auth: null,
    token: null,
    exchanging: null,
    setup: null,
    generations: state.generations + 1,
    updatedAt: now,
  };
  const setups = state.setup === null ? [] : [{ ticket: setupTicket(state.setup.generation), failure: replaced() }];
  return { state: next, reply: next, settle: [...setups, ...overtakenTokens(state)] };
}

function authorize(state: RegistryState, refused: number | null, now: number): RegistryStep {
  const { auth, token } = state;
  if (auth === null) return { state, reply: { type: "anonymous" } satisfies Authorization };
  if (auth.type === "apiKey") {
    const { headerName, credentials } = auth;
    return { state, reply: { type: "apiKey", headerName, credentials } satisfies Authorization };
  }
  const usable =
    token !== null &&
    token.generation === auth.generation &&
    token.expiresAt - now >= tokenSkewMs &&
    (refused === null || token.number > refused);
  if (usable) return { state, reply: handedOut(token) };
  const defer = tokenTicket(auth.generation);
  if (state.exchanging === auth.generation) return { state, defer };
  return {
    state: { ...state, exchanging: auth.generation },
    defer,
    effects: [{ type: "exchange", auth }],
  };
}

function tokenIssued(state: RegistryState, generation: number, sealed: SealedToken, now: number): RegistryStep {
  if (state.setup?.generation === generation) {
    const next = configured(state, state.setup, sealed, now);
    const reply: SetupOutcome = { status: "configured", state: next };
    return { state: next, settle: [...overtakenTokens(state), { ticket: setupTicket(generation), reply }] };
  }
  if (state.auth?.generation !== generation) return { state };
  const tokens = state.tokens + 1;
  const token = numbered(sealed, generation, tokens, now);
  // Also when it lives shorter than the skew: those who waited for this exchange get it all the same.
  return {
    state: { ...state, token, tokens, exchanging: null },
    settle: [{ ticket: tokenTicket(generation), reply: handedOut(token) }],
  };
}

/** Our own refusal of the transport stores nothing; whatever the endpoint did is an error of a setup that is stored. */
function exchangeFailed(state: RegistryState, generation: number, failure: Failure, now: number): RegistryStep {
  if (state.setup?.generation === generation) {
    const ticket = setupTicket(generation);
    if (failure.kind === "refused") return { state: { ...state, setup: null }, settle: [{ ticket, failure }] };
    const next = configured(state, state.setup, null, now);
    const reply: SetupOutcome = { status: "error", message: failure.message, state: next };
    return { state: next, settle: [...overtakenTokens(state), { ticket, reply }] };
  }
  if (state.auth?.generation !== generation) return { state };
  return { state: { ...state, exchanging: null }, settle: [{ ticket: tokenTicket(generation), failure }] };
}

/** Invariant 7. Also of a setup under way: its exchange reports by generation and is not disturbed. */
function resealed(state: RegistryState, message: ResealedMessage): RegistryStep {
  const reply: ResealOutcome = { unreadable: message.unreadable };
  const settle = [{ ticket: resealTicket, reply }];
  if (message.seals.length === 0) return { state, settle };
  const credentials = (auth: RegistryAuth | null): RegistryAuth | null =>
    auth === null ? null : { ...auth, credentials: renewed(auth.credentials, message) };
  const token = state.token === null ? null : { ...state.token, envelope: renewed(state.token.envelope, message) };
  return { state: { ...state, auth: credentials(state.auth), setup: credentials(state.setup), token }, settle };
}

/** Those who wait for a token of credentials that are no longer the ones to send. */
function overtakenTokens({ auth }: RegistryState): { ticket: string; reply: Authorization }[] {
  return auth === null ? [] : [{ ticket: tokenTicket(auth.generation), reply: { type: "again" } }];
}

/** Answers the events to log: each once per change of what there is to say. */
function observe(state: RegistryState, advertised: AdvertisedAuth | null): RegistryStep {
  const events = driftOf(state.auth, advertised);
  const drift = events.length === 0 ? "" : JSON.stringify(events);
  if (drift === state.drift) return { state, reply: [] satisfies readonly DriftEvent[] };
  return { state: { ...state, drift }, reply: events };
}

function numbered(
  token: SealedToken,
  generation: number,
  number: number,
  now: number,
): NonNullable<RegistryState["token"]> {
  return { generation, number, envelope: token.envelope, expiresAt: now + token.lifetimeMs };
}

function handedOut(token: NonNullable<RegistryState["token"]>): Authorization {
  return { type: "oauth2", envelope: token.envelope, number: token.number };
}

function replaced(): Failure {
  return new Failure("conflict", "The credentials were replaced meanwhile");
}

const setupTicket = (generation: number): string => `setup:${generation}`;
const tokenTicket = (generation: number): string => `token:${generation}`;

/** `all` is newest first; `url` finds the registry of a base URL. */
function index(state: RegistryState): readonly IndexEntry[] {
  return [
    { name: "all", sort: registrySort(state.createdAt, state.id) },
    { name: `url/${state.baseUrl}`, sort: state.id },
  ];
}

export function registrySort(createdAt: number, id: string): string {
  return newestFirst(createdAt, id);
}
