/** Events of real processes over both faces, over restarts, and what followers cost a run: nothing. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { ProcessEventKind, ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { newFolder, removeFolder, type Server, startServer } from "./server.ts";
import { eventsOf, type ServerSentEvent } from "./server-sent-events.ts";

let server: Server;
let store: PetStore;

beforeAll(async () => {
  server = await startServer();
  store = await startPetStore({ port: 0, apiKey: "key" });
  await server.post("/services", { id: "shop", url: store.documentUrl });
  await server.patch("/services/shop/config", { op: "add", path: "/serverVar_port", value: String(store.port) });
  await server.patch("/services/shop/secrets", { op: "add", path: "/petKey", value: "key" });
  await server.post("/services/shop/enabled", { enabled: true });
});

afterAll(async () => {
  await store.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

/** Follows until the stream ends, or `enough` holds for what came so far. */
async function follow(
  on: Server,
  id: number,
  { after, enough = () => false }: { after?: number; enough?: (events: readonly ServerSentEvent[]) => boolean } = {},
): Promise<ServerSentEvent[]> {
  const leaving = new AbortController();
  const answer = await fetch(`${on.http}/processes/${id}/events`, {
    headers: after === undefined ? {} : { "last-event-id": String(after) },
    signal: leaving.signal,
  });
  if (answer.status === 204) return [];
  const events: ServerSentEvent[] = [];
  for await (const event of eventsOf(answer)) {
    events.push(event);
    if (enough(events)) break;
  }
  leaving.abort();
  return events;
}

const create = async (on: Server, code: string, more = {}): Promise<number> =>
  (await on.post("/processes", { code, ...more })).body.id;

const printed = (events: readonly ServerSentEvent[], stream: string): string =>
  events.map(({ event, data }) => (event === stream ? data.text : "")).join("");

const program = `
  console.log("one");
  const pets = await services.shop.listPets({});
  console.error("two");
  try { await services.shop.getPet({ path: { petId: "none" } }); } catch { console.log("none"); }
  await new Promise((resolve) => setTimeout(resolve, 50));
  output({ pets: pets.body?.length ?? 0 });
  return { done: true };
`;

/** As REST calls them. */
const kindNames: ReadonlyMap<number, string> = new Map(
  Object.entries(ProcessEventKind).map(([name, kind]) => [kind, name.toLowerCase().replace("_", "-")]),
);

