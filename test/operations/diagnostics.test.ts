/** Diagnostics over the real machine on a memory disk: the tree and its pages, what a state shows, and actors that are brought back. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { moduleKind } from "../../src/actors/module.ts";
import { processKind } from "../../src/actors/process.ts";
import { registryKind } from "../../src/actors/registry.ts";
import { sealCredentials } from "../../src/actors/registry-effects.ts";
import { serviceKind } from "../../src/actors/service.ts";
import { isFailure } from "../../src/errors/failure.ts";
import { mailboxMessagesMax } from "../../src/limits.ts";
import { maskSentence, maskState } from "../../src/observability/masked-state.ts";
import { Call, callOperation } from "../../src/operations/call.ts";
import { actorDiagnostics } from "../../src/operations/diagnostics-actors.ts";
import { deadLetterDiagnostics } from "../../src/operations/diagnostics-dead-letters.ts";
import { executorDiagnostics } from "../../src/operations/diagnostics-executors.ts";
import { logLevelDiagnostics } from "../../src/operations/diagnostics-log-level.ts";
import type { RpcOperation } from "../../src/operations/operation.ts";
import type { LogLevel } from "../../src/ports/log.ts";
import { planCommit } from "../../src/runtime/commit-plan.ts";
import { recordKey } from "../../src/runtime/keys.ts";
import type { AnyKind } from "../../src/runtime/kind.ts";
import { System } from "../../src/runtime/system.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { installedModule } from "../actors/installed-module.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { openStage, type Stage, silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";

const operator = { name: "night-shift", role: "operator" } as const;

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
type Answers = any;

/** As the control plane does, with a clock that goes on while it is asked. */
async function ask(rows: readonly RpcOperation[], name: string, clock: ManualClock, input: unknown): Promise<Answers> {
  const row = rows.find((one) => one.name === name) ?? expect.unreachable(name);
  const call = new Call({ requestId: "r", caller: operator, clock, log: silentLog });
  let over = false;
  const answer = callOperation(row, input, call).finally(() => {
    over = true;
  });
  answer.catch(() => undefined);
  for (let look = 0; look < 500 && !over; look += 1) await clock.advance(1);
  return answer;
}

const mask = { state: maskState, sentence: maskSentence };

interface Ward extends Stage {
  readonly lines: string[];
  list(input?: Record<string, unknown>): Promise<Answers>;
  get(id: string, kind?: string): Promise<Answers>;
  restart(id: string, kind?: string): Promise<Answers>;
}

async function openWard(): Promise<Ward> {
  const stage = await openStage();
  const lines: string[] = [];
  const log = { ...silentLog, warn: (event: string, message: string) => void lines.push(`${event}: ${message}`) };
  const rows = actorDiagnostics({ system: stage.system, mask, clock: stage.clock, log });
  return {
    ...stage,
    lines,
    list: (input = {}) => ask(rows, "listActors", stage.clock, input),
    get: (id, kind = "account") => ask(rows, "getActor", stage.clock, { kind, id }),
    restart: (id, kind = "account") => ask(rows, "restartActor", stage.clock, { kind, id }),
  };
}

const opened = (stage: Stage, id: string): Promise<unknown> => stage.accounts.ask(id, { type: "open" });

async function crashUntilParked({ accounts, clock, system }: Stage, id: string): Promise<void> {
  for (let crash = 0; crash < 20; crash += 1) {
    await accounts.ask(id, { type: "crash" }).catch(() => undefined);
    if (system.inspectOne({ kind: "account", key: id })?.phase === "parked") return;
    await clock.advance(5_000);
  }
  throw new Error("It is not parked");
}

async function corrupt({ disk }: Stage, id: string, text: string): Promise<void> {
  const database = await disk.open();
  await database.batchSynced([{ type: "put", key: recordKey({ kind: "account", key: id }), value: text }]);
}

async function refusal(work: Promise<unknown>): Promise<{ kind: string; message: string }> {
  const error = await work.then(
    () => expect.unreachable("it was answered"),
    (reason: unknown) => reason,
  );
  if (!isFailure(error)) throw error;
  return { kind: error.kind, message: error.message };
}

