/** The log of a real server as records: what it printed is what it lists and tells, over restarts, kills, damage and a full house. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "../until.ts";
import { follow, listAll, type SeenRecord } from "./log-follower.ts";
import { newFolder, removeFolder, type Server, startRefused, startServer } from "./server.ts";

const servers: Server[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
  for (const folder of folders.splice(0)) await removeFolder(folder);
});

async function start(folder: string, settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const server = await startServer({ folder, settings: { SERVICE_LOG_LEVEL: "debug", ...settings } });
  servers.push(server);
  return server;
}

async function newHome(): Promise<string> {
  const folder = await newFolder();
  folders.push(folder);
  return folder;
}

const seqs = (records: readonly { readonly seq: number }[]): number[] => records.map(({ seq }) => seq);
const sortedOnce = (numbers: readonly number[]): number[] => [...new Set(numbers)].sort((a, b) => a - b);
/** As they were printed, with the members of `fields` beside the others. */
const printed = (server: Server): SeenRecord[] =>
  server.lines.filter((line) => line.startsWith('{"timestamp"')).map((line) => JSON.parse(line));
const flat = ({ fields, ...rest }: SeenRecord): object => ({ ...rest, ...(fields as object | undefined) });

describe("the log of a server", () => {
  it("has every line that was printed, from the first to the last, also of the start before", async () => {
    const folder = await newHome();
    const first = await start(folder);
    await first.run("return { n: 1 }");
    await first.get("/nothing-here");
    expect(await first.kill("SIGTERM")).toBe(0);
    const second = await start(folder);
    const listed = await listAll(second);
    const before = printed(first);
    expect(before.at(-1)?.event).toBe("stopped");
    expect(before.length).toBeGreaterThan(5);
    expect(listed.slice(0, before.length).map(flat)).toEqual(before);
    expect(seqs(listed)).toEqual(sortedOnce(seqs(listed)));
    expect(listed.slice(before.length).map(({ event }) => event)).toContain("listening");

    await second.kill("SIGTERM");
    writeFileSync(join(folder, "logs", "CURRENT"), "not a manifest");
    const third = await start(folder);
    const afterDamage = await listAll(third);
    expect(afterDamage.map(({ event }) => event)).toContain("log-records-damaged");
    expect(afterDamage[0]?.seq).toBeGreaterThan(listed.at(-1)?.seq as number);
    const logFolders = readdirSync(folder).filter((name) => name.startsWith("logs"));
    expect(logFolders).toEqual(["logs", expect.stringMatching(/^logs\.damaged-/)]);
    expect((await third.run("return 1")).exitState).toBe("success");
  });

  it("is followed over restarts and kills without a gap and without a repeat", async () => {
    const folder = await newHome();
    let server = await start(folder);
    const seen: SeenRecord[] = [];
    const firstSeq = (await listAll(server)).at(-1)?.seq as number;
    let after = firstSeq;
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      const follower = await follow(server, "", after);
      await Promise.all(Array.from({ length: 40 }, (_, n) => server.get(`/processes/${n + 1}`)));
      await until(() => follower.seen.length > 40);
      // Some of these are told, and some go to disk, after the follower has left; some are lost by the kill.
      const leaving = follower.leave();
      await Promise.all(Array.from({ length: 20 }, (_, n) => server.get(`/services/s${n}`)));
      await leaving;
      seen.push(...follower.seen);
      after = seen.at(-1)?.seq as number;
      await server.kill(signal);
      server = await start(folder);
    }
    const last = await follow(server, "", after);
    const listed = (await listAll(server)).filter(({ seq }) => seq > firstSeq);
    await until(() => (last.seen.at(-1)?.seq ?? 0) >= (listed.at(-1)?.seq as number));
    await last.leave();
    const told = seqs([...seen, ...last.seen]);
    expect(told).toEqual(sortedOnce(told));
    const known = new Set(told);
    expect(listed.filter(({ seq }) => !known.has(seq))).toEqual([]);
    // What was written more than a moment before the kill is there.
    expect(listed.length).toBeGreaterThan(60);
  });

  it("whose folder cannot be used does not stop the start, and lists what is in memory", async () => {
    const folder = await newHome();
    writeFileSync(join(folder, "logs"), "not a folder");
    const server = await start(folder);
    const first = await server.get("/logs?event=log-records-not-written");
    expect([first.status, first.body.items.length, first.body.hasMore]).toEqual([200, 1, true]);
    const next = await server.get(`/logs?event=log-records-not-written&cursor=${first.body.nextCursor}`);
    expect([next.status, next.body]).toEqual([503, { error: expect.any(String), code: "unavailable" }]);
    expect((await server.run("return 1")).exitState).toBe("success");
    expect(await server.kill("SIGTERM")).toBe(0);
  });

  it("keeps as many records as it is told, and none on disk when that is 0", async () => {
    const few = await start(await newHome(), { SERVICE_LOG_RETENTION: "10" });
    for (let n = 0; n < 30; n++) await few.get(`/services/s${n}`);
    await until(async () => (await listAll(few)).length < 30);
    const home = await newHome();
    const none = await start(home, { SERVICE_LOG_RETENTION: "0" });
    expect((await listAll(none)).map(({ event }) => event)).toContain("listening");
    expect(await none.kill("SIGTERM")).toBe(0);
    expect(readdirSync(home)).not.toContain("logs");
    const { code, said } = await startRefused({ folder: home, settings: { SERVICE_LOG_RETENTION: "-1" } });
    expect([code, said]).toEqual([78, expect.stringContaining("SERVICE_LOG_RETENTION")]);
  });
});