describe("the events of a process", () => {
  it("are what it did, in order, the same for whoever comes late, and the rest for whoever comes back", async () => {
    const id = await create(server, program);
    const live = await follow(server, id);
    expect(live.map(({ event, data }) => (data.state === undefined ? event : `${event} ${data.state}`))).toEqual([
      `snapshot ${live[0]?.data.state}`,
      "state queued",
      "state running",
      "stdout",
      "tool-call started",
      "tool-call ok",
      "stderr",
      "tool-call started",
      "tool-call failed",
      "stdout",
      "output",
      "state idle",
    ]);
    expect(printed(live, "stdout")).toBe((await server.get(`/processes/${id}/stdout`)).text);
    expect(printed(live, "stderr")).toBe((await server.get(`/processes/${id}/stderr`)).text);
    expect(live.find(({ event }) => event === "output")?.data.output).toEqual(await server.output(id));
    expect(live.at(-1)?.data.process).toEqual((await server.get(`/processes/${id}`)).body);
    const calls = live.filter(({ event }) => event === "tool-call").map(({ data }) => data);
    expect(calls[1]).toMatchObject({ serviceId: "shop", toolId: "listPets", durationMs: expect.any(Number) });
    expect(calls[3]).toMatchObject({ callId: calls[2].callId, toolId: "getPet", code: expect.any(String) });

    expect((await follow(server, id)).slice(1)).toEqual(live.slice(1));
    for (const [at, { id: after }] of live.entries()) {
      expect(await follow(server, id, { after })).toEqual(live.slice(at + 1));
    }
  });

  it("over gRPC are the same events, and go on after the same numbers", async () => {
    const id = await create(server, program);
    await server.get(`/processes/${id}?wait=30`);
    const rest = await follow(server, id);
    const client = createClient(ProcessService, createGrpcTransport({ baseUrl: `http://${server.grpc}` }));
    const rpc = [];
    for await (const event of client.watchProcess({ id: BigInt(id) })) rpc.push(event);
    expect(rpc.map(({ sequence }) => Number(sequence))).toEqual(rest.map((event) => event.id));
    expect(rpc.map(({ kind }) => kindNames.get(kind))).toEqual(rest.map(({ event }) => event));
    expect(rpc.map(({ text }) => text)).toEqual(rest.map(({ data }) => data.text));
    expect(rpc.map(({ toolCall }) => toolCall?.toolId)).toEqual(rest.map(({ data }) => data.toolId));
    expect(rpc.find(({ output }) => output !== undefined)?.output).toEqual(await server.output(id));
    const after: bigint[] = [];
    for await (const { sequence } of client.watchProcess({ id: BigInt(id), fromSequence: rpc[4]?.sequence ?? 0n })) {
      after.push(sequence);
    }
    expect(after).toEqual(rpc.slice(5).map(({ sequence }) => sequence));
    const ended = [];
    for await (const event of client.watchProcess({ id: BigInt(id), fromSequence: rpc.at(-1)?.sequence ?? 0n })) {
      ended.push(event);
    }
    expect(ended).toEqual([]);
  });

  it("stay within 1 MiB, say so, and what was printed is whole elsewhere", async () => {
    const id = await create(
      server,
      `for (let n = 0; n < 20; n++) console.log(String.fromCharCode(97 + n).repeat(50_000));
      console.error("\\u0001".repeat(300_000)); return "end"`,
    );
    const events = await follow(server, id);
    expect(events.at(-1)?.data.process.exitState).toBe("success");
    expect(events.slice(-3).map(({ event }) => event)).toEqual(["truncated", "output", "state"]);
    expect(JSON.stringify(events).length).toBeLessThan(1.2 * 1024 * 1024);
    const { text } = await server.get(`/processes/${id}/stdout`);
    expect(text.startsWith(printed(events, "stdout"))).toBe(true);
    expect(text.length).toBe(20 * 50_001);
  });

  it("cost the run nothing: one follower leaves, one does not read, and the run ends as ever", async () => {
    const id = await create(
      server,
      `for (let n = 0; n < 40; n++) { console.log("x".repeat(20_000)); await new Promise((r) => setTimeout(r, 5)); } return 1`,
    );
    const unread = await Promise.all(Array.from({ length: 20 }, () => fetch(`${server.http}/processes/${id}/events`)));
    const leaver = await follow(server, id, { enough: (events) => printed(events, "stdout").length > 0 });
    expect(leaver.length).toBeGreaterThan(0);
    const reader = follow(server, id);
    const { body } = await server.get(`/processes/${id}?wait=30`);
    expect(body.exitState).toBe("success");
    expect(printed(await reader, "stdout")).toBe((await server.get(`/processes/${id}/stdout`)).text);
    for (const answer of unread) expect((await answer.text()).length).toBeGreaterThan(800_000);
  });

  it("of a process that is not there are a 404, and of a bad id a 400", async () => {
    expect((await server.get("/processes/999999/events")).body.code).toBe("not_found");
    expect((await server.get("/processes/0/events")).status).toBe(400);
  });
});

describe("after kill -9 and a restart", () => {
  it("a follower goes on where it was: after a finished run exactly, of an interrupted one with its end", async () => {
    const folder = await newFolder();
    const first = await startServer({ folder });
    const finished = await create(first, "console.log('a'); console.error('b'); return { kept: true }");
    const events = await follow(first, finished);
    const interrupted = await create(first, "console.log('begun'); await new Promise((r) => setTimeout(r, 60_000))");
    const seen = await follow(first, interrupted, { enough: (so) => printed(so, "stdout") !== "" });
    const never = await create(first, "console.log('later')", { autorun: false });
    const [before] = await follow(first, never, { enough: (so) => so.length === 1 });
    await first.kill();

    const second = await startServer({ folder });
    try {
      const withoutPid = (all: readonly ServerSentEvent[]) => JSON.stringify(all).replace(/"pid":(\d+|null)/g, "");
      for (const [at, { id: after }] of events.entries()) {
        expect(withoutPid(await follow(second, finished, { after }))).toBe(withoutPid(events.slice(at + 1)));
      }
      const rest = await follow(second, interrupted, { after: seen.at(-1)?.id ?? 0 });
      expect(rest.map(({ data }) => [data.state, data.reason])).toEqual([["idle", "interrupted"]]);
      expect(rest[0]?.id).toBeGreaterThan(seen.at(-1)?.id ?? 0);
      await second.post(`/processes/${never}/signals/run`);
      const later = await follow(second, never, { after: before?.id ?? 0 });
      expect(later.map(({ event }) => event)).toEqual(["state", "state", "stdout", "output", "state"]);
      await second.post(`/processes/${finished}/signals/run`, { force: true });
      const again = await follow(second, finished, { after: events.at(-1)?.id ?? 0 });
      expect(again.map(({ event }) => event)).toEqual(events.slice(1).map(({ event }) => event));
      expect(again[0]?.id).toBeGreaterThan(events.at(-1)?.id ?? 0);
    } finally {
      await second.kill("SIGTERM");
      await removeFolder(folder);
    }
  });
});
