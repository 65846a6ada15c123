/** The log of a real server as records: what it printed is what it lists and tells, over restarts, kills, damage and a full house. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
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

async function until(what: string, isSo: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (const end = Date.now() + ms; !(await isSo()); ) {
    if (Date.now() > end) throw new Error(`Waited ${ms} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const seqs = (records: readonly { readonly seq: number }[]): number[] => records.map(({ seq }) => seq);
const sortedOnce = (numbers: readonly number[]): number[] => [...new Set(numbers)].sort((a, b) => a - b);
/** As they were printed, with the members of `fields` beside the others. */
const printed = (server: Server): SeenRecord[] =>
  server.lines.filter((line) => line.startsWith('{"timestamp"')).map((line) => JSON.parse(line));
const flat = ({ fields, ...rest }: SeenRecord): object => ({ ...rest, ...(fields as object | undefined) });

describe("the log of a server", () => {
  it("has every line that was printed, in order, also from before the last start and from its very end", async () => {
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
  });

  it("is followed over restarts and kills without a gap and without a repeat", { timeout: 60_000 }, async () => {
    const folder = await newHome();
    let server = await start(folder);
    const seen: SeenRecord[] = [];
    const firstSeq = (await listAll(server)).at(-1)?.seq as number;
    let after = firstSeq;
    for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
      const follower = await follow(server, "", after);
      await Promise.all(Array.from({ length: 40 }, (_, n) => server.get(`/processes/${n + 1}`)));
      await until("events", () => follower.seen.length > 40);
      // Some of these go to disk after the follower has left.
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
    await until("the rest", () => (last.seen.at(-1)?.seq ?? 0) >= (listed.at(-1)?.seq as number));
    await last.leave();
    seen.push(...last.seen);
    const told = seqs(seen);
    expect(told).toEqual(sortedOnce(told));
    const known = new Set(told);
    expect(listed.filter(({ seq }) => !known.has(seq))).toEqual([]);
    expect(listed.length).toBeGreaterThan(120);
  });

  it("loses at most its last moment by kill -9", async () => {
    const folder = await newHome();
    const first = await start(folder);
    await first.get("/services/early");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await first.get("/services/late");
    await first.kill("SIGKILL");
    const second = await start(folder);
    const kept = printed(first).filter(({ event }) => event !== "http-request").length;
    const listed = await listAll(second, `&to=${printed(first).at(-1)?.timestamp}`);
    expect(listed.length).toBeGreaterThan(kept);
    expect(seqs(await listAll(second)).every((seq, at, all) => at === 0 || seq > (all[at - 1] as number))).toBe(true);
  });

  it("tells a follower only what is new, in time, and ends with the server", async () => {
    const server = await start(await newHome());
    await server.get("/services/before");
    const follower = await follow(server, "?event=http-request");
    await server.get("/services/after");
    await until("the event", () => follower.seen.length > 0, 5_000);
    expect(follower.seen[0]).toMatchObject({ message: "GET /services/:serviceId 404", level: "debug" });
    await server.kill("SIGTERM");
    await follower.over;
  });

  it("is not fed by those who read it", async () => {
    const server = await start(await newHome());
    const followers = await Promise.all([follow(server), follow(server), follow(server)]);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const lines = server.lines.length;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(server.lines.length).toBe(lines);
    for (const follower of followers) await follower.leave();
  });

  it("whose folder is damaged starts anew, keeps the damaged one aside, and says so", async () => {
    const folder = await newHome();
    const first = await start(folder);
    const { seq } = (await listAll(first)).at(-1) as SeenRecord;
    await first.kill("SIGTERM");
    writeFileSync(join(folder, "logs", "CURRENT"), "not a manifest");
    const second = await start(folder);
    const listed = await listAll(second);
    expect(listed.map(({ event }) => event)).toContain("log-records-damaged");
    expect(listed[0]?.seq).toBeGreaterThan(seq);
    expect(readdirSync(folder).filter((name) => name.startsWith("logs"))).toEqual([
      "logs",
      expect.stringMatching(/^logs\.damaged-/),
    ]);
    expect((await second.run("return 1")).exitState).toBe("success");
  });

  it("whose folder cannot be used does not stop the start, and lists what is in memory", async () => {
    const folder = await newHome();
    writeFileSync(join(folder, "logs"), "not a folder");
    const server = await start(folder);
    const { status, body } = await server.get("/logs?event=log-records-not-written");
    expect([status, body.items.length]).toEqual([200, 1]);
    expect((await server.run("return 1")).exitState).toBe("success");
    expect(await server.kill("SIGTERM")).toBe(0);
  });

  it("is left alone by a second server on the same folder, which is refused", async () => {
    const folder = await newHome();
    const server = await start(folder);
    const refusal = await startRefused({ folder });
    expect(refusal.code).toBe(75);
    expect(refusal.said).not.toContain("log-records");
    expect(readdirSync(folder).filter((name) => name.startsWith("logs"))).toEqual(["logs"]);
    await server.get("/services/x");
    expect((await listAll(server)).at(-1)?.event).toBe("http-request");
  });

  it("keeps as many records as it is told, and none on disk when that is 0", async () => {
    const folder = await newHome();
    const few = await start(folder, { SERVICE_LOG_RETENTION: "10" });
    for (let n = 0; n < 30; n++) await few.get(`/services/s${n}`);
    await until("the oldest to go", async () => (await listAll(few)).length < 30);
    await few.kill("SIGTERM");
    const none = await newHome();
    const server = await start(none, { SERVICE_LOG_RETENTION: "0" });
    expect((await listAll(server)).map(({ event }) => event)).toContain("listening");
    await server.kill("SIGTERM");
    expect(readdirSync(none)).not.toContain("logs");
    const { code, said } = await startRefused({ folder: none, settings: { SERVICE_LOG_RETENTION: "-1" } });
    expect([code, said]).toEqual([78, expect.stringContaining("SERVICE_LOG_RETENTION")]);
  });

  it("is read by agents, and by nobody without a key", async () => {
    const keys = { SERVICE_API_KEYS: "a:agent:agent-key-1,o:operator:operator-key-1" };
    const server = await start(await newHome(), keys);
    for (const path of ["/logs", "/logs/stream"]) {
      for (const [key, status] of [
        ["agent-key-1", 200],
        ["operator-key-1", 200],
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
    const text = JSON.stringify(
      await fetch(`${server.http}/logs?limit=100`, { headers: { authorization: "Bearer agent-key-1" } }).then(
        (answer) => answer.json(),
      ),
    );
    expect(text).toContain('"caller":"a"');
    expect(text).not.toMatch(/agent-key-1|operator-key-1/);
  });

  it("answers HEAD and refuses other methods", async () => {
    const server = await start(await newHome());
    expect((await fetch(`${server.http}/logs`, { method: "HEAD" })).status).toBe(200);
    const refused = await server.call("DELETE", "/logs");
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, expect.stringContaining("GET")]);
  });
});