describe("one server that has keys", () => {
  const agent = "agent-key-1";
  const operator = "operator-key-1";
  const asAgent = { authorization: `Bearer ${agent}` };
  const get = (path: string) => server.call("GET", path, undefined, asAgent);
  let folder: string;
  let server: Server;

  beforeAll(async () => {
    folder = await newFolder();
    const settings = { SERVICE_LOG_LEVEL: "debug", SERVICE_API_KEYS: `a:agent:${agent},o:operator:${operator}` };
    server = await startServer({ folder, settings });
  });

  afterAll(async () => {
    await server.kill("SIGTERM");
    await removeFolder(folder);
  });

  it("shows its log to agents and operators, and to nobody without a key", async () => {
    for (const path of ["/logs", "/logs/stream"]) {
      for (const [key, status] of [
        [agent, 200],
        [operator, 200],
        ["wrong", 401],
        [undefined, 401],
      ] as const) {
        const leaving = new AbortController();
        const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
        const answer = await fetch(server.http + path, { headers, signal: leaving.signal });
        expect([path, key, answer.status]).toEqual([path, key, status]);
        leaving.abort();
      }
    }
    const text = JSON.stringify(await listAll(server, "", asAgent));
    expect(text).toContain('"caller":"a"');
    expect(text).not.toMatch(/agent-key-1|operator-key-1/);
  });

  it("tells a follower only what is new, and in time", async () => {
    await get("/services/before");
    const follower = await follow(server, "?event=http-request", undefined, asAgent);
    await get("/services/after");
    await until(() => follower.seen.length > 0, 5_000);
    expect(follower.seen[0]).toMatchObject({ message: "GET /services/:serviceId 404", level: "debug" });
    await follower.leave();
  });

  it("writes nothing because somebody follows", async () => {
    const followers = await Promise.all([
      follow(server, "", undefined, asAgent),
      follow(server, "", undefined, asAgent),
      follow(server, "", undefined, asAgent),
    ]);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const lines = server.lines.length;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(server.lines.length).toBe(lines);
    for (const follower of followers) await follower.leave();
  });

  it("is left alone by a second server on its folder, which is refused", async () => {
    const refusal = await startRefused({ folder });
    expect(refusal.code).toBe(75);
    expect(refusal.said).not.toContain("log-records");
    expect(readdirSync(folder).filter((name) => name.startsWith("logs"))).toEqual(["logs"]);
    await get("/services/x");
    expect((await listAll(server, "", asAgent)).at(-1)?.event).toBe("http-request");
  });

  it("answers HEAD and refuses other methods", async () => {
    const head = await fetch(`${server.http}/logs`, { method: "HEAD", headers: asAgent });
    const refused = await server.call("DELETE", "/logs", undefined, asAgent);
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, expect.stringMatching(/^GET, HEAD/)]);
  });

  it("says of a flood of refusals whom it refuses, in few lines, and with no key", async () => {
    const wrong = { authorization: "Bearer wrong-canary" };
    const floods = Array.from({ length: 20 }, async () => {
      for (let time = 0; time < 25; time += 1) {
        expect((await server.call("GET", "/processes", undefined, wrong)).status).toBe(401);
        const rpc = `http://${server.grpc}/troupe.v1.ProcessService/ListProcesses`;
        const headers = { "content-type": "application/json", ...wrong };
        const refused = await fetch(rpc, { method: "POST", headers, body: "{}" });
        expect([refused.status, (await refused.text()).includes("unauthenticated")]).toEqual([401, true]);
      }
    });
    const started = Date.now();
    await Promise.all(floods);
    await until(() => printed(server).filter(({ event }) => event === "request-refused").length >= 1_000);
    const lines = printed(server).filter(({ event }) => event === "request-refused");
    const loud = lines.filter(({ level }) => level === "warn") as unknown as { caller: string }[];
    expect(loud.length).toBeGreaterThan(0);
    expect(loud.length).toBeLessThanOrEqual(3 + (Date.now() - started) / 60_000);
    expect(loud.every(({ caller }) => caller === "ip 127.0.0.1")).toBe(true);
    expect(server.lines.join("\n")).not.toContain("wrong-canary");
  });

  it("ends its followers when it ends", async () => {
    const follower = await follow(server, "", undefined, asAgent);
    expect(await server.kill("SIGTERM")).toBe(0);
    await follower.over;
  });
});
