/**
 * kill -9 at random moments during a load of creates, runs and patches over both faces. After each start: every acknowledged
 * process is there with what was acknowledged, none reads running or terminating, ids have only grown, and no child of the dead
 * server is left. TROUPE_KILL9_CYCLES sets the number of cycles (3 here; the long script runs 500).
 */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { type ForeignClient, openForeignClient } from "../foreign-client.ts";
import { newFolder, removeFolder, type Server, startServer } from "../server.ts";

const cycles = Number(process.env.TROUPE_KILL9_CYCLES ?? 3);
const writers = 16;
/** The long script looks at every process of every cycle; here a sample of the older ones bounds the time. */
const olderLookedAt = 200;

interface Acknowledged {
  readonly id: number;
  readonly ref: string;
  readonly autorun: boolean;
  /** A terminal state somebody was told. */
  exitState?: string;
}

/** Each acknowledged patch sets one more of them. */
const secretNames = Array.from({ length: 100 }, (_, number) => `secret${number}`);

const folder = await newFolder();
afterAll(() => removeFolder(folder));

describe(`kill -9, ${cycles} cycles`, () => {
  const acknowledged = new Map<number, Acknowledged>();
  const patched = new Set<string>();
  let highest = 0;
  let server: Server | undefined;

  afterAll(() => server?.kill());

  it("loses nothing that was acknowledged and leaves nothing running", { timeout: cycles * 30_000 }, async () => {
    for (let cycle = 0; cycle < cycles; cycle++) {
      server = await startServer({ folder, settings: { SERVICE_PROCESS_CONCURRENCY: "4" } });
      await lookAtAll(server, acknowledged, patched);
      if (cycle === 0) await installService(server);
      const client = await openForeignClient(server.grpc);
      let alive = true;
      const load = Array.from({ length: writers }, (_, writer) =>
        write({ server: server as Server, client, writer, cycle, acknowledged, patched, isAlive: () => alive }),
      );
      // Counted from the first acknowledgements, so that a slow machine has as much to lose as a fast one.
      const before = acknowledged.size;
      await until(() => acknowledged.size >= before + 10, 30_000);
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 350));
      const children = childrenOf(server.child.pid ?? 0);
      await server.kill();
      alive = false;
      await Promise.all(load);
      client.close();
      await gone(children);
      const top = Math.max(...acknowledged.keys());
      expect(top).toBeGreaterThan(highest);
      highest = top;
    }
    server = await startServer({ folder });
    await lookAtAll(server, acknowledged, patched, Number.POSITIVE_INFINITY);
    const next = await server.post("/processes", { code: "", autorun: false });
    expect(next.body.id).toBeGreaterThan(highest);
    console.info(
      `kill -9: ${cycles} cycles, ${acknowledged.size} processes and ${patched.size} patches acknowledged, 0 lost`,
    );
    expect(acknowledged.size).toBeGreaterThan(cycles * 5);
  });
});

interface Writer {
  readonly server: Server;
  readonly client: ForeignClient;
  readonly writer: number;
  readonly cycle: number;
  readonly acknowledged: Map<number, Acknowledged>;
  readonly patched: Set<string>;
  readonly isAlive: () => boolean;
}

/** Writes until the server is gone; remembers only what was acknowledged. */
async function write({ server, client, writer, cycle, acknowledged, patched, isAlive }: Writer): Promise<void> {
  for (let turn = 0; isAlive(); turn++) {
    const ref = `c${cycle}w${writer}t${turn}`;
    const autorun = turn % 3 === 0;
    // Alive when the server dies, without taking the processor from it.
    const code = turn % 6 === 0 ? "await new Promise((resolve) => setTimeout(resolve, 60000))" : "return 1";
    try {
      if (writer % 4 === 3) {
        const secret = secretNames[patched.size % secretNames.length] as string;
        const { status } = await server.patch("/services/target/secrets", {
          op: "add",
          path: `/${secret}`,
          value: ref,
        });
        if (status === 200) patched.add(`/${secret}`);
        continue;
      }
      if (writer % 4 === 2) {
        const answer = (await client.call("ProcessService", "CreateProcess", { code, ref, autorun })) as { id: string };
        acknowledged.set(Number(answer.id), { id: Number(answer.id), ref, autorun });
        continue;
      }
      const created = await server.post("/processes", { code, ref, autorun });
      if (created.status !== 200) continue;
      const entry: Acknowledged = { id: created.body.id, ref, autorun };
      acknowledged.set(entry.id, entry);
      const seen = await server.get(`/processes/${entry.id}`);
      if (seen.status === 200 && seen.body.exitState !== null) entry.exitState = seen.body.exitState;
    } catch {
      // The server is gone, or was while this was under way: nothing was acknowledged.
    }
  }
}

async function lookAtAll(
  server: Server,
  acknowledged: ReadonlyMap<number, Acknowledged>,
  patched: ReadonlySet<string>,
  most = olderLookedAt,
): Promise<void> {
  const entries = [...acknowledged.values()];
  const wanted = entries.length <= most ? entries : [...entries.slice(-most / 2), ...sample(entries, most / 2)];
  for (let start = 0; start < wanted.length; start += 32) {
    await Promise.all(
      wanted.slice(start, start + 32).map(async (entry) => {
        const { status, body } = await server.get(`/processes/${entry.id}`);
        expect([entry.id, status, body.ref]).toEqual([entry.id, 200, entry.ref]);
        if (entry.exitState !== undefined) expect(body.exitState).toBe(entry.exitState);
        if (!entry.autorun) expect(body).toMatchObject({ state: "idle", exitState: null });
        // Running now means started by this boot: queued ones were queued again.
        if (body.state === "idle" && body.exitState === "failed") expect(body.error).toContain("restarted");
        expect((await server.get(`/processes/${entry.id}/code`)).status).toBe(200);
      }),
    );
  }
  if (patched.size > 0) {
    const { present } = (await server.get("/services/target/secrets")).body;
    expect(present).toEqual(expect.arrayContaining([...patched]));
  }
}

function sample<T>(items: readonly T[], count: number): T[] {
  return Array.from({ length: count }, () => items[Math.floor(Math.random() * items.length)] as T);
}

async function installService(server: Server): Promise<void> {
  const definition = {
    openapi: "3.1.0",
    info: { title: "target", version: "1" },
    servers: [{ url: "http://127.0.0.1:9" }],
    paths: {},
    components: {
      securitySchemes: Object.fromEntries(secretNames.map((name) => [name, { type: "apiKey", in: "header", name }])),
    },
  };
  expect((await server.post("/services", { id: "target", definition })).status).toBe(201);
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^[0-9]+$/.test(entry)) return [];
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === String(pid) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}

async function gone(children: readonly number[]): Promise<void> {
  const alive = (pid: number): boolean => {
    try {
      const state = readFileSync(`/proc/${pid}/stat`, "utf8");
      return state.slice(state.lastIndexOf(")") + 2)[0] !== "Z";
    } catch {
      return false;
    }
  };
  for (let look = 0; look < 100 && children.some(alive); look++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect(children.filter(alive)).toEqual([]);
}