describe("the supervision tree", () => {
  it("has every kind with its counts, and actors as they came into memory", async () => {
    const ward = await openWard();
    for (const id of ["7", "3", "5"]) await opened(ward, id);
    const { node, nextCursor, hasMore } = await ward.list();
    expect([nextCursor, hasMore]).toEqual([null, false]);
    expect(node.kinds).toEqual([
      {
        count: { kind: "account", resident: 3, parked: 0, mailboxDepthMax: 0, turns: 3, crashes: 0, restarts: 0 },
        actors: ["7", "3", "5"].map((id) => ({
          kind: "account",
          id,
          pid: expect.any(Number),
          phase: "ready",
          mailboxDepth: 0,
          restarts: 0,
        })),
      },
    ]);
  });

  it("is told in pages: whoever stays in memory is on exactly one, whoever leaves and comes meanwhile", async () => {
    const ward = await openWard();
    for (let id = 1; id <= 57; id += 1) await opened(ward, String(id));
    const seen: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const answer = await ward.list({ limit: 10, ...(cursor === undefined ? {} : { cursor }) });
      expect(answer.hasMore).toBe(answer.nextCursor !== null);
      seen.push(...answer.node.kinds[0].actors.map(({ id }: { id: string }) => id));
      cursor = answer.nextCursor ?? undefined;
      pages += 1;
      // One that was told, and one that was not, leave; another comes.
      await ward.accounts.ask(String(pages), { type: "leave" });
      await ward.accounts.ask(String(57 - pages), { type: "leave" });
      await opened(ward, String(100 + pages));
    } while (cursor !== undefined);
    expect(pages).toBeGreaterThan(5);
    expect(new Set(seen).size).toBe(seen.length);
    for (let id = 8; id <= 48; id += 1) expect(seen).toContain(String(id));
  });

  it("shows only the parked, or only those that somebody should look at, when asked to", async () => {
    const ward = await openWard();
    for (const id of ["1", "2", "3", "4"]) await opened(ward, id);
    await crashUntilParked(ward, "2");
    await ward.accounts.ask("3", { type: "crash" }).catch(() => undefined);
    await ward.clock.advance(20_000);
    // Commits are held back, so that messages pile up.
    let release: () => void = () => undefined;
    ward.store.gate = () => new Promise((resolve) => (release = () => resolve("pass")));
    for (let n = 0; n <= mailboxMessagesMax / 2 + 1; n += 1) ward.accounts.tell("4", { type: "deposit", amount: 1 });
    const ids = async (input: Record<string, unknown>): Promise<string[]> =>
      (await ward.list(input)).node.kinds[0].actors.map(({ id }: { id: string }) => id);
    expect(await ids({ onlyParked: true })).toEqual(["2"]);
    expect(await ids({ onlyTroubled: true })).toEqual(["2", "3", "4"]);
    expect(await ids({ onlyTroubled: true, onlyParked: true })).toEqual(["2"]);
    expect(await ids({ onlyParked: false })).toEqual(["1", "2", "3", "4"]);
    ward.store.gate = () => "pass";
    release();
  });

  it("refuses a kind that there is not, naming those that there are, and a cursor of another list", async () => {
    const ward = await openWard();
    expect(await refusal(ward.list({ kind: "acount" }))).toEqual({
      kind: "invalid_request",
      message: 'No kind of actor is called "acount": kind must be one of account',
    });
    const another = Buffer.from('{"v":1,"k":[5]}').toString("base64url");
    expect(await refusal(ward.list({ cursor: another }))).toMatchObject({ kind: "invalid_cursor" });
  });
});

