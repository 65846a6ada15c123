/**
 * What an operator sees of a real server through a foreign gRPC client, and does to it. The data folder was made so that two processes cannot
 * work: the record of one cannot be read, and another crashes with every run, because its runs cannot be counted any further.
 */
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProcessState, processKind } from "../../src/actors/process.ts";
import { type PetStore, startPetStore } from "../../src/demo/pet-store.ts";
import { type DevRegistry, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { planCommit } from "../../src/runtime/commit-plan.ts";
import { recordKey } from "../../src/runtime/keys.ts";
import type { AnyKind } from "../../src/runtime/kind.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { silentLog } from "../runtime/stage.ts";
import { until } from "../until.ts";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { newFolder, removeFolder, type Server, startServer } from "./server.ts";

const unreadable = "900";
const crashing = "901";
const canary = "CANARY-7d1f0c5a";
const key = { authorization: "Bearer operator-key" };

let folder: string;
let server: Server;
let client: ForeignClient;
let store: PetStore;
let registry: DevRegistry;

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
type Answers = any;

const ask = (method: string, request: object = {}): Promise<Answers> =>
  client.call("DiagnosticsService", method, request as never, key);

const rest = (method: string, path: string, body?: unknown) => server.call(method, path, body, key);

beforeAll(async () => {
  folder = await newFolder();
  await spoil(folder);
  const settings = { SERVICE_API_KEYS: "a:agent:agent-key,night-shift:operator:operator-key" };
  server = await startServer({ folder, settings });
  client = await openForeignClient(server.grpc);
  store = await startPetStore({ port: 0, apiKey: canary });
  registry = await startDevRegistry({ id: "r", auth: "apikey", apiKey: canary });
});

afterAll(async () => {
  client.close();
  await Promise.all([store.close(), registry.close()]);
  await server.kill("SIGTERM");
  await removeFolder(folder);
});

async function spoil(data: string): Promise<void> {
  const level = await openLevelStore({ folder: join(data, "store"), clock: systemClock, log: silentLog });
  const address = { kind: "process", key: crashing };
  const state: ProcessState = {
    id: Number(crashing),
    state: "idle",
    exitState: null,
    error: null,
    reason: null,
    timeoutMs: null,
    createdAt: 1,
    completedAt: null,
    run: Number.MAX_SAFE_INTEGER,
  };
  const kind = processKind as unknown as AnyKind;
  const rest = { commands: [], extra: [] };
  const crashes = { kind, address, epoch: level.epoch, revision: 0, before: null, step: { state }, ...rest };
  const record = { key: recordKey({ kind: "process", key: unreadable }), expect: 0, value: '{"v":1,"s":{"id":' };
  await level.commit([planCommit(crashes), { record, writes: [], epoch: level.epoch }]);
  await level.close();
}

async function refusal(work: Promise<unknown>): Promise<{ code: number; details: string }> {
  const error = await work.then(
    () => expect.unreachable("it was answered"),
    (reason: unknown) => reason as grpc.ServiceError,
  );
  return { code: error.code, details: error.details };
}

const actorsOf = (answer: Answers, kind: string): Answers[] =>
  answer.node.kinds.find(({ count }: Answers) => count.kind === kind)?.actors;

describe("the node", () => {
  it("is told at a glance, with units in the names", async () => {
    const { node } = await ask("GetNode");
    expect(node).toMatchObject({
      nodeVersion: process.version,
      pid: server.child.pid,
      ready: true,
      certificates: [],
      store: { healthy: true, commitsQueued: 0, reopens: "0" },
      runs: { waiting: 0, slots: expect.any(Number) },
      logLevel: "LOG_LEVEL_INFO",
    });
    expect(node.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(Date.parse(node.startedAt)).toBeLessThanOrEqual(Date.now());
    expect(Number(node.store.commits)).toBeGreaterThan(0);
    expect(Number(node.store.epoch)).toBeGreaterThan(0);
    for (const bytes of Object.values(node.memory)) expect(Number(bytes)).toBeGreaterThan(0);
    const { p50Ms, p99Ms, maxMs } = node.eventLoopDelay;
    expect(p50Ms).toBeGreaterThanOrEqual(0);
    expect(p99Ms).toBeGreaterThanOrEqual(p50Ms);
    expect(maxMs).toBeGreaterThanOrEqual(p99Ms);
    expect(node.actors.map(({ kind }: Answers) => kind).sort()).toEqual(["module", "process", "registry", "service"]);
  });
});

describe("a parked actor", () => {
  it("whose record cannot be read says so in a sentence, and RestartActor does not pretend", async () => {
    expect((await rest("POST", `/processes/${unreadable}/signals/run`, {})).status).toBe(503);
    const [parked] = actorsOf(await ask("ListActors", { onlyParked: true, kind: "process" }), "process");
    expect(parked).toEqual({
      kind: "process",
      id: unreadable,
      pid: expect.any(String),
      phase: "ACTOR_PHASE_PARKED",
      mailboxDepth: 0,
      restarts: 0,
      lastError: "The stored record is not JSON",
      lastErrorAt: expect.any(String),
    });
    expect(await refusal(ask("RestartActor", { kind: "process", id: unreadable }))).toEqual({
      code: grpc.status.FAILED_PRECONDITION,
      details: `Actor "process/${unreadable}" was restarted and is parked again: The stored record is not JSON`,
    });
    const { actor } = await ask("GetActor", { kind: "process", id: unreadable });
    expect(actor.stateProblem).toBe(
      `The record of "process/${unreadable}" cannot be read: The stored record is not JSON`,
    );
    expect(actor.deadLetters[0]).toMatchObject({ reason: "DEAD_LETTER_REASON_PARKED", messageType: "run" });
  });

  it("that crashed too often is brought back and lives; a second restart changes nothing", async () => {
    const id = crashing;
    await until(async () => {
      expect((await rest("POST", `/processes/${id}/signals/run`, {})).status).toBeGreaterThanOrEqual(500);
      const { actor } = await ask("GetActor", { kind: "process", id });
      return actor.actor.phase === "ACTOR_PHASE_PARKED" ? actor : undefined;
    }, 30_000);
    expect(actorsOf(await ask("ListActors", { onlyTroubled: true }), "process").map((one) => one.id)).toContain(id);
    const counted = (await ask("GetNode")).node.actors.find(({ kind }: Answers) => kind === "process");
    expect(counted).toMatchObject({ parked: 2 });
    expect(Number(counted.crashes)).toBe(6);
    const { counts, newest } = await ask("ListDeadLetters", { limit: 3 });
    expect(counts).toContainEqual({ kind: "process", reason: "DEAD_LETTER_REASON_CRASHED", count: "6" });
    expect(newest.length).toBe(3);
    // A parked actor takes no message …
    expect((await rest("DELETE", `/processes/${id}`)).status).toBe(503);

    const restarted = await ask("RestartActor", { kind: "process", id });
    expect(restarted).toMatchObject({
      outcome: "RESTART_OUTCOME_RESTARTED",
      message: `Actor "process/${id}" takes messages again`,
      actor: { phase: "ACTOR_PHASE_READY" },
    });
    expect(await ask("RestartActor", { kind: "process", id })).toMatchObject({
      outcome: "RESTART_OUTCOME_NOT_PARKED",
      actor: { pid: restarted.actor.pid, phase: "ACTOR_PHASE_READY" },
    });
    // … and one that was restarted does.
    expect((await rest("DELETE", `/processes/${id}`)).status).toBeLessThan(300);
    expect(await refusal(ask("RestartActor", { kind: "process", id }))).toEqual({
      code: grpc.status.NOT_FOUND,
      details: `There is no actor "process/${id}"`,
    });
    expect(server.lines.filter((line) => line.includes('"event":"actor-restarted"')).length).toBe(2);
  });
});

describe("executors", () => {
  it("tell what runs in which child while a program runs, and that nothing does afterwards", async () => {
    const code = "await new Promise((resolve) => setTimeout(resolve, 600_000))";
    const { body } = await rest("POST", "/processes", { code, timeoutMs: null });
    const busy = await until(async () => {
      const seen = await ask("ListExecutors");
      return seen.children.some(({ runs }: Answers) => runs.length > 0) ? seen : undefined;
    });
    const run = { processId: String(body.id), run: 1, startedAt: expect.any(String) };
    expect(busy.slots).toMatchObject({ waiting: 0, executing: 1 });
    expect(busy.runs).toEqual([run]);
    expect(busy.environments).toEqual([
      {
        moduleId: "javascript",
        executor: "portable",
        draining: false,
        runs: 1,
        runsTotal: expect.any(String),
        childrenTotal: expect.any(String),
        crashesTotal: "0",
      },
    ]);
    const [child] = busy.children.filter(({ runs }: Answers) => runs.length > 0);
    expect(child).toMatchObject({
      kind: "CHILD_KIND_EXECUTOR",
      name: "javascript",
      state: "CHILD_STATE_BUSY",
      runs: [run],
    });
    expect(Number(child.memoryBytes)).toBeGreaterThan(1024 * 1024);
    expect(Date.parse(child.startedAt)).toBeLessThanOrEqual(Date.now());
    // The number is that of a living process of this machine.
    expect(process.kill(child.pid, 0)).toBe(true);
    expect(busy.children.map(({ kind, name }: Answers) => `${kind} ${name}`)).toContain(
      "CHILD_KIND_WORKER gRPC worker",
    );

    await rest("POST", `/processes/${body.id}/signals/kill`);
    await until(async () => (await ask("ListExecutors")).runs.length === 0);
  });
});

describe("the log level", () => {
  it("changes what is written and counted at once, and back", async () => {
    const isWritten = (path: string): boolean =>
      server.lines.some((line) => line.includes(`"message":"GET ${path} 200"`));
    /** Lines come in order: once this one is there, those before it are as well. */
    const written = async (path: string): Promise<void> => {
      await rest("GET", path);
      await until(async () => isWritten(path));
    };
    const counted = async (): Promise<number> =>
      Number(/troupe_log_records_total\{level="debug"\} (\d+)/.exec((await rest("GET", "/metrics")).text)?.[1] ?? 0);

    const before = await counted();
    await rest("GET", "/modules");
    expect(await counted()).toBe(before);
    const { logLevel, message } = await ask("SetLogLevel", { level: "LOG_LEVEL_DEBUG" });
    expect(logLevel).toEqual({
      level: "LOG_LEVEL_DEBUG",
      configuredLevel: "LOG_LEVEL_INFO",
      setBy: "night-shift",
      setAt: expect.any(String),
    });
    expect(message).toMatch(/until the server ends: the next start begins with "info"$/);
    await written("/registries");
    expect(isWritten("/modules")).toBe(false);
    expect(await counted()).toBeGreaterThan(before);

    await ask("SetLogLevel", { level: "LOG_LEVEL_ERROR" });
    expect((await ask("GetLogLevel")).logLevel.level).toBe("LOG_LEVEL_ERROR");
    const quiet = await counted();
    await rest("GET", "/tools");
    expect(await counted()).toBe(quiet);
    await ask("SetLogLevel", { level: "LOG_LEVEL_DEBUG" });
    await written("/services");
    expect(isWritten("/tools")).toBe(false);
    await ask("SetLogLevel", { level: "LOG_LEVEL_INFO" });
    expect(await refusal(ask("SetLogLevel", {}))).toMatchObject({ code: grpc.status.INVALID_ARGUMENT });
  });
});

describe("no secret", () => {
  it("is in what diagnostics say of a registry, a service and a process that hold some", async () => {
    const auth = { type: "apiKey", apiKey: canary };
    const added = await rest("POST", "/registries", { baseUrl: registry.url, auth });
    expect(added.status).toBe(201);
    await rest("POST", "/services", { id: "pets", url: store.documentUrl });
    const secrets = await rest("PATCH", "/services/pets/secrets", [{ op: "add", path: "/petKey", value: canary }]);
    expect(secrets.status).toBeLessThan(300);
    const { body } = await rest("POST", "/processes", { code: "return env.key.length", envConfig: { key: canary } });
    await rest("GET", `/processes/${body.id}?wait=30`);

    const said = [
      await ask("GetActor", { kind: "registry", id: added.body.id }),
      await ask("GetActor", { kind: "service", id: "pets" }),
      await ask("GetActor", { kind: "process", id: String(body.id) }),
      await ask("GetActor", { kind: "module", id: "javascript" }),
    ];
    expect(said[0].actor.state).toMatchObject({ auth: { type: "apiKey", credentials: "[masked]" } });
    expect(said[1].actor.state).toMatchObject({ secrets: "[masked]", secretsPresent: ["/petKey"] });
    expect(said[2].actor.state).toMatchObject({ state: "idle", exitState: "success" });
    const everything = [...said, await ask("ListActors", { limit: 100 }), await ask("ListExecutors")];
    expect(JSON.stringify(everything)).not.toMatch(new RegExp(`${canary}|t1\\.[0-9a-f]{16}`));
  });
});

describe("an agent's key", () => {
  it.each([
    ["GetNode", {}],
    ["ListActors", {}],
    ["GetActor", { kind: "process", id: "1" }],
    ["RestartActor", { kind: "process", id: "1" }],
    ["ListExecutors", {}],
    ["ListDeadLetters", {}],
    ["GetLogLevel", {}],
    ["SetLogLevel", { level: "LOG_LEVEL_DEBUG" }],
  ])("is not enough for %s", async (method, request) => {
    const agent = { authorization: "Bearer agent-key" };
    const { code } = await refusal(client.call("DiagnosticsService", method, request as never, agent));
    expect(code).toBe(grpc.status.PERMISSION_DENIED);
  });
});
