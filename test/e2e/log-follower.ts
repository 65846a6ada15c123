/** Follows GET /logs/stream as a browser would, and reads whole lists. */
import { expect } from "vitest";
import type { Server } from "./server.ts";
import { eventsOf, type ServerSentEvent } from "./server-sent-events.ts";

export interface SeenRecord {
  readonly seq: number;
  readonly level: string;
  readonly event: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

type Headers = Readonly<Record<string, string>>;

export interface Follower {
  readonly seen: SeenRecord[];
  /** Resolves when the stream is over, whoever ended it. */
  readonly over: Promise<void>;
  leave(): Promise<void>;
}

export async function follow(server: Server, query = "", after?: number, headers: Headers = {}): Promise<Follower> {
  const leaving = new AbortController();
  const answer = await fetch(`${server.http}/logs/stream${query}`, {
    headers: {
      ...(after === undefined ? {} : { "last-event-id": String(after) }),
      ...headers,
    },
    signal: leaving.signal,
  });
  const seen: SeenRecord[] = [];
  const over = read(eventsOf(answer), seen).catch(() => undefined);
  return {
    seen,
    over,
    async leave() {
      leaving.abort();
      await over;
    },
  };
}

async function read(events: AsyncIterable<ServerSentEvent>, seen: SeenRecord[]): Promise<void> {
  for await (const { id, data } of events) {
    expect(data.seq).toBe(id);
    seen.push(data);
  }
}

/** Oldest first. */
export async function listAll(server: Server, query = "", headers: Headers = {}): Promise<SeenRecord[]> {
  const records: SeenRecord[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { status, body, text } = await server.call(
      "GET",
      `/logs?limit=100${query}${cursor === "" ? "" : `&cursor=${cursor}`}`,
      undefined,
      headers,
    );
    expect(status, text).toBe(200);
    records.push(...body.items);
    cursor = body.nextCursor;
  }
  return records.reverse();
}
