/**
 * Streams as server-sent events (WHATWG HTML, 9.2): the refusals of any other route before the first byte, then events until there is
 * nothing left to tell, the follower leaves, or the server closes.
 *
 * 1. A follower that does not read holds nobody up: nothing is fetched for it until it has, and it is dropped after a while.
 * 2. A stream that has ended for good answers 204, which tells browsers not to come back.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { Failure } from "../errors/failure.ts";
import { eventStreamHeartbeatMs, eventStreamStalledMs } from "../limits.ts";
import type { StreamEvent } from "../operations/operation.ts";
import type { Clock } from "../ports/clock.ts";
import { failureBody } from "./answer.ts";

export interface EventSource<Item> {
  readonly items: AsyncIterable<Item>;
  readonly eventOf: (item: Item) => StreamEvent;
  /** What a crash while iterating becomes. */
  readonly failureOf: (error: unknown) => Failure;
  readonly clock: Clock;
}

/** Resolves when the stream is over; false when its follower left before that, or was dropped. */
export async function sendEvents<Item>(reply: FastifyReply, source: EventSource<Item>): Promise<boolean> {
  const { raw } = reply;
  const headers = { ...reply.getHeaders(), ...eventStreamHeaders };
  reply.hijack();
  raw.writeHead(200, headers as Record<string, string>);
  raw.flushHeaders();
  const stopBeating = beat(raw, source.clock);
  try {
    for await (const item of source.items) {
      if (raw.destroyed) break;
      if (!raw.write(textOf(source.eventOf(item)))) await drained(raw, source.clock);
    }
  } catch (error) {
    const failure = source.failureOf(error);
    if (failure.kind === "cancelled") return false;
    raw.write(`event: error\ndata: ${JSON.stringify(failureBody(failure))}\n\n`);
  } finally {
    stopBeating();
    raw.end();
  }
  return !raw.destroyed;
}

/** Nothing is added for a follower that does not read. */
function beat(raw: ServerResponse, clock: Clock): () => void {
  const again = (): (() => void) =>
    clock.after(eventStreamHeartbeatMs, () => {
      if (!raw.writableNeedDrain) raw.write(": still here\n\n");
      cancel = again();
    });
  let cancel = again();
  return () => cancel();
}

/** Proxies are asked not to hold events back. */
const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  // A connection that stays open after its stream would hold up a server that closes.
  connection: "close",
};

function textOf({ id, event, data }: StreamEvent): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Rejects with Failure cancelled when the follower leaves or takes nothing for too long. */
async function drained(raw: ServerResponse, clock: Clock): Promise<void> {
  const waiting = new AbortController();
  const giveUp = clock.after(eventStreamStalledMs, () => raw.destroy());
  try {
    const closed = once(raw, "close", { signal: waiting.signal }).then(() => {
      throw new Failure("cancelled", "The follower went away");
    });
    await Promise.race([once(raw, "drain", { signal: waiting.signal }), closed]);
  } finally {
    giveUp();
    waiting.abort();
  }
}