describe("one actor", () => {
  it("that is only stored is told with its state and not woken", async () => {
    const ward = await openWard();
    await opened(ward, "1");
    await ward.accounts.ask("1", { type: "leave" });
    const { actor } = await ward.get("1");
    expect(actor).toEqual({
      actor: { kind: "account", id: "1", phase: "stored", mailboxDepth: 0, restarts: 0 },
      state: { balance: 0, interestAt: null, pending: null },
      deadLetters: [],
    });
    expect(ward.system.residentCount).toBe(0);
  });

  it("that crashed tells why and when, and what did not reach it", async () => {
    const ward = await openWard();
    await opened(ward, "1");
    const at = ward.clock.now();
    await ward.accounts.ask("1", { type: "crash" }).catch(() => undefined);
    const { actor } = await ward.get("1");
    expect(actor.actor).toMatchObject({ phase: "restarting", restarts: 1, lastError: "broken invariant" });
    expect(Math.abs(Date.parse(actor.actor.lastErrorAt) - at)).toBeLessThan(1_000);
    expect(actor.deadLetters).toEqual([
      { at: expect.any(String), kind: "account", id: "1", reason: "crashed", messageType: "crash" },
    ]);
  });

  it("that is not there is not found", async () => {
    const ward = await openWard();
    expect(await refusal(ward.get("9"))).toEqual({ kind: "not_found", message: 'There is no actor "account/9"' });
    expect(await refusal(ward.restart("9"))).toEqual({ kind: "not_found", message: 'There is no actor "account/9"' });
    expect(await refusal(ward.get("9", "account/9"))).toMatchObject({ kind: "invalid_request" });
  });
});

const unreadable: Record<string, readonly [text: (good: string) => string, problem: RegExp]> = {
  "is not JSON": [(good) => good.slice(0, -2), /^The stored record is not JSON$/],
  "has no version": [(good) => good.replace('"v":2', '"w":2'), /^The stored record has no version$/],
  "is of a newer version": [
    (good) => good.replace('"v":2', '"v":7'),
    /^The stored record is of version 7, newer than this server's 2$/,
  ],
  "does not fit its schema": [
    (good) => good.replace('"balance":0', '"balance":"0"'),
    /^The stored state does not fit: "balance": Invalid input: expected number, received string$/,
  ],
  "is no record of the store": [() => "garbage", /is no record$/],
};

describe("an actor whose record", () => {
  it.each(Object.entries(unreadable))(
    "%s is parked with a sentence, stays so, and is brought back once it is mended",
    async (_, [change, problem]) => {
      const ward = await openWard();
      await opened(ward, "1");
      await ward.accounts.ask("1", { type: "leave" });
      const database = await ward.disk.open();
      const good = (await database.get(recordKey({ kind: "account", key: "1" }))) ?? expect.unreachable();
      await corrupt(ward, "1", change(good));
      expect((await ward.get("1")).actor.stateProblem).toMatch(/^The record of "account\/1" cannot be read: /);

      await ward.accounts.ask("1", { type: "read" }).catch(() => undefined);
      const { actor } = await ward.get("1");
      expect(actor.actor).toMatchObject({ phase: "parked", lastError: expect.stringMatching(problem) });
      expect(actor.state).toBeUndefined();

      for (let time = 0; time < 2; time += 1) {
        const { kind, message } = await refusal(ward.restart("1"));
        expect(kind).toBe("conflict");
        expect(message).toMatch(/^Actor "account\/1" was restarted and is parked again: The|^Actor .* again: Stored/);
      }

      await corrupt(ward, "1", good);
      expect(await ward.restart("1")).toMatchObject({
        outcome: "restarted",
        message: 'Actor "account/1" takes messages again',
        actor: { phase: "ready", mailboxDepth: 0 },
      });
      expect(await ward.restart("1")).toMatchObject({ outcome: "notParked", actor: { phase: "ready" } });
      expect(await ward.accounts.ask("1", { type: "deposit", amount: 2 })).toBe(2);
      expect(ward.lines).toContain('actor-restarted: A parked actor was restarted by "night-shift"');
      expect((await ward.list({ onlyTroubled: true })).node.kinds[0].actors).toEqual([]);
    },
  );
});

