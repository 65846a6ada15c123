/**
 * `troupe` as a process of its own, where signals, pipes and the start itself are the point; over mutual TLS with the certificates that
 * `troupe certs` makes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInProcess } from "../../cli/run-in-process.ts";
import { removeFolder, type Server, startServer } from "../server.ts";

const main = resolve(import.meta.dirname, "../../../src/main.ts");
const compileCache = resolve(import.meta.dirname, "../../../node_modules/.cache/node-compile");
const printedBytes = 1_000_000;
const apiKey = "operator-key-of-the-test";

let folder: string;
let server: Server;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-spawned-"));
  const certs = (name: string): string => join(folder, "certs", name);
  const made = await runInProcess([
    "certs",
    "--into",
    join(folder, "certs"),
    "--client",
    "boss",
    "--client",
    "stranger",
  ]);
  expect(made).toMatchObject({ exitCode: 0, stderr: "" });
  server = await startServer({
    settings: {
      SERVICE_API_KEYS: `boss:operator:${apiKey}`,
      SERVICE_GRPC_TLS_CERT_FILE: certs("server.crt"),
      SERVICE_GRPC_TLS_KEY_FILE: certs("server.key"),
      SERVICE_GRPC_TLS_CLIENT_CA_FILE: certs("ca.crt"),
    },
  });
  environment = {
    TROUPE_SERVER: server.grpc,
    TROUPE_TLS_CA: certs("ca.crt"),
    TROUPE_TLS_CERT: certs("client-boss.crt"),
    TROUPE_TLS_KEY: certs("client-boss.key"),
  };
});

afterAll(async () => {
  await server?.kill();
  if (server !== undefined) await removeFolder(server.folder);
  await rm(folder, { recursive: true });
});

interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

class Spawned {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = "";
  stderr = "";
  onText: () => void = () => undefined;

  constructor(line: string, more: Readonly<Record<string, string>> = {}) {
    const { PATH = "", HOME = "" } = process.env;
    this.child = spawn(process.execPath, [main, ...line.split(" ")], {
      cwd: folder,
      env: { PATH, HOME, NODE_COMPILE_CACHE: compileCache, ...environment, ...more },
    });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.onText();
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = once(this.child, "close").then(([exitCode]) => ({
      exitCode: exitCode as number | null,
      stdout: this.stdout,
      stderr: this.stderr,
    }));
  }
}

function run(line: string, more?: Readonly<Record<string, string>>): Promise<Ended> {
  return new Spawned(line, more).ended;
}

describe("a command", () => {
  it("takes its program from a pipe, and ends with what became of it", async () => {
    const running = new Spawned("processes run - --json");
    running.child.stdin?.end(`console.log("x".repeat(${printedBytes - 1})); return { done: true };`);
    const { exitCode, stdout, stderr } = await running.ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const { process: snapshot, output, stdout: printed } = JSON.parse(stdout);
    expect({ id: snapshot.id, output, bytes: printed.length }).toEqual({
      id: 1,
      output: { done: true },
      bytes: printedBytes,
    });
  });

  it("loses nothing of much output on its way to a reader that is slow", async () => {
    const reading = new Spawned("processes logs 1");
    reading.child.stdout?.pause();
    setTimeout(() => reading.child.stdout?.resume(), 1_000);
    const { exitCode, stdout } = await reading.ended;
    expect({ exitCode, bytes: stdout.length }).toEqual({ exitCode: 0, bytes: printedBytes });
  });

  it("ends quietly with 141 when nobody reads any more", async () => {
    const reading = new Spawned("processes logs 1");
    reading.onText = () => reading.child.stdout?.destroy();
    expect(await reading.ended).toMatchObject({ exitCode: 141, stderr: "" });
  });

  it.each([["version"], ["--help"], ["completion bash"], ["status"], ["processes list --json"]])(
    "whose output the disk has no room for says so and ends with 74: %s",
    async (line) => {
      const full = await open("/dev/full", "w");
      const running = spawn(process.execPath, [main, ...line.split(" ")], {
        env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, ...environment, TROUPE_API_KEY: apiKey },
        stdio: ["ignore", full.fd, "pipe"],
      });
      let said = "";
      running.stderr?.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
      const [exitCode] = await once(running, "close");
      await full.close();
      expect({ exitCode, said }).toEqual({ exitCode: 74, said: "Cannot write the output: the disk is full\n" });
    },
  );

  it("that follows ends quietly with 130 by Ctrl-C", async () => {
    const following = new Spawned("logs --follow --json --lines 1");
    following.onText = () => following.child.kill("SIGINT");
    const { exitCode, stdout, stderr } = await following.ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: "" });
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toHaveProperty("event");
  });

  it("whose certificate, or authority, or key is not the server's is refused in a sentence", async () => {
    const certs = (name: string): string => join(folder, "certs", name);
    const without = { ...environment, TROUPE_TLS_CERT: "", TROUPE_TLS_KEY: "" };
    const ofStranger = {
      ...environment,
      TROUPE_TLS_CERT: certs("client-stranger.crt"),
      TROUPE_TLS_KEY: certs("client-stranger.key"),
    };
    for (const [given, exitCodes] of [
      [without, [69]],
      [ofStranger, [77]],
      [{ TROUPE_SERVER: `https://${server.grpc}` }, [69]],
      [{ TROUPE_SERVER: server.grpc }, [69]],
    ] as const) {
      const { exitCode, stdout, stderr } = await runInProcess(["status"], { environment: given });
      expect({ exitCodes, exitCode, stdout, stderr }).toMatchObject({
        stdout: "",
        stderr: expect.stringMatching(/^[A-Z].* \([a-z_]+\)\n$/),
      });
      expect(exitCodes).toContain(exitCode);
    }
    expect(await runInProcess(["status"], { environment })).toMatchObject({ exitCode: 0, stderr: "" });
  });
});

describe("what needs no server", () => {
  it("version, and an unknown word", async () => {
    expect(await run("--version")).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: "",
    });
    expect(await run("version --json")).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/"version": "\d/) });
    expect(await run("sevre")).toEqual({
      exitCode: 64,
      stdout: "",
      stderr: "Unknown command 'sevre'\n(Did you mean serve?)\n",
    });
  });

  it("config check and config print, which know what is wrong and never show a secret", async () => {
    expect(await run("config check")).toEqual({ exitCode: 0, stdout: "The settings are valid\n", stderr: "" });
    const printed = await run("config print", { SERVICE_API_KEYS: "boss:operator:CANARY-key" });
    expect(JSON.parse(printed.stdout)).toMatchObject({ SERVICE_HTTP_PORT: 8080, SERVICE_API_KEYS: "********" });
    const wrong = await run("config check", { SERVICE_HTTP_PORT: "many", SERVICE_LOG_LEVEL: "loud" });
    expect(wrong).toMatchObject({ exitCode: 78, stdout: "" });
    expect(wrong.stderr).toMatch(/SERVICE_HTTP_PORT: .*\n.*SERVICE_LOG_LEVEL: /);
  });

  it("module new writes a folder, and not twice", async () => {
    expect(await run("module new bookmarks --type environment")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await readdir(join(folder, "bookmarks"))).toContain("package.json");
    expect(await run("module new bookmarks")).toMatchObject({ exitCode: 73, stdout: "" });
  });

  it("dev-registry serves until it is told to end", async () => {
    const serving = new Spawned("dev-registry", { SERVICE_DEV_REGISTRY_PORT: "0" });
    serving.onText = () => serving.child.kill("SIGINT");
    const { exitCode, stdout } = await serving.ended;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ event: "listening" });
  });
});
