/** What each layer says it refuses, tried from inside a module. */

import { rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  bubblewrapLayer,
  chooseIsolation,
  type IsolationLayer,
  noIsolation,
  permissionLayer,
} from "../../src/module-host/isolation.ts";
import { adapterCode, hosted, invocation, openHost, openService, writeModule } from "./modules.ts";

/** Each answers `refused: …` or gives away what it got. */
const attempts: Readonly<Record<string, string>> = {
  "reads a file of the system": `return (await import("node:fs")).readFileSync("/etc/passwd", "utf8").length`,
  "lists the root's home": `return (await import("node:fs")).readdirSync("/root")`,
  "reads the server's memory map": `return (await import("node:fs")).readFileSync("/proc/" + process.ppid + "/maps").length`,
  "writes into its folder": `(await import("node:fs")).writeFileSync(new URL("./x", import.meta.url), "x"); return "written"`,
  "writes into /tmp": `(await import("node:fs")).writeFileSync("/tmp/troupe-escape", "x"); return "written"`,
  "starts a program": `return (await import("node:child_process")).execFileSync(process.execPath, ["--version"])`,
  "starts a thread": `new (await import("node:worker_threads")).Worker("1", { eval: true }); return "started"`,
  "loads an addon": `process.dlopen({ exports: {} }, "/lib/x86_64-linux-gnu/libm.so.6"); return "loaded"`,
  "connects with node:net": `const net = await import("node:net");
    return await new Promise((resolve, reject) => net.connect(parameters.port, "127.0.0.1", () => resolve("connected")).on("error", reject))`,
  "connects with require": `const { createRequire } = await import("node:module");
    const net = createRequire(import.meta.url)("net");
    return await new Promise((resolve, reject) => net.connect(parameters.port, "127.0.0.1", () => resolve("connected")).on("error", reject))`,
  "connects with process.getBuiltinModule": `const net = process.getBuiltinModule("net");
    return await new Promise((resolve, reject) => net.connect(parameters.port, "127.0.0.1", () => resolve("connected")).on("error", reject))`,
  "connects with a stream's constructor": `const { Socket } = { Socket: process.stdout.constructor };
    return await new Promise((resolve, reject) => new Socket().connect(parameters.port, "127.0.0.1", () => resolve("connected")).on("error", reject))`,
  "connects with an active handle": `const { constructor: Socket } = process._getActiveHandles().find((handle) => handle.connect);
    return await new Promise((resolve, reject) => new Socket().connect(parameters.port, "127.0.0.1", () => resolve("connected")).on("error", reject))`,
  "connects with fetch": `return (await fetch("http://127.0.0.1:" + parameters.port)).status`,
  "connects with WebSocket": `return await new Promise((resolve, reject) => {
    const socket = new WebSocket("ws://127.0.0.1:" + parameters.port); socket.onopen = () => resolve("open"); socket.onerror = () => reject(new Error("no")) })`,
  "connects with eval": `const net = await eval('import("node:net")'); return typeof net.connect`,
  "connects from a data URL": `return Object.keys(await import("data:text/javascript,export { connect } from 'node:net'"))`,
  "connects from a script": `const vm = await import("node:vm");
    const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    return typeof (await new vm.Script('import("node:net")', { importModuleDynamically }).runInThisContext()).connect`,
  "connects from CommonJS": `return typeof (await import("./helper.cjs")).default.connect()`,
  "connects with the CommonJS loader": `return typeof (await import("./helper.cjs")).default.load().connect`,
  "connects with Node's HTTP client": `if (globalThis.Response) new Response();
    const client = globalThis[Symbol.for("undici.globalDispatcher.1")];
    return (await client.request({ origin: "http://127.0.0.1:" + parameters.port, path: "/", method: "GET" })).statusCode`,
  "sees a handle as it is made": `const hooks = await import("node:async_hooks"); return typeof hooks.createHook`,
  "replaces its program": `process.execve(process.execPath, ["node", "--version"]); return "replaced"`,
  "looks up a name": `return (await import("node:dns/promises")).lookup("localhost")`,
  "listens with node:http": `const http = await import("node:http");
    return await new Promise((resolve, reject) => http.createServer().listen(0, () => resolve("listening")).on("error", reject))`,
  "sends a datagram": `(await import("node:dgram")).createSocket("udp4").send("x", parameters.port, "127.0.0.1"); return "sent"`,
  "uses process.binding": `return Object.keys(process.binding("tcp_wrap"))`,
  "signals the server": `process.kill(process.ppid, 0); return "reached"`,
  "opens a debugger in the server": `process._debugProcess(process.ppid); return "opened"`,
  "opens a debugger in itself": `(await import("node:inspector")).open(0); return "opened"`,
  "reads an environment variable": `const names = Object.keys(process.env); if (names.length === 0) throw new Error("none"); return names`,
};

