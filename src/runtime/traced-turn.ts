/** The turn of an actor that changes its record, as a span of the trace its message came from. Messages from nowhere make none. */
import type { Tracing } from "../ports/tracing.ts";
import { messageType } from "./dead-letters.ts";
import type { Envelope } from "./envelope.ts";
import type { Address } from "./kind.ts";

/** `persist` answers with what went wrong. Effects that it performs are within the span as well. */
export async function traceTurn(
  tracing: Tracing,
  address: Address,
  envelope: Envelope,
  persist: () => Promise<string | undefined>,
): Promise<void> {
  const { place } = envelope;
  if (place === undefined) {
    await tracing.within(undefined, persist);
    return;
  }
  const attributes = {
    "troupe.actor.kind": address.kind,
    "troupe.actor.key": address.key,
    "troupe.message.type": messageType(envelope.message),
  };
  const span = tracing.start(`turn ${address.kind}`, "internal", attributes, place);
  span.end(await tracing.within(span.place, persist));
}
