/** Callers whose answer waits for a later step, by ticket. Memory only: a restart of the actor refuses them. */
import type { Failure } from "../errors/failure.ts";
import type { Envelope } from "./envelope.ts";
import type { Settlement } from "./kind.ts";

export class Tickets {
  #waiting: Map<string, Envelope[]> | undefined;

  /** True while somebody waits who was neither answered nor gave up. */
  get areOpen(): boolean {
    if (this.#waiting === undefined) return false;
    for (const envelopes of this.#waiting.values()) if (envelopes.some(({ settled }) => !settled)) return true;
    return false;
  }

  defer(ticket: string, envelope: Envelope): void {
    this.#waiting ??= new Map();
    const others = (this.#waiting.get(ticket) ?? []).filter(({ settled }) => !settled);
    this.#waiting.set(ticket, [...others, envelope]);
  }

  settle(settlement: Settlement): void {
    const envelopes = this.#waiting?.get(settlement.ticket) ?? [];
    this.#waiting?.delete(settlement.ticket);
    for (const envelope of envelopes) {
      if ("failure" in settlement) envelope.refuse(settlement.failure);
      else envelope.reply(settlement.reply);
    }
  }

  refuseAll(failure: Failure): void {
    for (const envelopes of this.#waiting?.values() ?? []) for (const envelope of envelopes) envelope.refuse(failure);
    this.#waiting = undefined;
  }
}