describe("RestartActor", () => {
  it("brings back one that crashed too often; one that is not in memory is left alone", async () => {
    const ward = await openWard();
    await opened(ward, "1");
    await opened(ward, "2");
    await ward.accounts.ask("2", { type: "leave" });
    await crashUntilParked(ward, "1");
    expect((await ward.get("1")).actor).toMatchObject({
      actor: { phase: "parked", lastError: "broken invariant" },
      state: { balance: 0 },
    });
    expect(await ward.restart("1")).toMatchObject({ outcome: "restarted", actor: { phase: "ready" } });
    expect(await ward.restart("2")).toMatchObject({
      outcome: "notParked",
      message: 'Actor "account/2" is not parked: nothing was done',
      actor: { phase: "stored" },
    });
    expect(ward.system.residentCount).toBe(1);
  });

  it("says that the actor is on its way while the store does not answer", async () => {
    const ward = await openWard();
    await opened(ward, "1");
    await crashUntilParked(ward, "1");
    const load = ward.store.load.bind(ward.store);
    ward.store.load = () => new Promise(() => undefined);
    const rows = actorDiagnostics({ system: ward.system, mask, clock: ward.clock, log: silentLog });
    const row = rows.find(({ name }) => name === "restartActor") ?? expect.unreachable();
    const call = new Call({ requestId: "r", caller: operator, clock: ward.clock, log: silentLog });
    const answer = callOperation(row, { kind: "account", id: "1" }, call);
    await ward.clock.advance(3_000);
    expect(await answer).toMatchObject({ outcome: "restarting", actor: { phase: "loading" } });
    ward.store.load = load;
  });
});

describe("dead letters", () => {
  it("are counted by kind and reason, most first, and the newest are told first", async () => {
    const ward = await openWard();
    for (let n = 0; n < 3; n += 1)
      ward.system.deadLetter({ kind: "account", key: String(n) }, "parked", { type: "read" });
    ward.system.deadLetter({ kind: "ghost", key: "g" }, "unknown_kind", { type: "haunt", password: "CANARY" });
    const rows = [deadLetterDiagnostics(ward.system.deadLetters)] as readonly RpcOperation[];
    expect(await ask(rows, "listDeadLetters", ward.clock, { limit: 2 })).toEqual({
      counts: [
        { kind: "account", reason: "parked", count: 3 },
        { kind: "ghost", reason: "unknownKind", count: 1 },
      ],
      newest: [
        { at: expect.any(String), kind: "ghost", id: "g", reason: "unknownKind", messageType: "haunt" },
        { at: expect.any(String), kind: "account", id: "2", reason: "parked", messageType: "read" },
      ],
    });
  });
});

describe("the log level", () => {
  it("changes at once, says who changed it and for how long, and is written down under the level that writes more", async () => {
    const clock = new ManualClock();
    const threshold: { level: LogLevel } = { level: "info" };
    const levels: string[] = [];
    const log = { ...silentLog, warn: () => void levels.push(threshold.level) };
    const rows = logLevelDiagnostics({ threshold, configured: "info", clock, log });
    expect(await ask(rows, "getLogLevel", clock, {})).toEqual({ logLevel: { level: "info", configuredLevel: "info" } });
    const answer = await ask(rows, "setLogLevel", clock, { level: "error" });
    expect(answer).toEqual({
      logLevel: { level: "error", configuredLevel: "info", setBy: "night-shift", setAt: expect.any(String) },
      message: 'The log level is "error" from now on, until the server ends: the next start begins with "info"',
    });
    expect(threshold.level).toBe("error");
    await ask(rows, "setLogLevel", clock, { level: "debug" });
    expect(levels).toEqual(["info", "debug"]);
    expect(await refusal(ask(rows, "setLogLevel", clock, {}))).toMatchObject({ kind: "invalid_request" });
  });
});

