/** Putting modules in service: opens first, switches then, closes the former last, in the order asked for. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { adapterRetireMs } from "../../src/limits.ts";
import { ActiveAdapters } from "../../src/modules/active-adapters.ts";
import { ActiveEnvironment } from "../../src/modules/active-environment.ts";
import { openModuleRuntime } from "../../src/modules/module-runtime.ts";
import type { Adapter } from "../../src/ports/adapter.ts";
import type { BuiltinModule } from "../../src/ports/builtin-module.ts";
import type { HostedModule, ModuleHost } from "../../src/ports/module-host.ts";
import type { ModuleActivation } from "../../src/ports/module-runtime.ts";
import type { ModulePackage, Packages } from "../../src/ports/packages.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";

function toyAdapter(id: string, closed: string[], name = id): Adapter {
  return {
    id,
    define: () => Promise.reject(new Error("not asked")),
    describe: () => Promise.reject(new Error("not asked")),
    hydrate: () => Promise.reject(new Error("not asked")),
    close: async () => void closed.push(name),
  };
}

function openStage() {
  const clock = new ManualClock();
  const closed: string[] = [];
  const failed: string[] = [];
  const hosted: HostedModule[] = [];
  const world = { unavailable: null as string | null, failure: undefined as unknown, opening: async () => {} };
  const adapters = new ActiveAdapters();
  const host: ModuleHost = {
    get unavailable() {
      return world.unavailable;
    },
    inspect: () => Promise.reject(new Error("not asked")),
    async openAdapter(module) {
      hosted.push(module);
      await world.opening();
      if (world.failure !== undefined) throw world.failure;
      return toyAdapter("toy", closed, `toy-${hosted.length}`);
    },
    openEnvironment: () => Promise.reject(new Error("not asked")),
    processes: () => [],
    close: async () => void closed.push("host"),
  };
  const plain = { name: "", description: "", version: "1.0.0", configSchema: true, secretsSchema: true };
  const builtins: readonly BuiltinModule[] = [
    {
      ...plain,
      id: "openapi",
      type: "adapter",
      enabledAtFirst: true,
      missing: null,
      open: async () => toyAdapter("openapi", closed),
    },
    {
      ...plain,
      id: "absent",
      type: "adapter",
      enabledAtFirst: true,
      missing: "No bubblewrap",
      open: () => Promise.reject(new Error("not asked")),
    },
  ];
  const packages = {
    open: async (id: string, hash: string) => ({ hash, folder: `/modules/${id}` }) as ModulePackage,
  } as Packages;
  const runtime = openModuleRuntime({
    builtins,
    packages,
    host,
    adapters,
    environment: new ActiveEnvironment(silentLog),
    clock,
    log: silentLog,
    onFailed: (...words) => failed.push(words.join(" ")),
  });
  return { runtime, adapters, world, closed, failed, hosted, clock };
}

const toy: ModuleActivation = { moduleId: "toy", type: "adapter", hash: "h1", config: {}, secrets: {}, start: "now" };
const builtin = (moduleId: string): ModuleActivation => ({ ...toy, moduleId, hash: null });

describe("the module runtime", () => {
  it("puts built-in and installed adapters in service and takes them out", async () => {
    const { runtime, adapters } = openStage();
    await runtime.activate(builtin("openapi"));
    await runtime.activate(toy);
    expect(adapters.ids()).toEqual(["openapi", "toy"]);
    runtime.deactivate("toy");
    runtime.deactivate("unknown");
    await expect.poll(() => adapters.ids()).toEqual(["openapi"]);
  });

  it("keeps the former in service when the new one does not open, and closes it later when it does", async () => {
    const { runtime, adapters, world, closed, clock } = openStage();
    await runtime.activate(toy);
    const former = adapters.get("toy");
    world.failure = new Failure("timeout", "Slow");
    await expect(runtime.activate({ ...toy, hash: "h2" })).rejects.toThrow("Slow");
    expect(adapters.get("toy")).toBe(former);
    world.failure = undefined;
    await runtime.activate({ ...toy, hash: "h2" });
    expect(adapters.get("toy")).not.toBe(former);
    expect(closed).toEqual([]);
    await clock.advance(adapterRetireMs);
    expect(closed).toEqual(["toy-1"]);
  });

  it("does what is asked of one module in order, and does not make others wait", async () => {
    const { runtime, adapters, world, hosted } = openStage();
    const gate = Promise.withResolvers<void>();
    world.opening = () => gate.promise;
    const first = runtime.activate(toy);
    const second = runtime.activate({ ...toy, config: { size: 2 } });
    runtime.deactivate("toy");
    await runtime.activate(builtin("openapi"));
    expect(hosted).toHaveLength(1);
    gate.resolve();
    await Promise.all([first, second]);
    await expect.poll(() => adapters.ids()).toEqual(["openapi"]);
    expect(hosted.map(({ config }) => config)).toEqual([{}, { size: 2 }]);
  });

  it.each([
    ["a built-in that this server does not have", "unknown", 'This server has no built-in module "unknown"'],
    ["a built-in that this machine cannot use", "absent", "No bubblewrap"],
  ])("refuses %s", async (_, moduleId, reason) => {
    await expect(openStage().runtime.activate(builtin(moduleId))).rejects.toMatchObject({
      kind: "conflict",
      message: reason,
    });
  });

  it("refuses packages where no module can be confined", async () => {
    const { runtime, world, hosted } = openStage();
    world.unavailable = "Nothing confines modules here";
    await expect(runtime.activate(toy)).rejects.toMatchObject({ kind: "conflict", message: world.unavailable });
    expect(hosted).toEqual([]);
  });

  it("reports the package that failed", async () => {
    const { runtime, hosted, failed } = openStage();
    await runtime.activate(toy);
    hosted[0]?.onFailed("it ended with code 1");
    expect(failed).toEqual(["toy h1 it ended with code 1"]);
  });

  it("closes everything once, the retired ones included", async () => {
    const { runtime, closed, clock } = openStage();
    await runtime.activate(builtin("openapi"));
    await runtime.activate(toy);
    await runtime.activate({ ...toy, hash: "h2" });
    await runtime.close();
    await clock.advance(adapterRetireMs);
    expect(closed.sort()).toEqual(["host", "openapi", "toy-1", "toy-2"]);
  });
});
