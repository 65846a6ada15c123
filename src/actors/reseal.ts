/**
 * Sealing again, with the current secrets key, what an actor still holds under a previous one. Kinds that own envelopes take the
 * message `reseal`; the effect it leads to opens and seals, and reports with the envelopes it started from.
 *
 * 1. An envelope is only replaced by a seal made from it: one that changed meanwhile is left alone, and is current by that.
 * 2. What no key opens stays as it is: a later start with the right key still finds it.
 */
import { isFailure } from "../errors/failure.ts";
import type { SealContext, Vault } from "../ports/vault.ts";

/** An envelope, and the context without which it does not open. */
export interface Sealed {
  readonly envelope: string;
  readonly context: SealContext;
}

export interface ResealedMessage {
  readonly type: "resealed";
  /** `basis`: the envelope that `envelope` was made from. */
  readonly seals: readonly { readonly basis: string; readonly envelope: string }[];
  /** Why something could not be opened, or null. */
  readonly unreadable: string | null;
}

/** Answer to `reseal`. */
export type ResealOutcome = Pick<ResealedMessage, "unreadable">;

export const resealTicket = "reseal";

/** Those that are current are not touched. */
export function reseal(envelopes: readonly Sealed[], vault: Vault): ResealedMessage {
  const seals: { basis: string; envelope: string }[] = [];
  let unreadable: string | null = null;
  for (const { envelope: basis, context } of envelopes) {
    if (vault.isCurrent(basis)) continue;
    try {
      seals.push({ basis, envelope: vault.seal(vault.open(basis, context), context) });
    } catch (error) {
      if (!isFailure(error)) throw error;
      unreadable = error.message;
    }
  }
  return { type: "resealed", seals, unreadable };
}

/** Invariant 1. */
export function renewed(envelope: string, { seals }: ResealedMessage): string {
  return seals.find(({ basis }) => basis === envelope)?.envelope ?? envelope;
}
