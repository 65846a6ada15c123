/** Log records through either face: the same filters find the same records, and both tell the same ones as they are written. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LogService } from "../../src/gen/troupe/v1/log_service_pb.ts";
import { type ForeignClient, openForeignClient } from "../e2e/foreign-client.ts";
import { follow, type SeenRecord } from "../e2e/log-follower.ts";
import { removeFolder, type Server, startServer } from "../e2e/server.ts";

let server: Server;
let client: ForeignClient;
/** Between the requests made before and after it. */
let between: string;
/** Nothing of later is among what the filters find. */
let end: string;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

beforeAll(async () => {
  server = await startServer({ settings: { SERVICE_LOG_LEVEL: "debug" } });
  client = await openForeignClient(server.grpc);
  await server.call("GET", "/services/one", undefined, { "x-request-id": "first" });
  await server.call("GET", "/services/one", undefined, { "x-request-id": "again" });
  await pause();
  between = new Date().toISOString();
  await pause();
  await server.call("GET", "/modules/Two", undefined, { "x-request-id": "again" });
  await server.post("/services", { id: "odd", url: "http://10.0.0.1/" });
  await pause();
  end = new Date().toISOString();
  await pause();
});

afterAll(async () => {
  client.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

interface Listed {
  readonly items: readonly SeenRecord[];
  readonly nextCursor?: string | null;
  readonly hasMore: boolean;
}

const enumOf = (name: string, value: unknown): unknown =>
  name.startsWith("level") ? `LOG_LEVEL_${String(value).toUpperCase()}` : value;

async function byRest(filter: Readonly<Record<string, string | number>>): Promise<Listed> {
  const query = new URLSearchParams(
    Object.entries(filter).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const { status, body, text } = await server.get(`/logs?${query}`);
  expect(status, text).toBe(200);
  return body;
}

async function byRpc(filter: Readonly<Record<string, string | number>>): Promise<Listed> {
  const request = Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, enumOf(name, value)]));
  const answer = (await client.call("LogService", "ListLogs", request as never)) as unknown as Listed;
  // proto3 JSON has 64-bit integers as text, and enumerations by their names.
  const items = answer.items.map((item) => ({
    ...item,
    seq: Number(item.seq),
    level: item.level.replace("LOG_LEVEL_", "").toLowerCase(),
    timestamp: new Date(String(item.timestamp)).toISOString(),
  }));
  return { ...answer, items };
}

describe("a filter finds the same records through both faces: ", () => {
  it.each<[string, () => Record<string, string | number>, (records: readonly SeenRecord[]) => void]>([
    ["nothing but a time", () => ({}), (all) => expect(all.length).toBeGreaterThan(5)],
    ["a level", () => ({ level: "debug" }), (all) => expect(all.length).toBeGreaterThan(2)],
    [
      "a least level",
      () => ({ levelMin: "info" }),
      (all) => expect(all.map(({ level }) => level)).not.toContain("debug"),
    ],
    ["an event", () => ({ event: "http-request" }), (all) => expect(all.length).toBe(4)],
    ["text", () => ({ query: "GET /SERVICES" }), (all) => expect(all.length).toBe(2)],
    ["a request", () => ({ requestId: "again" }), (all) => expect(all.length).toBe(2)],
    ["a service without records", () => ({ serviceId: "nothing" }), (all) => expect(all).toEqual([])],
    ["a process without records", () => ({ processId: 12 }), (all) => expect(all).toEqual([])],
    ["a module", () => ({ moduleId: "nothing" }), (all) => expect(all).toEqual([])],
    ["a registry", () => ({ registryId: "nothing" }), (all) => expect(all).toEqual([])],
    [
      "what came later",
      () => ({ from: between, requestId: "again" }),
      (all) => expect(all.map(({ message }) => message)).toEqual(["GET /modules/:moduleId 404"]),
    ],
    [
      "what came earlier",
      () => ({ to: between, requestId: "again" }),
      (all) => expect(all.map(({ message }) => message)).toEqual(["GET /services/:serviceId 404"]),
    ],
    [
      "several at once",
      () => ({ event: "http-request", level: "debug", requestId: "first" }),
      (all) => expect(all.length).toBe(1),
    ],
  ])("%s", async (_, filter, check) => {
    const asked = { to: end, limit: 100, ...filter() };
    const rest = await byRest(asked);
    check(rest.items);
    expect((await byRpc(asked)).items).toEqual(rest.items);
  });

  it("page by page", async () => {
    const all = await byRest({ to: end, limit: 100 });
    for (const ask of [byRest, byRpc]) {
      const found: SeenRecord[] = [];
      let cursor: string | null | undefined;
      while (cursor !== null) {
        const page: Listed = await ask({ to: end, limit: 2, ...(cursor === undefined ? {} : { cursor }) });
        expect(page.items.length).toBeLessThanOrEqual(2);
        expect(page.hasMore).toBe(typeof page.nextCursor === "string");
        found.push(...page.items);
        cursor = page.nextCursor ?? null;
      }
      expect(found).toEqual(all.items);
    }
  });
});

it("both faces tell the same records, from where a follower left", async () => {
  const after = (await byRest({ to: between, requestId: "first" })).items[0]?.seq as number;
  const logs = createClient(LogService, createGrpcTransport({ baseUrl: `http://${server.grpc}` }));
  const leaving = new AbortController();
  const overRpc: number[] = [];
  const watching = (async () => {
    for await (const { record } of logs.watchLogs(
      { fromSequence: BigInt(after), event: "http-request" },
      { signal: leaving.signal },
    )) {
      overRpc.push(Number(record?.seq));
    }
  })().catch(() => undefined);
  const overRest = await follow(server, "?event=http-request", after);
  await server.get("/services/live");
  const enough = (seen: readonly unknown[]): boolean => seen.length >= 4;
  for (const limit = Date.now() + 10_000; !(enough(overRpc) && enough(overRest.seen)) && Date.now() < limit; )
    await pause();
  leaving.abort();
  await watching;
  await overRest.leave();
  const told = overRest.seen.map(({ seq }) => seq);
  expect(told.length).toBeGreaterThanOrEqual(4);
  const both = Math.min(told.length, overRpc.length);
  expect(overRpc.slice(0, both)).toEqual(told.slice(0, both));
  const listed = (await byRest({ event: "http-request", limit: 100 })).items.map(({ seq }) => seq).reverse();
  const first = listed.indexOf(told[0] as number);
  expect(listed[first - 1]).toBe(after);
  expect(told).toEqual(listed.slice(first, first + told.length));
});
