/** Server-sent events as the gateway sends them, over a stream row that does what the test says; and the same row over gRPC. */
import { randomBytes } from "node:crypto";
import net from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Failure } from "../../src/errors/failure.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { eventStreamHeartbeatMs, eventStreamStalledMs } from "../../src/limits.ts";
import type { StreamOperation } from "../../src/operations/operation.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { openTwoFaces, realClock, type TwoFaces, type TwoFacesOptions } from "../control-plane/two-faces.ts";

const secretCause = "database password hunter2";

interface Item {
  readonly sequence: number;
  readonly kind: "stdout";
  readonly text: string;
}

/** What one call of the row saw and how it ended. */
interface Seen {
  readonly id: string;
  readonly lastEventId: string | undefined;
  taken: number;
  aborted: unknown;
  left: boolean;
}

type Source = (seen: Seen, signal: AbortSignal) => AsyncIterable<Item> | null;

function streamOf(sources: Readonly<Record<string, Source>>, role: "agent" | "operator" = "agent") {
  const seen: Seen[] = [];
  const row: StreamOperation<{ id: string; lastEventId?: string | undefined }, Item> = {
    name: "watchProcess",
    summary: "Watch",
    rpcService: "ProcessService",
    route: { path: "/processes/{id}/events", query: ["lastEventId"], resume: "lastEventId" },
    role,
    input: z.object({ id: z.coerce.string(), lastEventId: z.string().optional() }),
    output: z.any(),
    eventOf: ({ sequence, kind, text }) => ({ id: String(sequence), event: kind, data: { text } }),
    async open({ id, lastEventId }, { signal }) {
      const source = sources[id];
      if (source === undefined) throw new Failure("not_found", `There is no process ${id}`);
      const one: Seen = { id, lastEventId, taken: 0, aborted: undefined, left: false };
      seen.push(one);
      signal.addEventListener("abort", () => (one.aborted = signal.reason));
      return source(one, signal);
    },
  };
  return { row: row as unknown as StreamOperation, seen };
}

const item = (sequence: number, text: string): Item => ({ sequence, kind: "stdout", text });

/** Tells the texts and ends. */
const texts = (...all: string[]): Source =>
  async function* (seen) {
    for (const [at, text] of all.entries()) {
      yield item(at + 1, text);
      seen.taken++;
    }
  };

/** One event, then waits until it must end. */
const waiting: Source = async function* (seen, signal) {
  try {
    yield item(1, "first");
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  } finally {
    seen.left = true;
  }
};

/** As much as anybody takes. */
const endless = (text: string): Source =>
  async function* (seen, signal) {
    try {
      for (;;) {
        signal.throwIfAborted();
        yield item(++seen.taken, text);
      }
    } finally {
      seen.left = true;
    }
  };

/** Whoever waits ten seconds or more waits for the test. */
class HeldClock implements Clock {
  readonly now = realClock.now;
  readonly monotonic = realClock.monotonic;
  readonly #held = new Map<number, Set<() => void>>();

  after(delayMs: number, action: () => void): () => void {
    if (delayMs < 10_000) return realClock.after(delayMs, action);
    const held = this.#held.get(delayMs) ?? new Set();
    this.#held.set(delayMs, held.add(action));
    return () => held.delete(action);
  }

  countOf(delayMs: number): number {
    return this.#held.get(delayMs)?.size ?? 0;
  }

  fire(delayMs: number): void {
    const held = this.#held.get(delayMs);
    this.#held.delete(delayMs);
    for (const action of held ?? []) action();
  }
}

let faces: TwoFaces;
afterEach(() => faces.close());

async function open(sources: Readonly<Record<string, Source>>, more: TwoFacesOptions & { role?: "operator" } = {}) {
  const { role, ...options } = more;
  const { row, seen } = streamOf(sources, role);
  faces = await openTwoFaces({ streams: [row], ...options });
  return { seen, url: (id: string, query = "") => `${faces.rest}/processes/${id}/events${query}` };
}

