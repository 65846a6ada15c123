/** A toy kind for tests of the machine: an account with a balance, interest by wake, and transfers that need the outside. */
import { z } from "zod";
import { Failure } from "../../src/errors/failure.ts";
import type { Kind } from "../../src/runtime/kind.ts";

export interface Account {
  balance: number;
  /** Due time of the next interest, or null. */
  interestAt: number | null;
  /** A transfer asked for and not yet confirmed by the bank. */
  pending: number | null;
}

export type AccountMessage =
  | { type: "open"; note?: string }
  | { type: "deposit"; amount: number }
  | { type: "read" }
  | { type: "crash" }
  | { type: "promise-interest"; at: number }
  | { type: "interest" }
  | { type: "ignored-wake" }
  | { type: "transfer"; amount: number }
  | { type: "transferred"; amount: number }
  | { type: "close" }
  | { type: "leave" };

export type AccountEffect = { type: "pay"; amount: number };

export interface Bank {
  pay(key: string, amount: number): Promise<void>;
}

const none: Account = { balance: 0, interestAt: null, pending: null };

export const accountKind: Kind<Account, AccountMessage, AccountEffect, Bank> = {
  name: "account",
  version: 2,
  schema: z.object({ balance: z.number(), interestAt: z.number().nullable(), pending: z.number().nullable() }),
  migrate: (old, from) => (from === 1 ? { ...none, balance: (old as { cents: number }).cents / 100 } : old),
  sequenced: true,

  decide(state, message) {
    if (message.type === "crash") throw new Error("broken invariant");
    if (message.type === "open") {
      if (state !== null) throw new Failure("already_exists", "The account is open already");
      return { state: none, reply: 0, ...(message.note === undefined ? {} : { blobs: { note: message.note } }) };
    }
    if (state === null) throw new Failure("not_found", "There is no such account");
    switch (message.type) {
      case "deposit": {
        const balance = state.balance + message.amount;
        return { state: { ...state, balance }, reply: balance };
      }
      case "read":
        return { state, reply: state.balance };
      case "promise-interest":
        return { state: { ...state, interestAt: message.at } };
      case "interest":
        return { state: { ...state, interestAt: null, balance: state.balance + 1 } };
      case "ignored-wake":
        return { state };
      case "transfer":
        if (state.pending !== null) return { state, defer: "transfer" };
        return {
          state: { ...state, pending: message.amount },
          defer: "transfer",
          effects: [{ type: "pay", amount: message.amount }],
        };
      case "transferred": {
        // A report may come again: what it tells of must still be pending.
        if (state.pending === null) return { state, settle: [{ ticket: "transfer", reply: state.balance }] };
        const balance = state.balance - message.amount;
        return { state: { ...state, pending: null, balance }, settle: [{ ticket: "transfer", reply: balance }] };
      }
      case "close":
        return { state: null, reply: state.balance };
      case "leave":
        return { state, reply: "left", passivate: true };
    }
  },

  index: (state, key) => [{ name: "balance", sort: `${String(state.balance).padStart(8, "0")}.${key}` }],
  wakes: (state): Record<string, number> => (state.interestAt === null ? {} : { interest: state.interestAt }),
  woken: (): AccountMessage => ({ type: "interest" }),
  owed: (state) => (state.pending === null ? [] : [{ type: "pay", amount: state.pending }]),

  async perform(effect, self, bank) {
    await bank.pay(self.key, effect.amount);
    return { type: "transferred", amount: effect.amount };
  },
};
