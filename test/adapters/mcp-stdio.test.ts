/** MCP servers as processes: called, refused, dying, flooding. Real processes, run by this Node. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mcpLogLinesPerSecondMax, mcpReconnectMaxMs } from "../../src/limits.ts";
import { measureLongestTurn, realClock } from "./adapter-bench.ts";
import { hurriedClock, type McpBench, openMcpBench, type Ready } from "./mcp-bench.ts";
import { command, stdioDocument, text } from "./mcp-stdio-bench.ts";

let bench: McpBench;
let folder: string;
/** What the honest server says of itself: all others claim the same. */
let discovered: object;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "mcp-"));
  writeFileSync(join(folder, "plain"), "#!/bin/sh\n");
  const allowed = [command, "node", "no-such-command-anywhere", join(folder, "plain"), join(folder, "gone")];
  bench = await openMcpBench({ stdioCommands: allowed });
  discovered = JSON.parse(await bench.discover({ document: stdioDocument("honest") }));
});
afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true });
});

async function installed(
  mode: string,
  settings: Parameters<McpBench["ready"]>[1] & { env?: object } = {},
): Promise<Ready> {
  const { env, ...rest } = settings;
  return bench.ready({ ...discovered, ...stdioDocument(mode), ...(env === undefined ? {} : { env }) }, rest);
}

describe("an honest server", () => {
  test("is discovered, called, and cancelled", async () => {
    const { definition, call, service } = await installed("honest");
    expect(definition).toMatchObject({ title: "Calculator", version: "2.1.0" });
    expect(definition.configSchema).not.toHaveProperty("properties.url");
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 }, isError: false });
    expect(await call("fail")).toMatchObject({ isError: true });
    await expect(call("wait", { ms: 60_000 }, { timeoutMs: 200 })).rejects.toMatchObject({ kind: "timeout" });
    expect(await Promise.all(Array.from({ length: 20 }, (_, a) => call("add", { a, b: 0 })))).toHaveLength(20);
    service.close?.();
  });

  test("sees the PATH and what it was given, nothing else of ours", async () => {
    process.env.MCP_CANARY = "secret of the server";
    const { call, service } = await installed("honest", { env: { MODE: "a" }, secrets: { env: { LEDGER_KEY: "k1" } } });
    const environment = JSON.parse(text(await call("environment")));
    expect(environment).toMatchObject({ PATH: process.env.PATH, LANG: "C.UTF-8", MODE: "a", LEDGER_KEY: "k1" });
    // The shell in front adds what is its own.
    const ours = Object.keys(environment).filter((name) => !["PWD", "OLDPWD", "SHLVL", "_"].includes(name));
    expect(ours.sort()).toEqual(["LANG", "LEDGER_KEY", "MODE", "PATH"]);
    expect(JSON.parse(text(await call("place")))).toMatchObject({ cwd: "/" });
    service.close?.();
  });

  test("may greet on its output", async () => {
    const { call, service } = await installed("greet");
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ isError: false });
    service.close?.();
  });

  test("that changes its tools is noticed, and the next sync has them", async () => {
    const { call, service } = await installed("honest");
    expect(text(await call("change"))).toBe("changed");
    await expect.poll(() => bench.lines.map(({ event }) => event)).toContain("mcp-tools-changed");
    service.close?.();
  });
});

