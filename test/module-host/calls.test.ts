/** Calls of modules that are broken or hostile: each costs a clear error, and nothing else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapterCode, invocation, type OpenHost, openService, openSharedHost, writeModule } from "./modules.ts";

/** One for the file: nothing that a module does may spoil it for the next. */
let host: OpenHost;
beforeAll(async () => {
  host = await openSharedHost();
});
afterAll(() => host.close());

describe("a call", () => {
  const codes: readonly (readonly [code: string, kind: string])[] = [
    ["invalid_request", "invalid_request"],
    ["upstream_failed", "upstream_failed"],
    ["timeout", "timeout"],
    ["conflict", "conflict"],
    ["internal", "upstream_failed"],
    ["toString", "upstream_failed"],
    ["__proto__", "upstream_failed"],
  ];
  it("answers with the kinds of the contract, and upstream_failed for any other", async () => {
    const body = `throw Object.assign(new Error("said\\n no"), { code: parameters.code })`;
    const { service } = await openService(
      host,
      writeModule(adapterCode({ fail: body, odd: `throw { get message() { throw 1 } }` })),
    );
    for (const [code, kind] of codes) {
      await expect(service.invoke(invocation("fail", { code }))).rejects.toMatchObject({
        kind,
        message: `Tool "fail" of service "s": said no`,
      });
    }
    await expect(service.invoke(invocation("odd"))).rejects.toMatchObject({ kind: "upstream_failed" });
  });

  it("checks parameters before the module sees them", async () => {
    const code = `let seen = 0; export default { type: "adapter", setup: () => ({
      generateDefinition: () => ({ name: "a", tools: [{ id: "t", name: "t", inputSchema: { type: "object", required: ["a"] } }] }),
      hydrate() {}, invoke: () => ++seen }) }`;
    const { service } = await openService(host, writeModule(code));
    await expect(service.invoke(invocation("t", {}))).rejects.toMatchObject({ kind: "invalid_request" });
    expect(await service.invoke(invocation("t", { a: 1 }))).toBe(1);
    await expect(service.invoke(invocation("none", {}))).rejects.toMatchObject({ kind: "not_found" });
  });

  it("times out, tells the module so, and drops the late answer", async () => {
    const code = adapterCode(
      {
        late: `await new Promise((resolve) => signal.addEventListener("abort", resolve)); aborted += 1; return "late"`,
        aborted: "return aborted",
      },
      "let aborted = 0;",
    );
    const { service } = await openService(host, writeModule(code));
    await expect(service.invoke(invocation("late", {}, 100))).rejects.toMatchObject({ kind: "timeout" });
    const controller = new AbortController();
    const cancelled = service.invoke({ ...invocation("late"), signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    await expect(cancelled).rejects.toMatchObject({ kind: "cancelled" });
    await expect.poll(() => service.invoke(invocation("aborted"))).toBe(2);
    expect(host.processes().at(-1)).toMatchObject({ restarts: 0, lastError: null });
  });

  const writeFrame = `
    const fs = await import("node:fs");
    const frame = (text, length = Buffer.byteLength(text)) => { const head = Buffer.alloc(4); head.writeUInt32BE(length); fs.writeSync(3, Buffer.concat([head, Buffer.from(text)])); };
    const wait = () => new Promise((resolve) => setTimeout(resolve, 5000));`;
  const lies: Readonly<Record<string, string>> = {
    "is not JSON": `frame("{"); await wait();`,
    "is of no known type": `frame('{"type":"root"}'); await wait();`,
    "has a member too many": `frame('{"type":"pong","id":1,"x":1}'); await wait();`,
    "is an array": `frame("[]"); await wait();`,
    "is huge": `frame("x", 0xffffffff); await wait();`,
    "nests without end": `frame("[".repeat(2e3) + "]".repeat(2e3)); await wait();`,
    "answers a call that was never made": `frame('{"type":"answer","id":999999}'); await wait();`,
    "says hello again": `frame('{"type":"hello","protocol":1,"moduleType":"adapter"}'); await wait();`,
    "is ready again": `frame('{"type":"ready"}'); await wait();`,
    "refuses out of turn": `frame('{"type":"refused","message":"x"}'); await wait();`,
    "prints for a run that is none": `frame('{"type":"printed","run":999999,"stream":"stdout","text":"x"}'); await wait();`,
    "fetches with an id of the past": `frame('{"type":"fetch","id":1,"url":"http://127.0.0.1:1"}'); frame('{"type":"fetch","id":1,"url":"http://127.0.0.1:1"}'); await wait();`,
  };
  it.each(Object.entries(lies))("ends a process whose message %s", async (_name, body) => {
    const { service } = await openService(
      host,
      writeModule(adapterCode({ lie: writeFrame + body, ok: `return "ok"` })),
    );
    await expect(service.invoke(invocation("lie"))).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringContaining("broke the protocol"),
    });
    expect(await service.invoke(invocation("ok"))).toBe("ok");
  });

  it("refuses an answer nested so deep that nobody could write it", async () => {
    const body = `let deep = []; for (let i = 0; i < parameters.levels; i++) deep = [deep]; return deep`;
    const { service } = await openService(host, writeModule(adapterCode({ deep: body })));
    for (const levels of [600, 1e6]) {
      await expect(service.invoke(invocation("deep", { levels }))).rejects.toMatchObject({ kind: "upstream_failed" });
    }
    expect(JSON.stringify(await service.invoke(invocation("deep", { levels: 500 })))).toHaveLength(1_002);
    // The module did nothing that it would have to be ended for.
    expect(host.processes().at(-1)).toMatchObject({ restarts: 0 });
  });
});

it("cuts and counts what a module prints, and reads a flood only as fast as it wants to", async () => {
  const before = host.log.lines.length;
  const flood = `process.stdout.write(("x".repeat(5000) + "\\n").repeat(300)); for (let i = 0; i < 300; i++) context.log.info("said " + i); return "done"`;
  const { service } = await openService(
    host,
    writeModule(adapterCode({ flood, endless: `for (;;) console.log("x".repeat(1000))` })),
  );
  expect(await service.invoke(invocation("flood"))).toBe("done");
  const lines = host.log.lines
    .slice(before)
    .filter(({ event }) => event === "module-printed" || event === "module-log");
  expect(lines.length).toBeLessThanOrEqual(100);
  expect(lines.every(({ message, moduleId }) => message.length <= 1_001 && moduleId === "sample")).toBe(true);
  const used = process.cpuUsage();
  await expect(service.invoke(invocation("endless", {}, 2_000))).rejects.toMatchObject({ kind: "timeout" });
  const { user, system } = process.cpuUsage(used);
  // Two seconds of flood: reading it unpaced would take most of them.
  expect((user + system) / 1_000).toBeLessThan(1_000);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(host.log.of("module-log-dropped").length).toBeGreaterThan(0);
});

it("fences memory outside the heap, in a call as well", async () => {
  const { service } = await openService(
    host,
    writeModule(
      adapterCode({ eat: `const all = []; for (;;) all.push(Buffer.alloc(16 * 1024 * 1024, 1))`, ok: `return "ok"` }),
    ),
  );
  const failure = (await service.invoke(invocation("eat")).catch((error: unknown) => error)) as { message: string };
  expect(failure.message).toMatch(/ran out of memory|allocat/);
  expect(await service.invoke(invocation("ok"))).toBe("ok");
});
