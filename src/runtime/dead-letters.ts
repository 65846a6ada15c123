/** Messages that reached nobody: a bounded ring with reasons, and counters that are never cut. */
import { deadLettersMax } from "../limits.ts";
import { type Address, addressText } from "./kind.ts";

export type DeadLetterReason =
  | "unknown_kind"
  | "parked"
  | "expired"
  | "overloaded"
  | "crashed"
  | "wake_spent"
  | "stopped";

export interface DeadLetter {
  readonly at: number;
  readonly address: string;
  readonly reason: DeadLetterReason;
  /** The message's `type`, never its contents: they may hold secrets. */
  readonly messageType: string;
}

export class DeadLetters {
  readonly #ring: DeadLetter[] = [];
  readonly #counts = new Map<DeadLetterReason, number>();

  add(at: number, address: Address, reason: DeadLetterReason, message: unknown): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#ring.push({ at, address: addressText(address), reason, messageType: messageType(message) });
    if (this.#ring.length > deadLettersMax) this.#ring.shift();
  }

  list(): readonly DeadLetter[] {
    return [...this.#ring];
  }

  counts(): Readonly<Partial<Record<DeadLetterReason, number>>> {
    return Object.fromEntries(this.#counts);
  }
}

/** Never its contents: they may hold secrets. */
export function messageType(message: unknown): string {
  if (typeof message === "object" && message !== null && "type" in message && typeof message.type === "string") {
    return message.type;
  }
  return "unknown";
}