describe("children", () => {
  it("are told with what runs in them, how they are and what went wrong, whatever keeps them", async () => {
    const clock = new ManualClock();
    const inert = { name: "portable", start: () => ({ answer() {}, stop() {} }), close: async () => undefined };
    const executor = {
      ...inert,
      inspect: () => ({ runsTotal: 9, childrenTotal: 3, crashesTotal: 1 }),
      children: () => [
        { pid: 11, kind: "executor", state: "busy", startedAt: 1_000, runIds: ["7#2"] } as const,
        { pid: null, kind: "executor", state: "starting", startedAt: 2_000, runIds: [] } as const,
      ],
    };
    const hosted = { ...inert, name: "wasm", inspect: () => ({ running: 1 }) };
    const row = executorDiagnostics({
      slots: () => ({ waiting: 1, executing: 2, slots: 8 }),
      running: () => [
        { runId: "7#2", processId: 7, run: 2, startedAt: 3_000 },
        { runId: "8#1", processId: 8, run: 1, startedAt: 4_000 },
      ],
      environments: () => [
        { moduleId: "javascript", executor, runs: 1, draining: false },
        { moduleId: "wasm", executor: hosted, runs: 1, draining: true },
      ],
      modules: () => [
        { moduleId: "csv", pid: 12, state: "idle", startedAt: 5_000, restarts: 2, lastError: 'ended; token: "CANARY"' },
        { moduleId: "off", pid: null, state: "down", startedAt: null, restarts: 0, lastError: null },
      ],
      workers: () => [
        { name: "gRPC worker", pid: 13, state: "busy", startedAt: 6_000, started: 2, lastError: "ran out of memory" },
      ],
      memoryKb: async (pid) => (pid === 13 ? undefined : pid),
      mask: maskSentence,
    });
    const time = (ms: number): string => new Date(ms).toISOString();
    const first = { processId: 7, run: 2, startedAt: time(3_000) };
    expect(await ask([row as RpcOperation], "listExecutors", clock, {})).toEqual({
      slots: { waiting: 1, executing: 2, slots: 8 },
      environments: [
        {
          moduleId: "javascript",
          executor: "portable",
          draining: false,
          runs: 1,
          runsTotal: 9,
          childrenTotal: 3,
          crashesTotal: 1,
        },
        { moduleId: "wasm", executor: "wasm", draining: true, runs: 1 },
      ],
      runs: [first, { processId: 8, run: 1, startedAt: time(4_000) }],
      children: [
        {
          pid: 11,
          kind: "executor",
          name: "javascript",
          state: "busy",
          startedAt: time(1_000),
          runs: [first],
          memoryBytes: 11 * 1_024,
          restarts: 0,
        },
        { kind: "executor", name: "javascript", state: "starting", startedAt: time(2_000), runs: [], restarts: 0 },
        {
          pid: 12,
          kind: "module",
          name: "csv",
          state: "idle",
          startedAt: time(5_000),
          runs: [],
          memoryBytes: 12 * 1_024,
          restarts: 2,
          lastError: `Module "csv" ended; token: '[masked]'`,
        },
        { kind: "module", name: "off", state: "down", runs: [], restarts: 0 },
        {
          pid: 13,
          kind: "worker",
          name: "gRPC worker",
          state: "busy",
          startedAt: time(6_000),
          runs: [],
          restarts: 1,
          lastError: "The gRPC worker ran out of memory",
        },
      ],
    });
  });
});