const code = adapterCode(
  Object.fromEntries(
    Object.entries(attempts).map(([name, body]) => [
      name,
      `try { const got = await (async () => { ${body} })(); return "got " + JSON.stringify(got); } catch (error) { return "refused: " + error.message; }`,
    ]),
  ),
);

function writeAttempts() {
  const modulePackage = writeModule(code);
  const helper = `module.exports = { connect: () => require("net"), load: () => module.constructor._load("net") };`;
  writeFileSync(join(modulePackage.folder, "helper.cjs"), helper);
  return modulePackage;
}

const layers: Readonly<Record<string, IsolationLayer>> = {
  bubblewrap: bubblewrapLayer(),
  "permission model without a network": permissionLayer(),
  "permission model alone": permissionLayer("/nonexistent/unshare"),
};

describe.each(Object.entries(layers))("%s", (_name, layer) => {
  it("refuses each way out that it says it refuses", async () => {
    let connections = 0;
    const server = createServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const host = await openHost({ layers: [layer] });
    const { service } = await openService(host, writeAttempts());
    const got: string[] = [];
    for (const attempt of Object.keys(attempts)) {
      const answer = await service.invoke(invocation(attempt, { port }));
      if (!String(answer).startsWith("refused: ")) got.push(`${attempt}: ${answer}`);
    }
    expect(got).toEqual([]);
    expect(connections).toBe(0);
  });
});

it("tries what would work: without a layer most attempts succeed", async () => {
  const server = createServer((socket) => socket.on("error", () => undefined).end("HTTP/1.1 204 x\r\n\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => rmSync("/tmp/troupe-escape", { force: true }));
  const host = await openHost({ layers: [], unsandboxed: true });
  const { service } = await openService(host, writeAttempts());
  const refused: string[] = [];
  for (const attempt of Object.keys(attempts)) {
    // The server would really open a debugger, and a thread would use up the memory that the others need.
    if (
      attempt === "opens a debugger in the server" ||
      attempt === "starts a thread" ||
      attempt === "replaces its program"
    )
      continue;
    const answer = String(await service.invoke(invocation(attempt, { port })));
    if (!answer.startsWith("got ")) refused.push(`${attempt}: ${answer}`);
  }
  expect(refused.map((line) => line.slice(0, line.indexOf(":")))).toEqual([
    "loads an addon",
    "connects with WebSocket",
    "reads an environment variable",
  ]);
});

it("lets a module read its own folder", async () => {
  for (const layer of Object.values(layers)) {
    const host = await openHost({ layers: [layer] });
    const body = `return (await import("node:fs")).readFileSync(new URL("./package.json", import.meta.url), "utf8")`;
    const { service } = await openService(host, writeModule(adapterCode({ own: body })));
    expect(JSON.parse(String(await service.invoke(invocation("own"))))).toMatchObject({ name: "sample" });
  }
});

it("is not available without a layer, and says why of each", async () => {
  const none = [bubblewrapLayer("/nonexistent/bwrap"), { name: "other", open: async () => "the other is off" }];
  const host = await openHost({ layers: none });
  expect(host.unavailable).toContain(`("/nonexistent/bwrap" is not installed); the other is off`);
  const refused = { kind: "unavailable", message: host.unavailable };
  await expect(host.inspect(writeModule(code))).rejects.toMatchObject(refused);
  await expect(host.openAdapter(hosted(writeModule(code)))).rejects.toMatchObject(refused);
});

it("does not take a layer for working because its program exists", async () => {
  const host = await openHost({ layers: [bubblewrapLayer("/bin/false")] });
  expect(host.unavailable).toContain("bubblewrap does not work here");
});

it("goes without a layer where the operator asked for it", async () => {
  expect(await chooseIsolation([], true)).toEqual({ isolation: noIsolation });
  const host = await openHost({ layers: [], unsandboxed: true });
  const { service } = await openService(host, writeModule(adapterCode({ env: "return Object.keys(process.env)" })));
  expect(await service.invoke(invocation("env"))).toEqual([]);
  expect(host.log.of("modules-weakly-isolated")).toHaveLength(1);
});
