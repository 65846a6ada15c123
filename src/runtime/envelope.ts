/** One message on its way to an actor, and the caller who may be waiting for the answer. */
import { Failure } from "../errors/failure.ts";
import type { TracePlace } from "../ports/tracing.ts";
import type { Expiring } from "./deadlines.ts";
import { type Address, addressText } from "./kind.ts";

export interface AskOptions {
  /** Monotonic clock, milliseconds; inherited from the request. */
  readonly deadline?: number;
  /** Given by a caller who may retry: the same id gets the first answer. */
  readonly commandId?: string;
  /** Addresses already waiting on one another, outermost first: an ask back into the chain is refused at once. */
  readonly chain?: readonly Address[];
}

export class Envelope implements Expiring {
  readonly message: unknown;
  readonly deadline: number;
  readonly commandId: string | undefined;
  readonly #resolve: ((reply: unknown) => void) | undefined;
  readonly #reject: ((cause: unknown) => void) | undefined;
  readonly #onSettled: ((envelope: Envelope) => void) | undefined;
  tick = 0;
  /** Commits of this message that were not taken: another revision than expected, or a report the store refused. */
  conflicts = 0;
  /** What an effect learned, told to its own actor. */
  isReport = false;
  /** Where in a trace it was sent from: its turn may come while another message is handled. */
  place: TracePlace | undefined;
  #settled = false;

  /** Without `resolve` it is a tell: nobody waits. */
  constructor(
    message: unknown,
    deadline: number,
    commandId?: string,
    resolve?: (reply: unknown) => void,
    reject?: (cause: unknown) => void,
    onSettled?: (envelope: Envelope) => void,
  ) {
    this.message = message;
    this.deadline = deadline;
    this.commandId = commandId;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#onSettled = onSettled;
  }

  get expectsAnswer(): boolean {
    return this.#resolve !== undefined;
  }

  get settled(): boolean {
    return this.#settled;
  }

  reply(value: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#onSettled?.(this);
    this.#resolve?.(value);
  }

  refuse(cause: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#onSettled?.(this);
    this.#reject?.(cause);
  }

  expire(): void {
    this.refuse(
      new Failure("timeout", "The deadline passed before an answer; whether the request took effect is not known"),
    );
  }
}

export function refuseCycle(address: Address, chain: readonly Address[]): void {
  if (!chain.some((link) => link.kind === address.kind && link.key === address.key)) return;
  const path = [...chain, address].map(addressText).join(" → ");
  throw new Failure("internal", `Actors wait for each other: ${path}`);
}