/** A client that reads its headers and then nothing more, until told to. */
async function stalledClient(id: string): Promise<net.Socket> {
  const socket = net.connect(faces.gateway.address.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`GET /processes/${id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}

/** Until nothing changes any more. */
async function atRest(value: () => number): Promise<number> {
  for (let last = -1; ; ) {
    await new Promise((resolve) => setTimeout(resolve, 150));
    if (value() === last) return last;
    last = value();
  }
}

const accessLines = () =>
  faces.lines.filter(({ event }) => event === "http-request").map(({ fields }) => fields.status);

describe("an event stream", () => {
  it("is events of id, name and one line of JSON, whatever the text, and then ends", async () => {
    const { url } = await open({ "1": texts("plain", "two\nlines\r\n\u2028 data: x\n\nid: 9", "ä😀") });
    const answer = await fetch(url("1"));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await answer.text()).toBe(
      [
        'id: 1\nevent: stdout\ndata: {"text":"plain"}\n\n',
        'id: 2\nevent: stdout\ndata: {"text":"two\\nlines\\r\\n\u2028 data: x\\n\\nid: 9"}\n\n',
        'id: 3\nevent: stdout\ndata: {"text":"ä😀"}\n\n',
      ].join(""),
    );
    await expect.poll(accessLines).toEqual([200]);
  });

  it("carries the headers of every other answer", async () => {
    const { url } = await open({ "1": texts("x") }, { rateLimits: "*=7/60s", corsOrigins: ["https://app.example"] });
    const answer = await fetch(url("1"), { headers: { origin: "https://app.example", "x-request-id": "mine" } });
    const { headers } = answer;
    expect(headers.get("x-request-id")).toBe("mine");
    expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual(["7", "6"]);
    expect(headers.get("access-control-allow-origin")).toBe("https://app.example");
    await answer.text();
  });

  it.each([
    [{}, "", undefined],
    [{ "last-event-id": "41" }, "", "41"],
    [{ "last-event-id": "" }, "", undefined],
    [{}, "?lastEventId=7", "7"],
    [{ "last-event-id": "41" }, "?lastEventId=7", "41"],
  ])("resumes after %j%s at %s", async (headers, query, expected) => {
    const { url, seen } = await open({ "1": texts("x") });
    await (await fetch(url("1", query), { headers })).text();
    expect(seen.map(({ lastEventId }) => lastEventId)).toEqual([expected]);
  });

  it("that has nothing more to tell answers 204, which tells browsers not to come back", async () => {
    const { url } = await open({ "1": () => null });
    const answer = await fetch(url("1"));
    expect([answer.status, await answer.text()]).toEqual([204, ""]);
  });

  it("is refused like any other call before the first byte", async () => {
    const keys = "a:agent:ka,o:operator:ko";
    const { url } = await open({ "1": texts("x") }, { keys, role: "operator" });
    const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
    for (const [answer, status, code] of [
      [await fetch(url("9"), as("ko")), 404, "not_found"],
      [await fetch(url("1")), 401, "unauthenticated"],
      [await fetch(url("1"), as("ka")), 403, "forbidden"],
      [await fetch(url("1", "?lastEventId=1&lastEventId=2"), as("ko")), 400, "invalid_request"],
      [await fetch(url("1"), { ...as("ko"), method: "POST" }), 405, "method_not_allowed"],
    ] as const) {
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([status, code]);
    }
    const head = await fetch(url("1"), { ...as("ko"), method: "HEAD" });
    expect([head.status, head.headers.get("allow")]).toEqual([405, "GET, OPTIONS"]);
  });

  it("that fails in its course says so in an event, and of a crash nothing but that it was one", async () => {
    const { url } = await open({
      "1": async function* () {
        yield item(1, "x");
        throw new Failure("unavailable", "The record cannot be read");
      },
      "2": async function* () {
        yield item(1, "x");
        throw new TypeError(secretCause);
      },
      "3": () => {
        throw new TypeError(secretCause);
      },
    });
    const told = (await (await fetch(url("1"))).text()).split("\n\n");
    expect(told[1]).toBe('event: error\ndata: {"error":"The record cannot be read","code":"unavailable"}');
    const crashed = await (await fetch(url("2"))).text();
    expect(crashed).toContain('"code":"internal"');
    const atOnce = await fetch(url("3"));
    expect(atOnce.status).toBe(500);
    expect(crashed + (await atOnce.text())).not.toContain(secretCause);
    expect(faces.lines.filter(({ event }) => event === "operation-crashed")).toHaveLength(2);
  });

  it("tells its source when the follower leaves", async () => {
    const { url, seen } = await open({ "1": waiting, "2": endless("x".repeat(1_000)) });
    for (const id of ["1", "2"]) {
      const leaving = new AbortController();
      const answer = await fetch(url(id), { signal: leaving.signal });
      await answer.body?.getReader().read();
      leaving.abort();
      await expect.poll(() => seen.at(-1)).toMatchObject({ id, left: true, aborted: { kind: "cancelled" } });
    }
    await expect.poll(accessLines).toEqual([499, 499]);
  });

  it("fetches nothing for a follower that does not read, serves others meanwhile, and goes on when it reads", async () => {
    const { seen, url } = await open({ "1": endless("x".repeat(64 * 1024)), "2": texts("y") });
    const socket = await stalledClient("1");
    const taken = await atRest(() => seen[0]?.taken ?? 0);
    expect(taken).toBeLessThan(1_000);
    expect(await (await fetch(url("2"))).text()).toContain('"y"');
    expect(seen[0]?.taken).toBe(taken);
    socket.resume();
    await expect.poll(() => seen[0]?.taken).toBeGreaterThan(taken + 50);
    socket.destroy();
    await expect.poll(() => seen[0]?.left).toBe(true);
  });

  it("drops a follower that takes nothing for too long", async () => {
    const clock = new HeldClock();
    const { seen } = await open({ "1": endless("x".repeat(64 * 1024)) }, { clock });
    const socket = await stalledClient("1");
    await expect.poll(() => clock.countOf(eventStreamStalledMs)).toBe(1);
    await atRest(() => seen[0]?.taken ?? 0);
    clock.fire(eventStreamStalledMs);
    await expect.poll(() => seen[0]?.left).toBe(true);
    await expect.poll(accessLines).toEqual([499]);
    expect(clock.countOf(eventStreamHeartbeatMs)).toBe(0);
    socket.destroy();
  });

  it("beats while nothing happens, again and again, and no longer than it lasts", async () => {
    const clock = new HeldClock();
    const { url } = await open({ "1": waiting }, { clock });
    const leaving = new AbortController();
    const answer = await fetch(url("1"), { signal: leaving.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let received = "";
    const until = async (end: string): Promise<void> => {
      while (!received.endsWith(end)) received += (await reader?.read())?.value ?? "";
    };
    await until('{"text":"first"}\n\n');
    for (const count of [1, 2, 3]) {
      expect(clock.countOf(eventStreamHeartbeatMs)).toBe(1);
      clock.fire(eventStreamHeartbeatMs);
      await until(": still here\n\n".repeat(count));
    }
    expect(received.split(": still here").length).toBe(4);
    leaving.abort();
    await expect.poll(() => clock.countOf(eventStreamHeartbeatMs)).toBe(0);
  });

  it("ends with an event when the server closes, which does not wait for it", async () => {
    const { url, seen } = await open({ "1": waiting });
    const answers = await Promise.all([fetch(url("1")), fetch(url("1"))]);
    await expect.poll(() => seen.length).toBe(2);
    const started = performance.now();
    await faces.gateway.close(20_000);
    expect(performance.now() - started).toBeLessThan(10_000);
    for (const answer of answers) {
      expect(await answer.text()).toMatch(
        /event: error\ndata: {"error":"The server is shutting down","code":"unavailable"}\n\n$/,
      );
    }
  });

  it("beyond the most that may be open is refused until one has ended", async () => {
    const { url, seen } = await open({ "1": waiting }, { streamsMax: 2 });
    const leaving = new AbortController();
    await fetch(url("1"), { signal: leaving.signal });
    await fetch(url("1"));
    const refused = await fetch(url("1"));
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: "rate_limit_exceeded", retryAfter: expect.any(Number) });
    expect(refused.headers.get("x-ratelimit-limit")).toBe("2");
    leaving.abort();
    await expect.poll(() => seen[0]?.left).toBe(true);
    await expect.poll(async () => (await fetch(url("1"))).status).toBe(200);
  });
});

describe("the same row over gRPC", () => {
  const client = () => createClient(ProcessService, createGrpcTransport({ baseUrl: faces.rpc }));

  async function outcome(stream: AsyncIterable<{ text?: string | undefined }>) {
    const told: (string | undefined)[] = [];
    try {
      for await (const { text } of stream) told.push(text);
      return { told, error: undefined };
    } catch (error) {
      return { told, error: ConnectError.from(error) };
    }
  }

  it("tells the same, ends, and fails with the same words before and in its course", async () => {
    await open({
      "1": texts("a", "b"),
      "2": () => null,
      "3": async function* () {
        yield item(1, "x");
        throw new Failure("unavailable", "The record cannot be read");
      },
    });
    expect(await outcome(client().watchProcess({ id: 1n }))).toEqual({ told: ["a", "b"], error: undefined });
    expect(await outcome(client().watchProcess({ id: 2n }))).toEqual({ told: [], error: undefined });
    const broken = await outcome(client().watchProcess({ id: 3n }));
    expect([broken.told, broken.error?.rawMessage]).toEqual([["x"], "The record cannot be read"]);
    const missing = await outcome(client().watchProcess({ id: 9n }));
    expect([missing.told, missing.error?.code]).toEqual([[], Code.NotFound]);
  });

  it("tells its source when the caller leaves or its time is over, and holds nothing for one that does not read", async () => {
    // Random, because this face compresses.
    const { seen } = await open({ "1": waiting, "2": endless(randomBytes(48 * 1024).toString("base64")) });
    const leaving = new AbortController();
    const left = outcome(client().watchProcess({ id: 1n }, { signal: leaving.signal }));
    await expect.poll(() => seen.length).toBe(1);
    leaving.abort();
    await left;
    await expect.poll(() => seen[0]).toMatchObject({ left: true, aborted: { kind: "cancelled" } });
    expect((await outcome(client().watchProcess({ id: 1n }, { timeoutMs: 300 }))).error?.code).toBe(
      Code.DeadlineExceeded,
    );
    await expect.poll(() => seen[1]?.left).toBe(true);

    const slow = new AbortController();
    const stream = client().watchProcess({ id: 2n }, { signal: slow.signal })[Symbol.asyncIterator]();
    await stream.next();
    expect(await atRest(() => seen[2]?.taken ?? 0)).toBeLessThan(1_000);
    slow.abort();
    await stream.next().catch(() => undefined);
    await expect.poll(() => seen[2]?.left).toBe(true);
  });

  it("ends when the server closes, which does not wait for it, and has the same bound", async () => {
    const { seen } = await open({ "1": waiting }, { streamsMax: 1 });
    const followed = outcome(client().watchProcess({ id: 1n }));
    await expect.poll(() => seen.length).toBe(1);
    const refused = await outcome(client().watchProcess({ id: 1n }));
    expect(refused.error?.code).toBe(Code.ResourceExhausted);
    expect(refused.error?.findDetails(ErrorInfoSchema)[0]?.reason).toBe("overloaded");
    const started = performance.now();
    await faces.controlPlane.close(20_000);
    expect(performance.now() - started).toBeLessThan(10_000);
    const { told, error } = await followed;
    expect([told, error?.code]).toEqual([["first"], Code.Unavailable]);
  });
});
