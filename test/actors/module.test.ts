/** What a module decides, and how its effects report back: real vault, real settings rules, a runtime that fails on demand. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ModuleMessage, type ModuleState, moduleKind } from "../../src/actors/module.ts";
import { SecretSeals } from "../../src/actors/secret-seals.ts";
import { Failure, isFailure } from "../../src/errors/failure.ts";
import { moduleProbationMs } from "../../src/limits.ts";
import type { ModuleActivation } from "../../src/ports/module-runtime.ts";
import type { Packages } from "../../src/ports/packages.ts";
import { System } from "../../src/runtime/system.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";
import { installedModule, moduleContent } from "./installed-module.ts";

const install: ModuleMessage = {
  type: "install",
  id: "toy",
  moduleType: "adapter",
  source: "http://registry.test/toy-1.0.0.tgz",
  registry: { registryId: "r", entryId: "toy", descriptor: "http://registry.test/toy.json" },
  autoUpdate: true,
  constraint: "^1.0.0",
  content: moduleContent("1.0.0"),
};

async function openModule(first: ModuleMessage = install) {
  const clock = new ManualClock();
  const store = await openMemoryStore({ clock, log: silentLog });
  const system = new System({ store, clock, log: silentLog });
  const activations: ModuleActivation[] = [];
  const world = {
    failure: undefined as unknown,
    before: async (): Promise<void> => {},
    inService: undefined as string | null | undefined,
    removed: [] as string[],
  };
  const runtime = {
    async activate(activation: ModuleActivation): Promise<void> {
      activations.push(activation);
      await world.before();
      if (world.failure !== undefined) throw world.failure;
      world.inService = activation.hash;
    },
    deactivate(): void {
      world.inService = undefined;
    },
  };
  const packages = { remove: async (_: string, hash: string) => void world.removed.push(hash) } as unknown as Packages;
  const vault = openVault({ key: randomBytes(32).toString("base64") });
  const modules = system.register(moduleKind, {
    vault,
    seals: new SecretSeals(vault),
    runtime,
    packages,
    log: silentLog,
  });
  const ask = (message: ModuleMessage): Promise<ModuleState> => modules.ask("toy", message) as Promise<ModuleState>;
  const refused = (message: ModuleMessage): Promise<string> =>
    ask(message).then(
      () => "answered",
      (error: unknown) => (isFailure(error) ? `${error.kind}: ${error.message}` : `crash: ${error}`),
    );
  const state = async (): Promise<ModuleState | null> => (await modules.query("toy")).state;
  await ask(first);
  return { ask, refused, state, clock, world, activations, modules };
}

const enabled = (on: boolean): ModuleMessage => ({ type: "setEnabled", enabled: on });
const config = (...patch: unknown[]): ModuleMessage => ({ type: "patchConfig", patch });
const replace = (version: string, more = {}): ModuleMessage => ({
  type: "replace",
  source: `http://registry.test/toy-${version}.tgz`,
  content: moduleContent(version, more),
});

async function openEnabled() {
  const opened = await openModule();
  await opened.ask(enabled(true));
  return opened;
}

describe("an installed module", () => {
  it("starts disabled, and is not installed twice", async () => {
    const { state, refused } = await openModule();
    expect(await state()).toMatchObject({
      enabled: false,
      isBuiltin: false,
      missing: null,
      failed: null,
      version: "1.0.0",
    });
    expect(await refused(install)).toBe('already_exists: Module "toy" exists already');
  });

  it("is enabled only once it is in service, with defaults in its configuration", async () => {
    const { ask, state, activations, world } = await openModule();
    world.before = async () => expect((await state())?.enabled).toBe(false);
    expect(await ask(enabled(true))).toMatchObject({ enabled: true });
    expect(activations).toEqual([
      { moduleId: "toy", type: "adapter", hash: "hash-of-1.0.0", config: { size: 3 }, secrets: {}, start: "now" },
    ]);
  });

  it.each([
    [new Failure("invalid_request", "No"), "invalid_request: No"],
    [new Failure("timeout", "Slow"), 'upstream_failed: Cannot put module "toy" version 1.0.0 in service: Slow'],
    [new TypeError("boom"), 'upstream_failed: Cannot put module "toy" in service'],
  ])("stays disabled when it cannot be put in service (%s)", async (failure, answer) => {
    const { refused, state, world } = await openModule();
    world.failure = failure;
    expect(await refused(enabled(true))).toBe(answer);
    expect(await state()).toMatchObject({ enabled: false, failed: null });
  });

  it("set to what it is already, it does nothing", async () => {
    const { ask, activations } = await openEnabled();
    await ask(enabled(true));
    await ask(enabled(false));
    await ask(enabled(false));
    expect(activations).toHaveLength(1);
  });

  it("is taken out of service when it is disabled or deleted, and its packages go with it", async () => {
    const { ask, world, state } = await openEnabled();
    await ask(enabled(false));
    expect(world.inService).toBeUndefined();
    await ask(enabled(true));
    await ask(replace("1.1.0"));
    await ask({ type: "delete" });
    await Promise.resolve();
    expect(await state()).toBeNull();
    expect(world.inService).toBeUndefined();
    expect(world.removed.sort()).toEqual(["hash-of-1.0.0", "hash-of-1.1.0"]);
  });

  it("disabled while it is being started, it does not stay in service", async () => {
    const { ask, world, state } = await openEnabled();
    const gate = Promise.withResolvers<void>();
    world.before = () => gate.promise;
    const starting = ask({ type: "start", missing: null });
    await ask(enabled(false));
    gate.resolve();
    await starting;
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.inService).toBeUndefined();
    expect(await state()).toMatchObject({ enabled: false });
  });

  it("without a registry has no automatic updates", async () => {
    const { refused, state } = await openModule({
      ...install,
      registry: null,
      autoUpdate: false,
      constraint: null,
    } as ModuleMessage);
    expect(await refused({ type: "setAutoUpdate", autoUpdate: true, constraint: null })).toMatch(/^conflict: /);
    expect(await state()).toMatchObject({ autoUpdate: false });
  });
});

describe("settings of a module", () => {
  it("are stored whole, and put an enabled one in service again", async () => {
    const { ask, activations, refused, state } = await openEnabled();
    await ask(config({ op: "add", path: "/size", value: 5 }));
    expect(activations.at(-1)?.config).toEqual({ size: 5 });
    expect(await refused(config({ op: "add", path: "/unknown", value: 5 }))).toMatch(/^invalid_request: .*unknown/);
    expect((await state())?.config).toEqual({ size: 5 });
  });

  it("stay stored when they do not work, and the former ones keep serving", async () => {
    const { world, refused, state } = await openEnabled();
    world.failure = new Failure("timeout", "Slow");
    expect(await refused(config({ op: "add", path: "/size", value: 5 }))).toBe(
      'upstream_failed: Cannot put module "toy" version 1.0.0 in service: Slow. The change is stored; the former settings keep serving',
    );
    expect(await state()).toMatchObject({ config: { size: 5 }, enabled: true });
    expect(world.inService).toBe("hash-of-1.0.0");
  });

  it("changed during an activation lead to another one with what is stored then", async () => {
    const { ask, world, activations } = await openEnabled();
    const gate = Promise.withResolvers<void>();
    world.before = () => gate.promise;
    const first = ask(config({ op: "add", path: "/size", value: 5 }));
    const second = ask(config({ op: "add", path: "/size", value: 6 }));
    gate.resolve();
    await Promise.all([first, second]);
    expect(activations.at(-1)?.config).toEqual({ size: 6 });
  });

  it("secrets are sealed, and given when it is put in service", async () => {
    const { ask, state, activations } = await openEnabled();
    await ask({ type: "patchSecrets", patch: [{ op: "add", path: "/token", value: "CANARY" }], ticket: "t" });
    expect(activations.at(-1)?.secrets).toEqual({ token: "CANARY" });
    expect(JSON.stringify(await state())).not.toContain("CANARY");
    expect(await state()).toMatchObject({ secretsPresent: ["/token"] });
  });
});

describe("another version", () => {
  it("takes over when it could be put in service, and the former is kept to go back to", async () => {
    const { ask, state, world } = await openEnabled();
    await ask(replace("1.1.0"));
    expect(await state()).toMatchObject({ version: "1.1.0", previous: { version: "1.0.0" }, enabled: true });
    expect(world.removed).toEqual([]);
    await ask(replace("1.2.0"));
    expect(await state()).toMatchObject({ version: "1.2.0", previous: { version: "1.1.0" } });
    expect(world.removed).toEqual(["hash-of-1.0.0"]);
  });

  it("does not take over when it cannot be put in service", async () => {
    const { refused, state, world } = await openEnabled();
    const before = await state();
    world.failure = new Failure("timeout", "Slow");
    expect(await refused(replace("1.1.0"))).toBe(
      'upstream_failed: Cannot put module "toy" version 1.1.0 in service: Slow. The former version stays active',
    );
    expect(await state()).toEqual(before);
    expect(world.inService).toBe("hash-of-1.0.0");
  });

  it("of a disabled module is taken as it is, without putting it in service", async () => {
    const { ask, state, activations } = await openModule();
    await ask(replace("1.1.0"));
    expect(await state()).toMatchObject({ version: "1.1.0", enabled: false, previous: { version: "1.0.0" } });
    expect(activations).toEqual([]);
  });

  it("that the stored configuration does not fit is refused", async () => {
    const { refused, state } = await openEnabled();
    const configSchema = { type: "object", required: ["host"], properties: { host: { type: "string" } } };
    expect(await refused(replace("2.0.0", { configSchema }))).toMatch(/^invalid_request: .*host/);
    expect(await state()).toMatchObject({ version: "1.0.0" });
  });

  it("is gone back from on demand, once", async () => {
    const { ask, refused, state, world } = await openEnabled();
    expect(await refused({ type: "rollBack" })).toMatch(/^conflict: .*no version before 1\.0\.0/);
    await ask(replace("1.1.0"));
    await ask({ type: "rollBack" });
    expect(await state()).toMatchObject({ version: "1.0.0", previous: null, brokenVersion: "1.1.0" });
    expect(world.inService).toBe("hash-of-1.0.0");
    expect(world.removed).toEqual(["hash-of-1.1.0"]);
    expect(await refused({ type: "rollBack" })).toMatch(/^conflict/);
  });
});

describe("a module that keeps crashing", () => {
  const crash = (hash: string): ModuleMessage => ({ type: "fail", hash, reason: "it ended with code 1" });

  it("is failed with its reason, and enabled again by whoever acts", async () => {
    const { ask, state } = await openEnabled();
    await ask(crash("hash-of-1.0.0"));
    expect(await state()).toMatchObject({ enabled: true, failed: "it ended with code 1", version: "1.0.0" });
    await ask(enabled(true));
    expect(await state()).toMatchObject({ enabled: true, failed: null });
  });

  it("soon after it took over is gone back from by itself", async () => {
    const { ask, state, world } = await openEnabled();
    await ask(replace("1.1.0"));
    await ask(crash("hash-of-1.1.0"));
    await expect.poll(async () => (await state())?.version).toBe("1.0.0");
    expect(await state()).toMatchObject({ failed: null, brokenVersion: "1.1.0", previous: null });
    expect(world.inService).toBe("hash-of-1.0.0");
  });

  it("long after it took over stays, failed", async () => {
    const { ask, state, clock } = await openEnabled();
    await ask(replace("1.1.0"));
    await clock.advance(moduleProbationMs + 1);
    await ask(crash("hash-of-1.1.0"));
    expect(await state()).toMatchObject({ version: "1.1.0", failed: "it ended with code 1" });
  });

  it("in a version that is not in service any more says nothing", async () => {
    const { ask, state } = await openEnabled();
    await ask(crash("hash-of-0.9.0"));
    expect(await state()).toMatchObject({ failed: null });
  });
});

describe("a start", () => {
  it("puts an enabled module in service, and keeps the reason when it cannot", async () => {
    const { refused, state, world } = await openEnabled();
    world.failure = new Failure("timeout", "Slow");
    expect(await refused({ type: "start", missing: null })).toMatch(/^upstream_failed/);
    expect(await state()).toMatchObject({ enabled: true, failed: expect.stringContaining("Slow") });
  });

  it("of one that serves waits for its first use; of one that was given up shows at once whether it works", async () => {
    const { ask, state, activations } = await openEnabled();
    await ask({ type: "start", missing: null });
    expect(activations.at(-1)?.start).toBe("when-used");
    await ask({ type: "fail", hash: "hash-of-1.0.0", reason: "it ended with code 1" });
    await ask({ type: "start", missing: null });
    expect(activations.at(-1)?.start).toBe("now");
    expect(await state()).toMatchObject({ failed: null });
  });

  it("marks a module missing whose package is gone, keeps its flag, and uses it again when it is back", async () => {
    const { ask, state, world, refused } = await openEnabled();
    await ask({ type: "start", missing: "Its folder is gone" });
    expect(await state()).toMatchObject({ enabled: true, missing: "Its folder is gone" });
    expect(world.inService).toBeUndefined();
    expect(await refused(enabled(true))).toBe('conflict: Cannot enable module "toy": Its folder is gone');
    await ask({ type: "start", missing: null });
    expect(await state()).toMatchObject({ enabled: true, missing: null });
    expect(world.inService).toBe("hash-of-1.0.0");
  });
});

describe("a built-in module", () => {
  const register: ModuleMessage = {
    type: "register",
    id: "toy",
    moduleType: "adapter",
    enabled: true,
    missing: null,
    content: moduleContent("0.1.0", { hash: "" }),
  };

  it("is registered once, keeps its flag, and takes the description of the server it is in", async () => {
    const { ask, state } = await openModule(register);
    await ask({ type: "start", missing: null });
    const first = await state();
    await ask(register);
    expect(await state()).toEqual(first);
    await ask(enabled(false));
    await ask({ ...register, content: moduleContent("0.2.0", { hash: "", description: "Newer" }) } as ModuleMessage);
    expect(await state()).toMatchObject({
      enabled: false,
      version: "0.2.0",
      description: "Newer",
      createdAt: first?.createdAt,
    });
  });

  it("that this machine cannot use is missing and disabled at first", async () => {
    const { state } = await openModule({ ...register, missing: "No bubblewrap" } as ModuleMessage);
    expect(await state()).toMatchObject({ enabled: false, missing: "No bubblewrap" });
  });

  it.each([{ type: "delete" }, { type: "rollBack" }, replace("9.0.0")] as ModuleMessage[])(
    "refuses $type",
    async (message) => {
      const { refused } = await openModule(register);
      expect(await refused(message)).toMatch(/^conflict: .*built in/);
    },
  );

  it("does not take the id of an installed module", async () => {
    const { refused } = await openModule();
    expect(await refused(register)).toMatch(/^already_exists/);
  });
});

describe("reports about a module deleted meanwhile", () => {
  const purpose = { kind: "enable", tickets: ["t"] } as const;
  const takeover = { content: moduleContent("1.0.0"), source: "", direction: "forward", broken: null } as const;
  const failure = new Failure("timeout", "Slow");

  it.each<[string, ModuleMessage, readonly string[]]>([
    ["activated", { type: "activated", generation: 1, purpose }, ["deactivate"]],
    ["takenOver", { type: "takenOver", basis: 1, takeover }, ["deactivate"]],
    ["activationFailed", { type: "activationFailed", purpose, failure }, []],
    ["takeoverFailed", { type: "takeoverFailed", failure }, []],
    ["fail", { type: "fail", hash: "h", reason: "r" }, []],
    ["start", { type: "start", missing: null }, []],
  ])("%s leaves nothing in service", (_, message, effects) => {
    const step = moduleKind.decide(null, message, 1);
    expect(step.state).toBeNull();
    expect((step.effects ?? []).map(({ type }) => type)).toEqual(effects);
  });

  it("a request is not found", () => {
    expect(() => moduleKind.decide(null, enabled(true), 1)).toThrow("There is no such module");
  });
});

describe("the stored state", () => {
  it("is what the schema says", () => {
    const state = installedModule("toy");
    expect(moduleKind.schema.parse(state)).toEqual(state);
  });
});
