/** More modules than processes may live: who is started when, who leaves, and what callers notice of it. */
import { describe, expect, it, onTestFinished } from "vitest";
import { moduleProcessWaitMs } from "../../src/limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { ModuleHost } from "../../src/ports/module-host.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { until } from "../until.ts";
import { adapterCode, hosted, invocation, openHost, openService, plan, writeModule } from "./modules.ts";

const tools = {
  ok: `return { service: hydrated.serviceId, hydrations: hydrated.hydrations }`,
  slow: `await new Promise((resolve) => setTimeout(resolve, parameters.ms)); return "slow"`,
  exit: `process.exit(9)`,
};

const module = (id: string) => writeModule(adapterCode(tools), { id });
const living = (host: ModuleHost) =>
  host
    .processes()
    .filter(({ pid }) => pid !== null)
    .map(({ moduleId }) => moduleId);

describe("a module that is opened to start when it is used", () => {
  it("has no process until then, and is a module like any other from then on", async () => {
    const host = await openHost();
    const adapter = await host.openAdapter(hosted(module("lazy"), { start: "when-used" }));
    expect(living(host)).toEqual([]);
    const { plan: text } = await adapter.define({ text: "doc" });
    expect(living(host)).toEqual(["lazy"]);
    const service = await adapter.hydrate({ serviceId: "s", plan: plan(text), config: {}, secrets: {} });
    expect(await service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
    expect(host.processes()).toMatchObject([{ restarts: 0, lastError: null }]);
  });

  it("tells its first callers when it cannot be set up, and is given up when that goes on", async () => {
    const host = await openHost();
    const reasons: string[] = [];
    const broken = writeModule(`export default { type: "adapter", setup() { throw new Error("no region") } }`);
    const adapter = await host.openAdapter(
      hosted(broken, { start: "when-used", onFailed: (reason) => reasons.push(reason) }),
    );
    const refused = { kind: "unavailable", message: expect.stringContaining("cannot be set up: no region") };
    await expect(Promise.all([adapter.define({ text: "" }), adapter.define({ text: "" })])).rejects.toMatchObject(
      refused,
    );
    await until(() => reasons.length > 0);
    expect(reasons[0]).toContain("could not be started: Module");
  });

  it("closes without ever having started", async () => {
    const host = await openHost();
    const adapter = await host.openAdapter(hosted(module("lazy"), { start: "when-used" }));
    await adapter.close();
    await expect(adapter.define({ text: "" })).rejects.toMatchObject({ kind: "unavailable" });
  });
});

describe("where fewer processes may live than there are modules", () => {
  it("the one that was not used longest leaves, and its services are made ready again when they are called", async () => {
    const host = await openHost({ processesMax: 2 });
    const a = await openService(host, module("a"));
    const b = await openService(host, module("b"));
    expect(await a.service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
    const c = await openService(host, module("c"));
    expect(living(host)).toEqual(["a", "c"]);
    expect(await b.service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
    expect(living(host)).toEqual(["b", "c"]);
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all([a, b, c].map(({ service }) => service.invoke(invocation("ok"))));
      expect(answers).toEqual([0, 1, 2].map(() => expect.objectContaining({ service: "s" })));
      expect(living(host).length).toBeLessThanOrEqual(2);
    }
    expect(host.log.of("module-crashed")).toEqual([]);
  });

  it("a call waits for a busy one to end, and an inspection does", async () => {
    const host = await openHost({ processesMax: 1 });
    const a = await openService(host, module("a"));
    const b = await host.openAdapter(hosted(module("b"), { start: "when-used" }));
    const slow = a.service.invoke(invocation("slow", { ms: 500 }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const waiting = [b.define({ text: "doc" }), host.inspect(module("c"))];
    expect(await slow).toBe("slow");
    for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe("fulfilled");
    expect(await a.service.invoke(invocation("ok"))).toMatchObject({ service: "s" });
  });

  it("a call that finds all busy for too long says so, which counts for no crash", async () => {
    const impatient: Clock = {
      ...systemClock,
      after: (ms, act) => systemClock.after(ms === moduleProcessWaitMs ? 300 : ms, act),
    };
    const host = await openHost({ processesMax: 1, clock: impatient });
    const a = await openService(host, module("a"));
    const b = await host.openAdapter(hosted(module("b"), { start: "when-used" }));
    const slow = a.service.invoke(invocation("slow", { ms: 1_500 }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await expect(b.define({ text: "doc" })).rejects.toMatchObject({
      kind: "overloaded",
      message: expect.stringContaining('Module "b" cannot be started: all 1 module processes are busy'),
    });
    expect(await slow).toBe("slow");
    await expect(b.define({ text: "doc" })).resolves.toBeDefined();
    expect(host.processes().map(({ restarts, lastError }) => ({ restarts, lastError }))).toEqual([
      { restarts: 0, lastError: null },
      { restarts: 0, lastError: null },
    ]);
  });

  it("one that crashes is started again by itself only where a place is free", async () => {
    const host = await openHost({ processesMax: 2 });
    const a = await openService(host, module("a"));
    const b = await openService(host, module("b"));
    await expect(a.service.invoke(invocation("exit"))).rejects.toMatchObject({ kind: "upstream_failed" });
    const c = await openService(host, module("c"));
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(living(host)).toEqual(["b", "c"]);
    expect(await a.service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
    onTestFinished(() => Promise.all([b, c].map(({ adapter }) => adapter.close())).then(() => undefined));
  });
});

it("a module that does not let go of its services is told of once", async () => {
  const host = await openHost();
  const code = adapterCode(tools).replace("invoke:", `dehydrate: () => { throw new Error("held") }, invoke:`);
  const { adapter, service } = await openService(host, writeModule(code, { id: "holding" }));
  const { plan: text } = await adapter.define({ text: "" });
  const other = await adapter.hydrate({ serviceId: "t", plan: plan(text), config: {}, secrets: {} });
  service.close?.();
  other.close?.();
  await until(() => host.log.of("service-not-let-go").length > 0);
  // Answered after both.
  await adapter.define({ text: "" });
  expect(host.log.of("service-not-let-go")).toMatchObject([{ level: "warn", moduleId: "holding", serviceId: "s" }]);
});