describe("no secret is shown", () => {
  const vault = openVault({ key: randomBytes(32).toString("base64") });
  const canary = "CANARY-0123456789";
  const sealed = (kind: string, id: string, field: string): string => vault.seal(canary, { kind, id, field });
  const credentials = sealCredentials(vault, "r", { clientId: "c", clientSecret: canary, scopes: ["read"] });
  const auth = { type: "oauth2", tokenEndpoint: "http://t.test/", credentials } as const;
  const configured = {
    config: { region: "eu", apiKey: canary, nested: [{ password: canary }], url: `https://me:${canary}@host.test/x` },
    secretsPresent: ["/token"],
    secretsOutdated: [],
    configSchema: { type: "object", properties: { apiKey: { type: "string" } } },
    secretsSchema: { type: "object", properties: { token: { type: "string" } } },
  };
  const source = `https://host.test/doc?api_key=${canary}&shown=1`;
  const states: Record<string, { readonly kind: AnyKind; readonly id: string; readonly state: unknown }> = {
    "a registry with credentials, a token, a setup and a drift": {
      kind: registryKind as unknown as AnyKind,
      id: "r",
      state: {
        id: "r",
        baseUrl: `https://me:${canary}@r.test/`,
        lastSyncedAt: null,
        createdAt: 1,
        updatedAt: 1,
        auth: { ...auth, generation: 1 },
        generations: 2,
        token: { generation: 1, number: 4, envelope: sealed("registry", "r", "token"), expiresAt: 9 },
        tokens: 4,
        exchanging: null,
        setup: { ...auth, generation: 2 },
        drift: `Authorization: Bearer ${canary}`,
      },
    },
    "a service with secrets": {
      kind: serviceKind as unknown as AnyKind,
      id: "s",
      state: {
        ...configured,
        id: "s",
        adapter: "openapi",
        source,
        registry: null,
        name: "S",
        summary: "",
        description: "",
        version: "1.0.0",
        hash: "h",
        planHash: "p",
        enabled: false,
        stale: `The document is gone: ${source}`,
        icon: null,
        createdAt: 1,
        updatedAt: 1,
        autoUpdate: false,
        autoUpdateConstraint: null,
        secrets: sealed("service", "s", "secrets"),
        disabledTools: [],
        generation: 1,
      },
    },
    "a module with secrets": {
      kind: moduleKind as unknown as AnyKind,
      id: "m",
      state: installedModule("m", { ...configured, source, secrets: sealed("module", "m", "secrets") }),
    },
  };

  async function openHospital() {
    const clock = new ManualClock();
    const store = await openMemoryStore({ clock, log: silentLog });
    const system = new System({ store, clock, log: silentLog });
    const unused = undefined as never;
    system.register(serviceKind, unused);
    system.register(registryKind, unused);
    system.register(moduleKind, unused);
    const processes = system.register(processKind, unused);
    const rows = actorDiagnostics({ system, mask, clock, log: silentLog });
    const get = async (kind: string, id: string): Promise<Answers> => ask(rows, "getActor", clock, { kind, id });
    return { store, processes, get };
  }

  it.each(Object.entries(states))("of %s", async (_, { kind, id, state }) => {
    const { store, get } = await openHospital();
    const address = { kind: kind.name, key: id };
    const step = { state };
    const parts = { kind, address, epoch: store.epoch, revision: 0, before: null, step, commands: [], extra: [] };
    expect(await store.commit([planCommit(parts)])).toEqual(["ok"]);
    const text = JSON.stringify(await get(kind.name, id));
    expect(text).toContain("[masked]");
    expect(text).not.toContain(canary);
    // Not even sealed.
    expect(text).not.toMatch(/t1\.[0-9a-f]{16}/);
    expect(text).not.toContain(credentials.slice(0, 30));
  });

  it("that the vault sealed, wherever it stands in a sentence", () => {
    const text = sealed("service", "s", "token");
    expect(maskSentence(`Cannot read "${text}", nor ${text}: it was changed`)).toBe(
      'Cannot read "[masked]", nor [masked]: it was changed',
    );
  });

  it("but all that is no secret, field names of schemas among it", async () => {
    const { store, get } = await openHospital();
    const { kind, id, state } = states["a service with secrets"] ?? expect.unreachable();
    const address = { kind: kind.name, key: id };
    const step = { state };
    const parts = { kind, address, epoch: store.epoch, revision: 0, before: null, step, commands: [], extra: [] };
    await store.commit([planCommit(parts)]);
    const { actor } = await get(kind.name, id);
    expect(actor.state).toMatchObject({
      id: "s",
      adapter: "openapi",
      config: {
        region: "eu",
        apiKey: "[masked]",
        nested: [{ password: "[masked]" }],
        url: "https://[masked]@host.test/x",
      },
      secrets: "[masked]",
      secretsPresent: ["/token"],
      secretsSchema: { properties: { token: { type: "string" } } },
      configSchema: { properties: { apiKey: { type: "string" } } },
      source: "https://host.test/doc?api_key=[masked]&shown=1",
      registry: null,
    });
  });

  it("of a process with envConfig", async () => {
    const { processes, get } = await openHospital();
    await processes.ask("1", {
      type: "create",
      id: 1,
      code: `const key = "${canary}";`,
      ref: undefined,
      timeoutMs: null,
      envConfig: { key: canary },
      autorun: false,
    });
    const { actor } = await get("process", "1");
    expect(actor.state).toMatchObject({ id: 1, state: "idle" });
    expect(JSON.stringify(actor)).not.toContain(canary);
  });
});
