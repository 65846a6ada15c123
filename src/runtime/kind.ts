/**
 * What an actor kind is: a state, a pure function that decides what a message does to it, and effects as plain data. The
 * machine (`cell.ts`) keeps one order: decide, persist, answer, act.
 *
 * An actor without a record has the state `null`; deciding on `null` is how an actor comes to be, and returning `null` is how
 * it goes, together with its blobs, indexes and wakes.
 */
import type { z } from "zod";
import type { Failure } from "../errors/failure.ts";

/** The only way to name an actor; printed `process/42`. */
export interface Address {
  readonly kind: string;
  readonly key: string;
}

export function addressText(address: Address): string {
  return `${address.kind}/${address.key}`;
}

/** One entry of an ordered index: `name` groups, `sort` orders (ascending bytes) and must be unique within the name. */
export interface IndexEntry {
  readonly name: string;
  readonly sort: string;
}

/** Ends the wait of callers deferred under `ticket`. */
export type Settlement =
  | { readonly ticket: string; readonly reply: unknown }
  | { readonly ticket: string; readonly failure: Failure };

export interface Step<State, Effect> {
  /** The same object as before: nothing to store. `null`: the actor ends. */
  readonly state: State | null;
  readonly reply?: unknown;
  /** The caller waits under this ticket (memory only) until a later step settles it. Many callers may share one. */
  readonly defer?: string;
  readonly settle?: readonly Settlement[];
  readonly effects?: readonly Effect[];
  /** Large values beside the record, written in the same batch; `null` removes one. */
  readonly blobs?: Readonly<Record<string, string | null>>;
  /** Leaves memory after this step (the record stays). */
  readonly passivate?: true;
}

/** What a running effect may use to talk back before it has ended. */
export interface Self<Message> {
  readonly key: string;
  tell(message: Message): void;
  /** A large value beside the actor's record. */
  blob(name: string): Promise<string | undefined>;
}

export interface Kind<State, Message, Effect, Ports> {
  readonly name: string;
  /** Shape of the stored state: checked when read and before written. */
  readonly schema: z.ZodType<State>;
  readonly version: number;
  /** Brings a state stored by version `from` to the next version; called repeatedly. */
  readonly migrate?: (old: unknown, from: number) => unknown;
  /** Keys are numbers that only grow; the machine hands them out (`Actors.nextKey`) and remembers the highest. */
  readonly sequenced?: true;
  /** Pure. The same state, message and time give the same step. Throws Failure to refuse; anything else is a crash. */
  decide(state: State | null, message: Message, now: number): Step<State, Effect>;
  /** Pure. */
  index(state: State, key: string): readonly IndexEntry[];
  /** Pure. Wakes that follow from the state: name → due time, epoch milliseconds. */
  readonly wakes?: (state: State) => Readonly<Record<string, number>>;
  /** The message a due wake becomes. Delivered again (bounded) until the state no longer asks for it. */
  readonly woken?: (name: string) => Message;
  /** Pure. Work a restarted actor still owes, read from its state alone. An actor that owes work stays in memory. */
  owed(state: State): readonly Effect[];
  /**
   * The only impure part. What it learns comes back as a message, which may be decided more than once (the store may have taken
   * it without saying so), so a report carries what it is a report of. Safe to repeat. A throw is a crash of the actor.
   */
  perform(effect: Effect, self: Self<Message>, ports: Ports): Promise<Message | undefined>;
}

/** For tables where kinds of many types live side by side; only the machine uses it. */
export type AnyKind = Kind<unknown, unknown, unknown, unknown>;
