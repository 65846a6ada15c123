/** Rotation of the secrets key, decided and done: real vaults over two keys, the real machine, a memory store. */
import { randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { type ModuleState, moduleKind } from "../../src/actors/module.ts";
import { type RegistryState, registryKind } from "../../src/actors/registry.ts";
import { openAccessToken, openCredentials, sealCredentials } from "../../src/actors/registry-effects.ts";
import type { ResealedMessage } from "../../src/actors/reseal.ts";
import { resealAll } from "../../src/actors/reseal-pass.ts";
import { SecretSeals } from "../../src/actors/secret-seals.ts";
import { type ServiceState, serviceKind } from "../../src/actors/service.ts";
import { openHydrations } from "../../src/adapters/hydrations.ts";
import { Failure } from "../../src/errors/failure.ts";
import { callDeadlineMs, resealPageMax } from "../../src/limits.ts";
import type { Log, LogFields } from "../../src/ports/log.ts";
import type { Packages } from "../../src/ports/packages.ts";
import type { RegistryReader } from "../../src/ports/registry-reader.ts";
import type { Vault } from "../../src/ports/vault.ts";
import { planCommit } from "../../src/runtime/commit-plan.ts";
import type { AnyKind } from "../../src/runtime/kind.ts";
import { System } from "../../src/runtime/system.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { GatedStore } from "../runtime/gated-store.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";
import { installedModule } from "./installed-module.ts";
import { someAdapters } from "./some-adapters.ts";

const key = (): string => randomBytes(32).toString("base64");
const [keyA, keyB] = [key(), key()];
const vaultA = openVault({ key: keyA });
const rotating = openVault({ key: keyB, previousKeys: [keyA] });
const vaultB = openVault({ key: keyB });
const strange = openVault({ key: key() });

const service = (id: string, secrets: string | null, more: Partial<ServiceState> = {}): ServiceState => ({
  id,
  adapter: "toy",
  source: "",
  registry: null,
  name: id,
  summary: "",
  description: "",
  version: "1.0.0",
  hash: "h",
  planHash: "p",
  enabled: false,
  stale: null,
  icon: null,
  createdAt: 1,
  updatedAt: 1,
  autoUpdate: false,
  autoUpdateConstraint: null,
  configSchema: true,
  secretsSchema: true,
  config: {},
  secrets,
  secretsPresent: [],
  secretsOutdated: [],
  disabledTools: [],
  generation: 3,
  ...more,
});

const client = { clientId: "c", clientSecret: "CANARY", scopes: ["read"] };
const secretsContext = (id: string) => ({ kind: "service", id, field: "secrets" });
const tokenContext = (id: string) => ({ kind: "registry", id, field: "token" });

function registry(id: string, vault: Vault, more: Partial<RegistryState> = {}): RegistryState {
  const auth = {
    type: "oauth2",
    tokenEndpoint: "http://t.test/",
    credentials: sealCredentials(vault, id, client),
  } as const;
  const envelope = vault.seal(JSON.stringify({ accessToken: "T" }), tokenContext(id));
  return {
    id,
    baseUrl: `http://${id}.test/`,
    lastSyncedAt: null,
    createdAt: 1,
    updatedAt: 1,
    auth: { ...auth, generation: 1 },
    generations: 2,
    token: { generation: 1, number: 4, envelope, expiresAt: 9 },
    tokens: 4,
    exchanging: null,
    setup: { ...auth, credentials: sealCredentials(vault, id, { ...client, clientId: "new" }), generation: 2 },
    drift: "",
    ...more,
  };
}

const report = (seals: ResealedMessage["seals"], unreadable: string | null = null): ResealedMessage => ({
  type: "resealed",
  seals,
  unreadable,
});

describe("a service decides on resealed", () => {
  const settle = [{ ticket: "reseal", reply: { unreadable: null } }];
  const enabled = { enabled: true, secretsPresent: ["/token"] };
  const rows: [string, ServiceState, ResealedMessage, Partial<ServiceState> | "unchanged"][] = [
    [
      "another seal of what is stored",
      service("s", "old"),
      report([{ basis: "old", envelope: "new" }]),
      { secrets: "new" },
    ],
    [
      "the same on an enabled one",
      service("s", "old", enabled),
      report([{ basis: "old", envelope: "new" }]),
      { secrets: "new" },
    ],
    [
      "a seal of what was patched meanwhile",
      service("s", "patched"),
      report([{ basis: "old", envelope: "new" }]),
      "unchanged",
    ],
    [
      "a seal of what was removed meanwhile",
      service("s", null),
      report([{ basis: "old", envelope: "new" }]),
      "unchanged",
    ],
    ["nothing to do", service("s", "old"), report([]), "unchanged"],
  ];
  it.each(rows)("%s", (_, state, message, change) => {
    const step = serviceKind.decide(state, message, 50);
    if (change === "unchanged") expect(step.state).toBe(state);
    else expect(step.state).toEqual({ ...state, ...change });
    expect(step).toEqual({ state: step.state, settle });
  });

  it("a patch that was sealed from the old envelope is made again from the new one", () => {
    const requests = [{ patch: [], ticket: "t" }];
    const sealed = { envelope: "mine", present: [], outdated: [] };
    const { state } = serviceKind.decide(service("s", "old"), report([{ basis: "old", envelope: "new" }]), 50);
    const step = serviceKind.decide(state, { type: "secretsSealed", sealed, basis: "old", requests, refused: [] }, 51);
    expect(step).toEqual({ state, settle: [], effects: [{ type: "sealSecrets", state, requests }] });
  });

  it("unreadable ones stay as they are, and the reason is the answer", () => {
    const state = service("s", "old");
    const step = serviceKind.decide(state, report([], "why"), 50);
    expect(step).toEqual({ state, settle: [{ ticket: "reseal", reply: { unreadable: "why" } }] });
  });

  it("a report about a deleted one has nobody to answer, and asking for one is not found", () => {
    expect(serviceKind.decide(null, report([]), 50)).toEqual({ state: null });
    expect(() => serviceKind.decide(null, { type: "reseal" }, 50)).toThrow(Failure);
  });
});

describe("a registry decides on resealed", () => {
  const state = registry("r", vaultA);
  const [auth, setup, token] = [state.auth!, state.setup!, state.token!];
  const all = report([
    { basis: auth.credentials, envelope: "auth" },
    { basis: setup.credentials, envelope: "setup" },
    { basis: token.envelope, envelope: "token" },
  ]);
  const rows: [string, RegistryState, Partial<RegistryState>][] = [
    [
      "credentials, token and a pending setup",
      state,
      {
        auth: { ...auth, credentials: "auth" },
        setup: { ...setup, credentials: "setup" },
        token: { ...token, envelope: "token" },
      },
    ],
    [
      "a setup that took over meanwhile keeps its new seal as auth",
      { ...state, auth: setup, setup: null, token: null },
      { auth: { ...setup, credentials: "setup" } },
    ],
    [
      "a token renewed meanwhile is left alone",
      { ...state, token: { ...token, number: 5, envelope: "renewed" }, setup: null },
      { auth: { ...auth, credentials: "auth" } },
    ],
    ["auth deleted meanwhile stays deleted", { ...state, auth: null, setup: null, token: null }, {}],
  ];
  it.each(rows)("%s", (_, before, change) => {
    const step = registryKind.decide(before, all, 50);
    expect(step).toEqual({
      state: { ...before, ...change },
      settle: [{ ticket: "reseal", reply: { unreadable: null } }],
    });
  });

  it("an exchange that was under way ends as it would have, with the new seals stored", () => {
    const { state: between } = registryKind.decide(state, all, 50);
    const issued = { envelope: "issued", lifetimeMs: 1_000 };
    const step = registryKind.decide(between, { type: "tokenIssued", generation: 2, token: issued }, 60);
    expect(step.state).toMatchObject({ auth: { credentials: "setup" }, setup: null, token: { envelope: "issued" } });
  });

  it("a report about a deleted one has nobody to answer, and asking for one is not found", () => {
    expect(registryKind.decide(null, all, 50)).toEqual({ state: null });
    expect(() => registryKind.decide(null, { type: "reseal" }, 50)).toThrow(Failure);
  });
});

interface Line extends LogFields {
  readonly event: string;
  readonly message: string;
}

/** What was written with key A (or nothing the keys open), and a machine that knows B and A. Exchanges never end. */
async function openRotation(states: {
  services?: ServiceState[];
  registries?: RegistryState[];
  modules?: ModuleState[];
}) {
  const lines: Line[] = [];
  const write = (event: string, message: string, fields?: LogFields): void => {
    lines.push({ event, message, ...fields });
  };
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const clock = new ManualClock();
  const store = new GatedStore(await openMemoryStore({ clock, log: silentLog }));
  const system = new System({ store, clock, log: silentLog });
  const reader = { exchange: () => new Promise(() => {}) } as unknown as RegistryReader;
  const seals = new SecretSeals(rotating);
  const services = system.register(serviceKind, { vault: rotating, seals, hydrations: openHydrations(someAdapters()) });
  const registries = system.register(registryKind, { vault: rotating, reader });
  const modules = system.register(moduleKind, {
    vault: rotating,
    seals,
    runtime: { activate: async () => {}, deactivate: () => {} },
    packages: {} as Packages,
    log: silentLog,
  });
  const planted = [
    ...(states.services ?? []).map((state) => ({ kind: serviceKind as unknown as AnyKind, state })),
    ...(states.registries ?? []).map((state) => ({ kind: registryKind as unknown as AnyKind, state })),
    ...(states.modules ?? []).map((state) => ({ kind: moduleKind as unknown as AnyKind, state })),
  ].map(({ kind, state }) => {
    const address = { kind: kind.name, key: state.id };
    const step = { state };
    return planCommit({ kind, address, epoch: store.epoch, revision: 0, before: null, step, commands: [], extra: [] });
  });
  for (const outcome of await store.commit(planted)) expect(outcome).toBe("ok");
  store.commits = 0;
  const pass = (): Promise<boolean> => resealAll({ services, registries, modules, vault: rotating, log });
  const secretsOf = async (id: string): Promise<string> => (await services.query(id)).state?.secrets ?? "";
  return { lines, store, clock, services, registries, modules, pass, secretsOf };
}

const sealedBy = (vault: Vault, id: string): string => vault.seal('{"token":"CANARY"}', secretsContext(id));

describe("the pass", () => {
  it("seals everything again, so that the current key alone opens it, and changes nothing else", async () => {
    const before = registry("r", vaultA);
    const { pass, services, registries, secretsOf, lines } = await openRotation({
      services: [service("s", sealedBy(vaultA, "s")), service("none", null)],
      registries: [before, registry("open", vaultA, { auth: null, token: null, setup: null })],
    });
    await pass();
    expect(vaultB.open(await secretsOf("s"), secretsContext("s"))).toBe('{"token":"CANARY"}');
    expect((await services.query("s")).state).toEqual(service("s", await secretsOf("s")));
    const after = (await registries.query("r")).state!;
    expect(openCredentials(vaultB, "r", after.auth!.credentials)).toEqual(client);
    expect(openCredentials(vaultB, "r", after.setup!.credentials)).toEqual({ ...client, clientId: "new" });
    expect(openAccessToken(vaultB, "r", after.token!.envelope)).toBe("T");
    expect(after).toEqual({
      ...before,
      auth: { ...before.auth, credentials: after.auth!.credentials },
      setup: { ...before.setup, credentials: after.setup!.credentials },
      token: { ...before.token, envelope: after.token!.envelope },
    });
    expect(lines).toEqual([
      expect.objectContaining({ event: "secrets-resealed", resealed: 2, unreadable: 0, failed: 0 }),
    ]);
  });

  it("walks every page, writes each once, and writes nothing the second time", async () => {
    const ids = Array.from({ length: resealPageMax * 2 + 1 }, (_, number) => `s${number}`);
    const { pass, store, secretsOf, lines } = await openRotation({
      services: ids.map((id, at) => service(id, sealedBy(at % 5 === 0 ? rotating : vaultA, id), { createdAt: at })),
    });
    await pass();
    for (const id of ids) expect(vaultB.open(await secretsOf(id), secretsContext(id))).toContain("CANARY");
    const old = ids.filter((_, at) => at % 5 !== 0).length;
    expect(store.commits).toBe(old);
    await pass();
    expect(store.commits).toBe(old);
    expect(lines.map(({ resealed }) => resealed)).toEqual([old, 0]);
  });

  it.each([
    ["an unknown key", () => sealedBy(strange, "bad")],
    ["another place", () => sealedBy(vaultA, "other")],
    ["a flipped bit", () => sealedBy(vaultA, "bad").replace(/.$/, (last) => (last === "A" ? "Q" : "A"))],
    ["no envelope at all", () => "CANARY"],
  ])("leaves and names what was written with %s, and goes on with the others", async (_, make) => {
    const bad = make();
    const { pass, lines, secretsOf } = await openRotation({
      services: [service("bad", bad), service("good", sealedBy(vaultA, "good"))],
      registries: [registry("r", vaultA, { token: { generation: 1, number: 4, envelope: bad, expiresAt: 9 } })],
    });
    await pass();
    expect(await secretsOf("bad")).toBe(bad);
    expect(vaultB.isCurrent(await secretsOf("good"))).toBe(true);
    expect(lines.map(({ event, serviceId, registryId }) => [event, serviceId ?? registryId])).toEqual([
      ["secrets-unreadable", "bad"],
      ["secrets-unreadable", "r"],
      ["secrets-resealed", undefined],
    ]);
    expect(lines.at(-1)).toMatchObject({ resealed: 1, unreadable: 2, failed: 0 });
    expect(JSON.stringify(lines)).not.toContain("CANARY");
    expect(JSON.stringify(lines)).not.toContain(bad);
  });

  it("reaches the secrets of modules", async () => {
    const context = { kind: "module", id: "m", field: "secrets" };
    const before = installedModule("m", { secrets: vaultA.seal('{"token":"CANARY"}', context) });
    const { pass, modules, lines } = await openRotation({ modules: [before] });
    await pass();
    const { state } = await modules.query("m");
    expect(vaultB.open(state?.secrets ?? "", context)).toBe('{"token":"CANARY"}');
    expect(state).toEqual({ ...before, secrets: state?.secrets });
    expect(lines.at(-1)).toMatchObject({ event: "secrets-resealed", resealed: 1, failed: 0 });
  });

  it("of a registry with one unreadable envelope renews the readable ones", async () => {
    const token = { generation: 1, number: 4, envelope: strange.seal("{}", tokenContext("r")), expiresAt: 9 };
    const { pass, registries } = await openRotation({ registries: [registry("r", vaultA, { token })] });
    await pass();
    const { state } = await registries.query("r");
    expect(state?.token).toEqual(token);
    expect(openCredentials(vaultB, "r", state!.auth!.credentials)).toEqual(client);
  });

  it("says to keep the previous keys when the store did not take everything", async () => {
    const { pass, lines, store, clock, secretsOf } = await openRotation({
      services: [service("s", sealedBy(vaultA, "s")), service("t", sealedBy(vaultA, "t"))],
    });
    let commits = 0;
    store.gate = () => (++commits === 1 ? { reject: new Failure("unavailable", "The store fails") } : "pass");
    const passing = pass();
    await vi.waitFor(() => expect(store.commits).toBe(2));
    // The actor restarts and its report is taken then; whoever asked does not learn of that.
    await clock.advance(callDeadlineMs + 1_000);
    await passing;
    expect(lines.map(({ event }) => event)).toEqual(["secrets-reseal-failed", "secrets-reseal-incomplete"]);
    store.gate = () => "pass";
    await pass();
    expect(lines.at(-1)).toMatchObject({ event: "secrets-resealed", unreadable: 0, failed: 0 });
    for (const id of ["s", "t"]) expect(vaultB.isCurrent(await secretsOf(id))).toBe(true);
  });

  it("loses no patch that callers make in the meantime", async () => {
    const ids = Array.from({ length: 20 }, (_, number) => `s${number}`);
    const { pass, services, secretsOf } = await openRotation({
      services: ids.map((id) => service(id, sealedBy(vaultA, id))),
    });
    const patches = (round: number): Promise<unknown>[] =>
      ids.map((id) =>
        services.ask(id, {
          type: "patchSecrets",
          patch: [{ op: "add", path: `/round${round}`, value: "v" }],
          ticket: `${id}-${round}`,
        }),
      );
    const before = patches(1);
    const passing = pass();
    await Promise.all([...before, ...patches(2), passing, ...patches(3)]);
    for (const id of ids) {
      expect(JSON.parse(vaultB.open(await secretsOf(id), secretsContext(id)))).toEqual({
        token: "CANARY",
        round1: "v",
        round2: "v",
        round3: "v",
      });
    }
  });
});
