/** Messages that reached nobody: a bounded ring with reasons, and counters that are never cut. */
import { deadLettersMax } from "../limits.ts";
import type { Address } from "./kind.ts";

export type DeadLetterReason =
  | "unknown_kind"
  | "parked"
  | "expired"
  | "overloaded"
  | "crashed"
  | "wake_spent"
  | "stopped";

/** Each reason, for whoever shows also those that never happened. */
export const noDeadLetters: Readonly<Record<DeadLetterReason, number>> = {
  unknown_kind: 0,
  parked: 0,
  expired: 0,
  overloaded: 0,
  crashed: 0,
  wake_spent: 0,
  stopped: 0,
};

export interface DeadLetter {
  readonly at: number;
  readonly address: Address;
  readonly reason: DeadLetterReason;
  /** The message's `type`, never its contents: they may hold secrets. */
  readonly messageType: string;
}

export interface DeadLetterCount {
  readonly kind: string;
  readonly reason: DeadLetterReason;
  readonly count: number;
}

export class DeadLetters {
  readonly #ring: DeadLetter[] = [];
  /** By kind, then by reason. */
  readonly #counts = new Map<string, Map<DeadLetterReason, number>>();

  add(at: number, address: Address, reason: DeadLetterReason, message: unknown): void {
    const ofKind = this.#counts.get(address.kind) ?? new Map<DeadLetterReason, number>();
    this.#counts.set(address.kind, ofKind.set(reason, (ofKind.get(reason) ?? 0) + 1));
    this.#ring.push({ at, address, reason, messageType: messageType(message) });
    if (this.#ring.length > deadLettersMax) this.#ring.shift();
  }

  /** Oldest first. */
  list(): readonly DeadLetter[] {
    return [...this.#ring];
  }

  /** By reason. */
  counts(): Readonly<Partial<Record<DeadLetterReason, number>>> {
    const sums: Partial<Record<DeadLetterReason, number>> = {};
    for (const { reason, count } of this.countsByKind()) sums[reason] = (sums[reason] ?? 0) + count;
    return sums;
  }

  countsByKind(): readonly DeadLetterCount[] {
    return [...this.#counts].flatMap(([kind, reasons]) =>
      [...reasons].map(([reason, count]) => ({ kind, reason, count })),
    );
  }
}

/** Never its contents: they may hold secrets. */
export function messageType(message: unknown): string {
  if (typeof message === "object" && message !== null && "type" in message && typeof message.type === "string") {
    return message.type;
  }
  return "unknown";
}