describe("commands that may not be started", () => {
  test.each(["/bin/sh", "sh", `${command} `, "./node"])("%s", async (other) => {
    const refused = bench.discover({ document: { command: other } });
    await expect(refused).rejects.toMatchObject({ kind: "invalid_request" });
  });

  test("the error names the setting, at discovery and at hydration", async () => {
    const message = 'Cannot start "sh": it is not one of the commands in setting SERVICE_MCP_STDIO_COMMANDS';
    await expect(bench.discover({ document: { command: "sh" } })).rejects.toMatchObject({ message });
    await expect(bench.ready({ command: "sh" })).rejects.toMatchObject({ message });
  });

  test("a variable that loads other code is refused among the secrets too", async () => {
    const refused = bench.ready(stdioDocument("honest"), { secrets: { env: { LD_PRELOAD: "/tmp/x.so" } } });
    await expect(refused).rejects.toMatchObject({
      kind: "invalid_request",
      message: expect.stringMatching(/"LD_PRELOAD"$/),
    });
  });

  test.each([
    ["no-such-command-anywhere", /^MCP server "no-such-command-anywhere" was not found/],
    ["gone", /" was not found/],
    ["plain", /" may not be executed/],
  ])("%s is allowed but cannot be started", async (name, message) => {
    const given = name.startsWith("no-") ? name : join(folder, name);
    await expect(bench.ready({ command: given })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
  });
});

describe("servers that fail", () => {
  test("one that exits at once is refused with its last words, without its secrets", async () => {
    await expect(
      bench.ready(stdioDocument("exit"), { secrets: { env: { LEDGER_KEY: "very-secret" } } }),
    ).rejects.toMatchObject({
      kind: "upstream_failed",
      message: `MCP server "${command}" ended with exit code 3; its last words were "cannot open the ledger with key ***"`,
    });
    expect(JSON.stringify(bench.lines)).not.toContain("very-secret");
  });

  test("one that dies in a call fails that call, and the next one starts it again", async () => {
    const { call, service } = await installed("honest");
    const waiting = call("wait", { ms: 60_000 });
    const outcome = expect(waiting).rejects.toMatchObject({ kind: "upstream_failed" });
    await expect(call("die")).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(/ended with exit code 7$/),
    });
    await outcome;
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ isError: false });
    service.close?.();
  });

  test("one that keeps dying is waited for, and calls meanwhile fail at once", async () => {
    let now = 0;
    const stopped = await openMcpBench({ stdioCommands: [command], clock: { ...realClock, monotonic: () => now } });
    const { call } = await stopped.ready(discovered);
    await expect(call("die")).rejects.toMatchObject({ kind: "upstream_failed" });
    await expect(call("die")).rejects.toMatchObject({ kind: "upstream_failed" });
    await expect(call("add", { a: 1, b: 2 })).rejects.toMatchObject({ message: expect.stringMatching(/exit code 7$/) });
    now += mcpReconnectMaxMs;
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ isError: false });
    await stopped.close();
  });

  test("one that is killed from outside is started again", async () => {
    const { call, service } = await installed("honest");
    const { pid } = JSON.parse(text(await call("place")));
    process.kill(pid, "SIGKILL");
    await expect
      .poll(() => call("add", { a: 1, b: 2 }).catch(() => "not yet"), { timeout: 5_000 })
      .toMatchObject({
        isError: false,
      });
    service.close?.();
  });

  test("an answer larger than allowed ends the session, and the next call gets a new one", async () => {
    const { call, service } = await installed("honest");
    await expect(call("big", { bytes: 50 * 1024 * 1024 }, { timeoutMs: 20_000 })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(/sent a message larger than \d+ bytes$/),
    });
    expect(await call("big", { bytes: 1_000_000 })).toMatchObject({ isError: false });
    service.close?.();
  });

  test.each([
    ["babble", /writes lines to its output that are no MCP messages; it wrote \d+ lines/],
    ["endless-line", /sent a message larger than/],
  ])("%s is no MCP server", async (mode, message) => {
    await expect(bench.ready(stdioDocument(mode))).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(message),
    });
  });

  test("one that hangs at the handshake is given up and ended", async () => {
    const hurried = await openMcpBench({ stdioCommands: [command], clock: hurriedClock });
    await expect(hurried.ready(stdioDocument("hang"))).rejects.toMatchObject({
      kind: "timeout",
      message: expect.stringMatching(/^Cannot connect: MCP server ".*" did not answer within 15000 ms$/),
    });
    await hurried.close();
  });
});

describe("servers that flood", () => {
  test("their standard error reaches the log in part only", async () => {
    const { call, service } = await installed("flood-stderr");
    const turned = measureLongestTurn();
    const started = performance.now();
    for (let calls = 0; calls < 10; calls += 1)
      expect(await call("wait", { ms: 100 })).toMatchObject({ isError: false });
    const seconds = Math.ceil((performance.now() - started) / 1_000) + 3;
    service.close?.();
    const noise = bench.lines.filter(({ event }) => event === "mcp-stderr");
    expect(noise.length).toBeGreaterThan(0);
    expect(noise.length).toBeLessThan(seconds * mcpLogLinesPerSecondMax * 2);
    expect(bench.lines.some(({ event }) => event === "mcp-stderr-dropped")).toBe(true);
    expect(turned()).toBeLessThan(1_000);
  });

  test("their messages are read slowly, and the server stays responsive", async () => {
    const { call, service } = await installed("flood-stdout");
    const turned = measureLongestTurn();
    await call("add", { a: 1, b: 2 }, { timeoutMs: 1_500 }).catch((error) =>
      expect(error).toMatchObject({ kind: "timeout" }),
    );
    expect(turned()).toBeLessThan(1_000);
    service.close?.();
  });

  test.each([
    ["pings", '{"jsonrpc":"2.0","id":"p","method":"ping"}'],
    ["requests that nobody serves", '{"jsonrpc":"2.0","id":"p","method":"roots/list","params":{"a":1}}'],
    ["answers nobody waits for", '{"jsonrpc":"2.0","id":9999,"result":{}}'],
    ["errors nobody waits for", '{"jsonrpc":"2.0","id":9999,"error":{"code":1,"message":"x"}}'],
    ["changes of its tools", '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'],
  ])("thousands of %s are no trouble, and no lines in the log", async (_, line) => {
    const { call, service } = await installed("honest");
    const before = bench.lines.length;
    const turned = measureLongestTurn();
    expect(text(await call("say", { line, times: 3_000 }))).toBe("said");
    expect(turned()).toBeLessThan(1_000);
    expect(bench.lines.slice(before).filter(({ event }) => event !== "mcp-stderr").length).toBeLessThan(2);
    service.close?.();
  });

  test("a message of millions of values ends the session unread, and the next call gets a new one", async () => {
    const { call, service } = await installed("honest");
    const turned = measureLongestTurn();
    await expect(call("list", { items: 3_000_000 })).rejects.toMatchObject({
      kind: "upstream_failed",
      message: expect.stringMatching(/sent what is too much to read: More than \d+ values in one answer/),
    });
    expect(turned()).toBeLessThan(1_000);
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ isError: false });
    service.close?.();
  });

  test("one that does not read is written to within bounds, then given up", async () => {
    const { call, service } = await installed("deaf");
    await call("environment");
    const path = "x".repeat(4 * 1024 * 1024);
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => call("files_read.all-1", { path })));
    for (const outcome of outcomes) {
      const message = expect.stringMatching(/does not read its input: more than \d+ bytes wait for it$/);
      expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "upstream_failed", message } });
    }
    service.close?.();
  });
});
