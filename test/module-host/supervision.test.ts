/** Processes of modules that end: when they are started again, when they are given up, and who notices. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { descendants, isAlive, procFile } from "../executor/processes.ts";
import { until } from "../until.ts";
import { adapterCode, hosted, invocation, type OpenHost, openService, openSharedHost, writeModule } from "./modules.ts";

let host: OpenHost;
beforeAll(async () => {
  host = await openSharedHost({ unresponsiveMs: 1_000, startMs: 5_000 });
});
afterAll(() => host.close());

const tools = {
  ok: `return { service: hydrated.serviceId, hydrations: hydrated.hydrations }`,
  exit: `process.exit(9)`,
  throwLater: `setTimeout(() => { throw new Error("later") }, 10); await new Promise(() => {})`,
  slow: `await new Promise((resolve) => setTimeout(resolve, 1500)); return "slow"`,
  loop: `for (;;);`,
};

it("fails the calls in a process that ends, each once, and makes services ready again in the next one", async () => {
  const { adapter, service } = await openService(host, writeModule(adapterCode(tools)));
  const { plan: text } = await adapter.define({ text: "" });
  const other = await adapter.hydrate({
    serviceId: "t",
    plan: { hash: text, load: async () => text },
    config: {},
    secrets: {},
  });
  expect(await other.invoke(invocation("ok"))).toEqual({ service: "t", hydrations: 2 });
  const outcomes = await Promise.allSettled([
    service.invoke(invocation("slow")),
    other.invoke(invocation("slow")),
    service.invoke(invocation("exit")),
  ]);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "upstream_failed" } });
    expect((outcome as PromiseRejectedResult).reason.message).toContain("ended with exit code 9");
  }
  // In the new process the one that is called is the first.
  expect(await other.invoke(invocation("ok"))).toEqual({ service: "t", hydrations: 1 });
  const both = await Promise.all([service.invoke(invocation("ok")), service.invoke(invocation("ok"))]);
  expect(both).toEqual([
    { service: "s", hydrations: 2 },
    { service: "s", hydrations: 2 },
  ]);
  expect(host.processes().at(-1)).toMatchObject({ restarts: 1, lastError: "ended with exit code 9" });
});

it("names an error that nobody caught", async () => {
  const { service } = await openService(host, writeModule(adapterCode(tools)));
  await expect(service.invoke(invocation("throwLater"))).rejects.toMatchObject({
    message: expect.stringContaining("ended with exit code 1: Error: later"),
  });
});

it("times out a call that computes, and ends the process that gives no sign of life", async () => {
  const { service } = await openService(host, writeModule(adapterCode(tools)));
  const pid = host.processes().at(-1)?.pid;
  await expect(service.invoke(invocation("loop", {}, 200))).rejects.toMatchObject({ kind: "timeout" });
  await until(() => host.processes().at(-1)?.lastError === "answered nothing for 1000 ms");
  expect(await service.invoke(invocation("ok"))).toMatchObject({ service: "s" });
  expect(host.processes().at(-1)?.pid).not.toBe(pid);
});

it("gives up a module that keeps crashing, once, and leaves the others alone", async () => {
  const reasons: string[] = [];
  const crashing = adapterCode(tools, `setTimeout(() => process.exit(7), 300);`);
  const [bad, good] = await Promise.all([
    openService(host, writeModule(crashing, { id: "bad" }), { onFailed: (reason) => reasons.push(reason) }),
    openService(host, writeModule(adapterCode(tools), { id: "good" })),
  ]);
  let served = 0;
  while (reasons.length === 0) {
    expect(await good.service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
    served += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(served).toBeGreaterThan(10);
  expect(reasons).toEqual(["crashed 5 times within 60 s; last its process ended with exit code 7"]);
  const refused = { kind: "unavailable", message: expect.stringContaining("crashed 5 times within 60 s") };
  await expect(bad.service.invoke(invocation("ok"))).rejects.toMatchObject(refused);
  await expect(bad.adapter.define({ text: "" })).rejects.toMatchObject(refused);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(reasons).toHaveLength(1);
  expect(host.log.of("module-crashed").filter(({ moduleId }) => moduleId === "bad")).toHaveLength(4);
  expect(host.log.of("module-failed").filter(({ moduleId }) => moduleId === "bad")).toHaveLength(1);
});

it("gives up a module that cannot be set up again", async () => {
  const reasons: string[] = [];
  // Outlives its first process by what the host keeps: the configuration tells nothing, so the start time decides.
  const code = adapterCode(tools, `if (Date.now() > ${Date.now() + 2_500}) throw new Error("expired");`);
  const { service } = await openService(host, writeModule(code, { id: "expiring" }), {
    onFailed: (reason) => reasons.push(reason),
  });
  await new Promise((resolve) => setTimeout(resolve, 2_600));
  await expect(service.invoke(invocation("exit"))).rejects.toMatchObject({ kind: "upstream_failed" });
  await expect(service.invoke(invocation("ok"))).rejects.toMatchObject({
    kind: "unavailable",
    message: expect.stringContaining("cannot be loaded: expired"),
  });
  await until(() => reasons.length > 0);
  expect(reasons[0]).toContain("cannot be loaded: expired");
});

it("ends a process that nobody needs and starts another for the next call", async () => {
  const brief = await openSharedHost({ idleMs: 200 });
  onTestFinished(() => brief.close());
  const { service } = await openService(brief, writeModule(adapterCode(tools)));
  expect(await service.invoke(invocation("slow"))).toBe("slow");
  const first = brief.processes()[0]?.pid ?? 0;
  expect(brief.processes()[0]).toMatchObject({ state: "idle", startedAt: expect.any(Number) });
  await until(() => brief.processes()[0]?.pid === null && !isAlive(first));
  expect(brief.processes()[0]).toMatchObject({ state: "down", startedAt: null });
  expect(await service.invoke(invocation("ok"))).toEqual({ service: "s", hydrations: 1 });
  expect(brief.log.of("module-crashed")).toEqual([]);
});

it("answers calls and leaves no process when it closes in the middle of everything", async () => {
  const closing = await openSharedHost();
  const { service } = await openService(closing, writeModule(adapterCode(tools)));
  const pid = closing.processes()[0]?.pid ?? 0;
  const hanging = writeModule(`await new Promise(() => setTimeout(() => {}, 1e6))`);
  const calls = Promise.allSettled([
    service.invoke(invocation("slow", {}, 60_000)),
    closing.openAdapter(hosted(hanging)),
    closing.inspect(hanging),
  ]);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await closing.close();
  for (const { status } of await calls) expect(status).toBe("rejected");
  expect(isAlive(pid)).toBe(false);
  await expect(closing.inspect(hanging)).rejects.toMatchObject({ kind: "unavailable" });
});

it.each(["bubblewrap", "permission", "none"])("ends its processes when the server is killed (%s)", async (layer) => {
  const looping = writeModule(adapterCode(tools));
  const program = fileURLToPath(new URL("./doomed-host.ts", import.meta.url));
  const doomed = spawn(process.execPath, [program, layer, JSON.stringify(looping)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void doomed.kill("SIGKILL"));
  await once(doomed.stdout, "data");
  const below = descendants(doomed.pid ?? 0);
  expect(
    below.filter(
      (pid) =>
        procFile(pid, "cmdline").includes("module-host/runner") || procFile(pid, "cmdline").includes("/runner/main"),
    ).length,
  ).toBeGreaterThan(0);
  doomed.kill("SIGKILL");
  await until(() => below.every((pid) => !isAlive(pid)));
});
