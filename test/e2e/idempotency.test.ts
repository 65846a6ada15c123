/** Idempotency-Key over REST, on real servers that are killed and started again. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, type ServerOptions, startServer } from "./server.ts";

const servers: Server[] = [];
/** For cases that need no life and death of their own. */
let server: Server;
beforeAll(async () => {
  server = await start({ settings: { SERVICE_API_KEYS: "a:operator:ka,b:operator:kb" } });
});
afterAll(async () => {
  await Promise.all(servers.splice(0).map((one) => one.kill()));
});

async function start(options: ServerOptions = {}): Promise<Server> {
  const server = await startServer(options);
  servers.push(server);
  return server;
}

const as = (key: string) => ({ authorization: `Bearer ${key}` });
const post = (on: Server, path: string, body: unknown, key?: string, caller = "ka") =>
  on.call("POST", path, body, { ...(key === undefined ? {} : { "idempotency-key": key }), ...as(caller) });

const count = async (on: Server, ref: string): Promise<number> =>
  (await on.call("GET", `/processes?limit=100&ref=${ref}`, undefined, as("ka"))).body.items.length;

describe("a repeated creation under the same key", () => {
  it("gets the first answer and creates nothing more, across a kill and a restart; another body is a conflict on both sides", async () => {
    const before = await start({ settings: { SERVICE_API_KEYS: "a:operator:ka" } });
    const body = { code: "return 1", autorun: false, ref: "r" };
    const other = { ...body, code: "return 2" };
    const first = await post(before, "/processes", body, "k1");
    const again = await post(before, "/processes", body, "k1");
    expect([first.status, again.status, again.body]).toEqual([200, 200, first.body]);
    const replayed = [first, again].map(({ headers }) => headers.get("idempotency-replayed"));
    expect(replayed).toEqual([null, "true"]);
    expect((await post(before, "/processes", other, "k1")).status).toBe(409);
    await before.kill();
    const after = await start({ folder: before.folder, settings: { SERVICE_API_KEYS: "a:operator:ka" } });
    expect((await post(after, "/processes", body, "k1")).body).toEqual(first.body);
    const refused = await post(after, "/processes", other, "k1");
    expect([refused.status, refused.body.code]).toEqual([409, "conflict"]);
    expect(await count(after, "r")).toBe(1);
    expect((await post(after, "/processes", body, "k2")).body).not.toEqual(first.body);
    expect((await post(after, "/processes", body)).body).not.toEqual(first.body);
    expect(await count(after, "r")).toBe(3);
  });

  it("gets it also when the process is deleted meanwhile", async () => {
    const body = { code: "", autorun: false, ref: "deleted" };
    const first = await post(server, "/processes", body, "deleted");
    await server.call("DELETE", `/processes/${first.body.id}`, undefined, as("ka"));
    expect((await post(server, "/processes", body, "deleted")).body).toEqual(first.body);
    expect(await count(server, "deleted")).toBe(0);
  });

  it("100 at once create one, and all hear of it", async () => {
    const body = { code: "return 2", ref: "many" };
    const answers = await Promise.all(Array.from({ length: 100 }, () => post(server, "/processes", body, "many")));
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.body.id}`)).size).toBe(1);
    expect(await count(server, "many")).toBe(1);
  });

  it("after a refusal is tried again", async () => {
    expect((await post(server, "/processes", { code: 5 }, "refused")).status).toBe(400);
    expect((await post(server, "/processes", { code: "ok", autorun: false }, "refused")).status).toBe(200);
  });

  it("is another one under another caller's key and on another route", async () => {
    const body = { code: "", autorun: false };
    const mine = await post(server, "/processes", body, "scoped", "ka");
    const theirs = await post(server, "/processes", body, "scoped", "kb");
    expect([mine.status, theirs.status]).toEqual([200, 200]);
    expect(theirs.body).not.toEqual(mine.body);
    const service = { id: "scoped", adapter: "openapi", definition: minimal };
    expect((await post(server, "/services", service, "scoped")).status).toBe(201);
  });

  it("of a service gets 201 and its id again, where the second would be a conflict", async () => {
    const body = { id: "svc", adapter: "openapi", definition: minimal };
    const first = await post(server, "/services", body, "service");
    const again = await post(server, "/services", body, "service");
    expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
    expect((await post(server, "/services", body, "another")).status).toBe(409);
  });

  it.each([
    ["an empty key", ""],
    ["a key of 256 characters", "k".repeat(256)],
    ["a key beyond ASCII", "k\u00e9"],
  ])("%s is 400", async (_, key) => {
    const answer = await post(server, "/processes", { code: "" }, key);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });
});

const minimal = {
  openapi: "3.0.3",
  info: { title: "minimal", version: "1.0.0" },
  servers: [{ url: "http://127.0.0.1:9" }],
  paths: { "/a": { get: { operationId: "getA", responses: { 200: { description: "ok" } } } } },
};
