/** What a service decides, and how its effects report back: real vault, real settings rules, an adapter that fails on demand. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { configOf } from "../../src/actors/configured.ts";
import { SecretSeals } from "../../src/actors/secret-seals.ts";
import { type ServiceContent, type ServiceMessage, type ServiceState, serviceKind } from "../../src/actors/service.ts";
import { openHydrations } from "../../src/adapters/hydrations.ts";
import { Failure, isFailure } from "../../src/errors/failure.ts";
import type { Adapter, Definition, Hydration } from "../../src/ports/adapter.ts";
import type { SealContext, Vault } from "../../src/ports/vault.ts";
import { System } from "../../src/runtime/system.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";
import { someAdapters } from "./some-adapters.ts";

const definition: Definition = {
  title: "Pets",
  name: "Pets",
  summary: "",
  description: "",
  version: "1.0.0",
  configSchema: {
    type: "object",
    properties: { host: { type: "string" }, size: { type: "integer", default: 3 } },
    required: ["host"],
    additionalProperties: false,
  },
  secretsSchema: {
    type: "object",
    properties: { token: { type: "string" }, basic: { type: "object", properties: { password: { type: "string" } } } },
    required: ["token"],
    additionalProperties: false,
  },
  tools: [
    { id: "b", name: "b", summary: "", description: "", parameterNames: [] },
    { id: "a", name: "a", summary: "", description: "", parameterNames: [] },
  ],
  plan: "the plan",
};

const install: ServiceMessage = {
  type: "install",
  id: "pets",
  adapter: "toy",
  source: "",
  registry: null,
  autoUpdate: false,
  constraint: null,
  content: contentOf(definition),
};

function contentOf(made: Definition, version = made.version): ServiceContent {
  return { document: "the document", definition: made, version, hash: "h".repeat(64), planHash: "p".repeat(64) };
}

async function openService(installation: ServiceMessage = install) {
  const clock = new ManualClock();
  const store = await openMemoryStore({ clock, log: silentLog });
  const system = new System({ store, clock, log: silentLog });
  const hydrations: Hydration[] = [];
  const toy = { failure: undefined as unknown, beforeReady: async (): Promise<void> => {} };
  const adapter: Adapter = {
    id: "toy",
    define: async () => definition,
    describe: async () => ({ inputSchema: true, outputSchema: true }),
    hydrate: async (hydration) => {
      hydrations.push(hydration);
      await toy.beforeReady();
      if (toy.failure !== undefined) throw toy.failure;
      return { invoke: async () => hydration.config };
    },
    close: async () => {},
  };
  const registry = openHydrations(someAdapters(adapter));
  const vault = countingVault();
  const services = system.register(serviceKind, { vault, seals: new SecretSeals(vault), hydrations: registry });
  const ask = (message: ServiceMessage): Promise<ServiceState> =>
    services.ask("pets", message) as Promise<ServiceState>;
  const refused = (message: ServiceMessage): Promise<string> =>
    ask(message).then(
      () => "answered",
      (error: unknown) => (isFailure(error) ? `${error.kind}: ${error.message}` : `crash: ${error}`),
    );
  const state = async (): Promise<ServiceState | null> => (await services.query("pets")).state;
  await ask(installation);
  return { ask, refused, state, services, store, toy, hydrations, registry, vault };
}

function countingVault(): Vault & { seals: number } {
  const vault = openVault({ key: randomBytes(32).toString("base64") });
  const counting = {
    seals: 0,
    seal: (plain: string, context: SealContext) => {
      counting.seals++;
      return vault.seal(plain, context);
    },
    open: vault.open.bind(vault),
    isCurrent: vault.isCurrent.bind(vault),
  };
  return counting;
}

let tickets = 0;
const config = (...patch: unknown[]): ServiceMessage => ({ type: "patchConfig", patch });
const secrets = (...patch: unknown[]): ServiceMessage => ({ type: "patchSecrets", patch, ticket: `t${++tickets}` });
const add = (path: string, value: unknown): unknown => ({ op: "add", path, value });
const enabled = (on: boolean): ServiceMessage => ({ type: "setEnabled", enabled: on });

async function openEnabled() {
  const service = await openService();
  await service.ask(config(add("/host", "h")));
  await service.ask(secrets(add("/token", "CANARY")));
  await service.ask(enabled(true));
  return service;
}

describe("a service", () => {
  it("starts disabled, with its tools in order and its document beside it", async () => {
    const { state, services } = await openService();
    expect(await state()).toMatchObject({ enabled: false, config: {}, secretsPresent: [], generation: 1 });
    expect(JSON.parse((await services.blob("pets", "tools")) ?? "").map(({ id }: { id: string }) => id)).toEqual([
      "a",
      "b",
    ]);
    expect(await services.blob("pets", "document")).toBe("the document");
  });

  it("is not installed twice", async () => {
    const { refused } = await openService();
    expect(await refused(install)).toMatch(/^already_exists/);
  });

  it("takes settings that lack required keys while disabled, and refuses to be enabled with them, naming the paths", async () => {
    const { ask, refused } = await openService();
    await ask(config(add("/size", 5)));
    expect(await refused(enabled(true))).toMatch(/^invalid_request: .*host/);
    await ask(config(add("/host", "h")));
    expect(await refused(enabled(true))).toMatch(/^invalid_request: .*token/);
    await ask(secrets(add("/token", "s")));
    expect(await refused(enabled(true))).toBe("answered");
  });

  it("hands its adapter defaults and opened secrets, and stores neither", async () => {
    const { hydrations, state, store } = await openEnabled();
    expect(hydrations.at(-1)).toMatchObject({ config: { host: "h", size: 3 }, secrets: { token: "CANARY" } });
    expect((await state())?.config).toEqual({ host: "h" });
    const everything = JSON.stringify(await store.range({ prefix: "", limit: 1_000 }));
    expect(everything).not.toContain("CANARY");
    expect(everything).not.toContain(Buffer.from("CANARY").toString("base64").replace(/=+$/, ""));
  });

  it("is enabled only once its adapter is ready; a failure leaves the flag off", async () => {
    const { ask, refused, state, toy } = await openService();
    await ask(config(add("/host", "h")));
    await ask(secrets(add("/token", "s")));
    const failures = [
      [new Failure("timeout", "Too slow"), /^upstream_failed: .*Too slow/],
      [new Error("boom"), /^upstream_failed/],
      [new Failure("invalid_request", "Bad server URL"), /^invalid_request: Bad server URL/],
    ] as const;
    for (const [failure, expected] of failures) {
      toy.failure = failure;
      expect(await refused(enabled(true))).toMatch(expected);
      expect((await state())?.enabled).toBe(false);
    }
  });

  it("may be set to what it is", async () => {
    const { ask, hydrations } = await openEnabled();
    const before = hydrations.length;
    expect((await ask(enabled(true))).enabled).toBe(true);
    await ask(enabled(false));
    expect((await ask(enabled(false))).enabled).toBe(false);
    expect(hydrations).toHaveLength(before);
  });

  it("is made ready again after a patch while enabled, and answers when it is", async () => {
    const { ask, hydrations } = await openEnabled();
    await ask(config(add("/size", 9)));
    expect(hydrations.at(-1)?.config).toEqual({ host: "h", size: 9 });
    await ask(secrets(add("/token", "new")));
    expect(hydrations.at(-1)?.secrets).toEqual({ token: "new" });
  });

  it("keeps a patch whose hydration fails, says so, and the former settings go on serving", async () => {
    const { refused, state, toy, registry } = await openEnabled();
    const serving = registry.latest("pets");
    toy.failure = new Error("down");
    for (const patch of [config(add("/size", 9)), secrets(add("/token", "new"))]) {
      expect(await refused(patch)).toMatch(
        /^upstream_failed: .*The change is stored; the former settings keep serving/,
      );
    }
    expect(await state()).toMatchObject({ enabled: true, config: { host: "h", size: 9 } });
    expect(registry.latest("pets")).toBe(serving);
  });

  it("enforces what is required on patches while enabled", async () => {
    const { refused } = await openEnabled();
    expect(await refused(config({ op: "remove", path: "/host" }))).toMatch(/^invalid_request/);
    expect(await refused(secrets({ op: "remove", path: "/token" }))).toMatch(/^invalid_request/);
  });

  it("loses none of many patches made at once, to config or to secrets", async () => {
    const { ask, state } = await openService();
    await Promise.all([
      ask(config(add("/host", "h"))),
      ask(config(add("/size", 1))),
      ask(secrets(add("/token", "a"))),
      ask(secrets(add("/basic", { password: "b" }))),
    ]);
    expect(await state()).toMatchObject({
      config: { host: "h", size: 1 },
      secretsPresent: ["/token", "/basic/password"],
    });
  });

  it("takes 200 patches at once, each adding a key of its own: all are stored, and each answer has its own", async () => {
    const open = contentOf({ ...definition, configSchema: { type: "object" } });
    const { ask, state } = await openService({ ...install, content: open });
    const keys = Array.from({ length: 200 }, (_, number) => `key${number}`);
    const answers = await Promise.all(keys.map((key, number) => ask(config(add(`/${key}`, number)))));
    answers.forEach((answer, number) => {
      expect(answer.config[`key${number}`]).toBe(number);
    });
    expect(Object.keys((await state())?.config ?? {}).sort()).toEqual([...keys].sort());
  });

  it("stores nothing of a patch that fails half way", async () => {
    const { ask, refused, state } = await openService();
    await ask(config(add("/host", "h")));
    const before = await state();
    expect(await refused(config(add("/size", 1), { op: "replace", path: "/missing", value: 2 }))).toMatch(
      /^invalid_request/,
    );
    expect(await state()).toEqual(before);
  });

  it("keeps values its schema no longer defines, and takes no new ones", async () => {
    const { ask, state } = await openService({
      ...install,
      content: contentOf({ ...definition, configSchema: { type: "object" } }),
    });
    await ask(config(add("/old", 1), add("/host", "h")));
    // As an update of the definition would: the schema narrows while the values stay.
    const narrowed = {
      ...((await state()) as ServiceState),
      configSchema: definition.configSchema as ServiceState["configSchema"],
    };
    const { decide } = serviceKind;
    const told = (patch: unknown[]): unknown =>
      configOf(decide(narrowed, { type: "patchConfig", patch }, 0).state as ServiceState);
    expect(told([{ op: "replace", path: "/host", value: "i" }])).toEqual({
      config: { old: 1, host: "i" },
      outdated: ["/old"],
    });
    expect(() => told([add("/new", 1)])).toThrow('does not allow "/new"');
    expect(told([{ op: "remove", path: "/old" }])).toEqual({ config: { host: "h" }, outdated: [] });
    expect(told([{ op: "remove", path: "/never/there" }])).toEqual({
      config: { old: 1, host: "h" },
      outdated: ["/old"],
    });
  });

  it("refuses a patch whose tag is not that of the configuration it was made for", async () => {
    const { refused } = await openService();
    expect(await refused({ type: "patchConfig", patch: [], ifMatch: "other" })).toMatch(/^etag_mismatch/);
  });

  it.each([
    ["disabled", openService],
    ["enabled", openEnabled],
  ] as const)(
    "seals 200 patches of an %s service at once together, and each refused one is told alone",
    async (_, open) => {
      const { ask, refused, state, vault } = await open();
      const before = vault.seals;
      const values = Array.from({ length: 200 }, (_, at) => `v${at}`);
      const wrong = Promise.all(values.map((value) => refused(secrets(add("/token", { value })))));
      const right = values.map((value) => ask(secrets(add("/basic", { password: value }))));
      for (const answer of await Promise.all(right)) expect(answer.secretsPresent).toContain("/basic/password");
      for (const answer of await wrong) expect(answer).toMatch(/^invalid_request/);
      expect((await state())?.secretsPresent).toContain("/basic/password");
      expect(vault.seals - before).toBeLessThan(10);
    },
  );

  it("refuses operations on secrets that read, and repeats no value in any error", async () => {
    const { ask, refused } = await openService();
    await ask(secrets(add("/token", "CANARY")));
    for (const operation of [
      { op: "test", path: "/token", value: "GUESS" },
      { op: "copy", from: "/token", path: "/basic" },
      { op: "move", from: "/token", path: "/other" },
      { op: "replace", path: "/missing", value: "CANARY-2" },
      { op: "add", path: "/token", value: { CANARY: 3 } },
      { op: "add", path: "/unknown", value: "CANARY-4" },
    ]) {
      const text = await refused(secrets(operation));
      expect(text).toMatch(/^invalid_request/);
      expect(text).not.toMatch(/CANARY|GUESS/);
    }
  });

  describe("given other content", () => {
    const next = contentOf(
      {
        ...definition,
        tools: [{ ...(definition.tools[0] as Definition["tools"][number]), id: "c" }],
        plan: "the next plan",
      },
      "2.0.0",
    );

    it("while disabled changes over at once, keeping configuration and secrets", async () => {
      const { ask, services } = await openService();
      await ask(config(add("/host", "h")));
      await ask(secrets(add("/token", "s")));
      await ask({ type: "setToolEnabled", toolId: "a", enabled: false });
      const after = await ask({ type: "replace", content: next });
      expect(after).toMatchObject({
        version: "2.0.0",
        config: { host: "h" },
        secretsPresent: ["/token"],
        disabledTools: [],
      });
      expect(await services.blob("pets", "plan")).toBe("the next plan");
    });

    it("while enabled stays enabled when it works, and is made ready with the new plan", async () => {
      const { ask, hydrations } = await openEnabled();
      const after = await ask({ type: "replace", content: next });
      expect(after).toMatchObject({ enabled: true, version: "2.0.0" });
      expect(await hydrations.at(-1)?.plan.load()).toBe("the next plan");
    });

    it("while enabled keeps the former version when it does not work, and says so", async () => {
      const { refused, state, toy, services } = await openEnabled();
      toy.failure = new Error("down");
      expect(await refused({ type: "replace", content: next })).toMatch(
        /^upstream_failed: .*The former version stays active/,
      );
      const demanding = { ...next.definition, configSchema: { type: "object", required: ["port"] } };
      expect(await refused({ type: "replace", content: contentOf(demanding) })).toMatch(/^invalid_request: .*port/);
      expect(await state()).toMatchObject({ enabled: true, version: "1.0.0" });
      expect(await services.blob("pets", "plan")).toBe("the plan");
    });

    it("changed while it is being tried is tried again with what is so now", async () => {
      const { ask, toy, hydrations } = await openEnabled();
      const { promise, resolve } = Promise.withResolvers<void>();
      toy.beforeReady = () => promise;
      const replacing = ask({ type: "replace", content: next });
      const patching = ask(config(add("/size", 7)));
      resolve();
      await patching;
      expect(await replacing).toMatchObject({ version: "2.0.0", config: { host: "h", size: 7 } });
      expect(hydrations.at(-1)?.config).toEqual({ host: "h", size: 7 });
    });

    it("when its document no longer works is stale: not callable, not to be enabled, mended by other content", async () => {
      const { ask, refused } = await openService();
      await ask(config(add("/host", "h")));
      await ask({ type: "markStale", reason: "unreadable" });
      expect(await refused(enabled(true))).toMatch(/^conflict: .*stale \(unreadable\)/);
      expect((await ask({ type: "replace", content: next })).stale).toBeNull();
    });

    it("from a registry only may be asked to update by itself", async () => {
      const { refused } = await openService();
      expect(await refused({ type: "setAutoUpdate", autoUpdate: true, constraint: null })).toMatch(/^conflict/);
    });
  });

  it("remembers which tools may not be called", async () => {
    const { ask } = await openService();
    expect((await ask({ type: "setToolEnabled", toolId: "a", enabled: false })).disabledTools).toEqual(["a"]);
    expect((await ask({ type: "setToolEnabled", toolId: "a", enabled: false })).disabledTools).toEqual(["a"]);
    expect((await ask({ type: "setToolEnabled", toolId: "a", enabled: true })).disabledTools).toEqual([]);
  });

  it("takes everything along when it is deleted, also what its adapter held", async () => {
    const { ask, refused, store, registry } = await openEnabled();
    await ask({ type: "delete" });
    expect(registry.latest("pets")).toBeUndefined();
    expect(await refused({ type: "delete" })).toMatch(/^not_found/);
    const left = await store.range({ prefix: "", limit: 100 });
    expect(left.map(({ key }) => key).filter((key) => !key.startsWith("m/"))).toEqual([]);
  });

  it("deleted while it is made ready leaves nothing behind on the adapter", async () => {
    const { ask, refused, toy, registry } = await openService();
    await ask(config(add("/host", "h")));
    await ask(secrets(add("/token", "s")));
    const { promise, resolve } = Promise.withResolvers<void>();
    toy.beforeReady = () => promise;
    const enabling = refused(enabled(true));
    await ask({ type: "delete" });
    expect(await enabling).toMatch(/^not_found/);
    resolve();
    await new Promise((done) => setTimeout(done, 20));
    expect(registry.latest("pets")).toBeUndefined();
  });

  it("changed while it is being enabled is made ready again before it is enabled", async () => {
    const { ask, toy, hydrations } = await openService();
    await ask(config(add("/host", "h")));
    await ask(secrets(add("/token", "s")));
    const { promise, resolve } = Promise.withResolvers<void>();
    toy.beforeReady = () => promise;
    const enabling = ask(enabled(true));
    await ask(config(add("/size", 42)));
    resolve();
    expect((await enabling).enabled).toBe(true);
    expect(hydrations.at(-1)?.config).toEqual({ host: "h", size: 42 });
  });
});

describe("a record of version 1", () => {
  it("is brought forward: it knew no icons", async () => {
    const { state } = await openService();
    const { icon, ...old } = (await state())!;
    expect(icon).toBeNull();
    expect(serviceKind.schema.safeParse(old).success).toBe(false);
    expect(serviceKind.schema.parse(serviceKind.migrate?.(old, 1))).toEqual({ ...old, icon: null });
  });
});

describe("the icon of a service", () => {
  const icon = { hash: "i".repeat(64), base64: "aWNvbg==" };
  const content = contentOf(definition);

  it("is kept beside the record, stays when an update says nothing of it, and goes when there is none any more", async () => {
    const { ask, services } = await openService({ ...install, content: { ...content, icon } } as ServiceMessage);
    expect(await services.blob("pets", "icon")).toBe(icon.base64);
    expect(await ask({ type: "replace", content })).toMatchObject({ icon: icon.hash });
    expect(await services.blob("pets", "icon")).toBe(icon.base64);
    expect(await ask({ type: "replace", content: { ...content, icon: null } })).toMatchObject({ icon: null });
    expect(await services.blob("pets", "icon")).toBeUndefined();
  });
});

describe("tools of another content", () => {
  const tool = (id: string) => ({ id, name: id, summary: "", description: "", parameterNames: [] });
  const withTools = (ids: readonly string[], formerTools?: readonly string[]): ServiceMessage => ({
    type: "replace",
    content: { ...contentOf({ ...definition, tools: ids.map(tool) }), formerTools },
  });

  it("keep their flags by id, and those that are new start disabled", async () => {
    const { ask } = await openService();
    await ask({ type: "setToolEnabled", toolId: "a", enabled: false });
    expect(await ask(withTools(["a", "b", "c"], ["a", "b"]))).toMatchObject({ disabledTools: ["a", "c"] });
    await ask({ type: "setToolEnabled", toolId: "c", enabled: true });
    expect(await ask(withTools(["b", "c"], ["a", "b", "c"]))).toMatchObject({ disabledTools: [] });
  });

  it("start enabled where there were none before", async () => {
    const { ask } = await openService();
    expect(await ask(withTools(["a", "b"], []))).toMatchObject({ disabledTools: [] });
  });
});
