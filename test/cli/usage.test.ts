/** What is typed: help, faults and exit codes. No server is needed, and none is loaded. */
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { exitCodeMeanings, exitCodes } from "../../src/cli/exit-codes.ts";
import { runInProcess } from "./run-in-process.ts";

const root = resolve(import.meta.dirname, "../..");

/** Nothing listens there. */
const nowhere = { TROUPE_SERVER: "127.0.0.1:1" };

describe("exit codes", () => {
  it("are told by --help, all of them, and by the README in the same words", async () => {
    const { stdout, exitCode } = await runInProcess(["--help"]);
    const readme = readFileSync(join(root, "README.md"), "utf8");
    expect(exitCode).toBe(0);
    expect(exitCodeMeanings.map(([code]) => code).sort()).toEqual(Object.values(exitCodes).sort());
    for (const [code, meaning] of exitCodeMeanings) {
      expect(stdout).toMatch(new RegExp(`^ +${code}  ${meaning}$`, "m"));
      expect(readme).toContain(`| ${code} | ${meaning} |`);
    }
  });

  it.each<[string, string[], number]>([
    ["an unknown command", ["proceses"], 64],
    ["an unknown subcommand", ["processes", "lst"], 64],
    ["a group without a subcommand", ["processes"], 64],
    ["an unknown option", ["status", "--verbose"], 64],
    ["a word too few", ["processes", "get"], 64],
    ["a word too many", ["status", "now"], 64],
    ["an id that is none", ["processes", "get", "first"], 64],
    ["a state that is none", ["processes", "list", "--state", "tired"], 64],
    ["a count that is none", ["processes", "list", "--limit", "0"], 64],
    ["a duration that is none", ["logs", "--since", "soon"], 64],
    ["a tool without a service", ["tools", "docs", "listPets"], 64],
    ["an actor without a kind", ["actors", "get", "42"], 64],
    ["parameters that are no JSON", ["tools", "call", "a.b", "--params", "{"], 64],
    ["a service from nowhere", ["services", "add"], 64],
    ["a service from two places", ["services", "add", "http://127.0.0.1:1/", "--file", "x"], 64],
    ["a module from nowhere", ["modules", "install"], 64],
    ["two ways to run", ["processes", "run", "-", "--watch", "--detach"], 64],
    ["a value of env without a name", ["processes", "run", "-", "--env", "=x"], 64],
    ["two things to verify", ["verify", "--backup", "x", "--data-dir", "y"], 64],
    ["a program that is not there", ["processes", "run", "/nowhere/program.ts"], 66],
    ["parameters that are not there", ["tools", "call", "a.b", "--params", "@/nowhere"], 66],
    ["no server", ["status"], 69],
    ["no server to follow", ["logs", "--follow"], 69],
    ["an address that is none", ["status", "--server", "ftp://host"], 78],
    ["an address with credentials", ["status", "--server", "http://user:SECRET@127.0.0.1:1"], 78],
    ["a key file that is not there", ["status", "--key-file", "/nowhere/key"], 78],
    ["a certificate without its key", ["status", "--tls-cert", join(root, "package.json")], 78],
    [
      "a certificate for plain http",
      ["status", "--server", "http://127.0.0.1:1", "--tls-ca", join(root, "package.json")],
      78,
    ],
    ["a backup that is none", ["verify", "--backup", join(root, "package.json")], 65],
    ["a backup that is not there", ["restore", "/nowhere/backup"], 66],
    ["a backup to verify that is not there", ["verify", "--backup", "/nowhere/backup"], 66],
    ["a backup into a pipe", ["backup", "-"], 64],
    ["days that are no number", ["certs", "--into", "/nowhere", "--days", "-1"], 64],
    ["a data folder without a store", ["verify", "--data-dir", "/nowhere"], 65],
    ["a module type that is none", ["module", "new", "mine", "--type", "plugin"], 64],
    ["a shell that is none", ["completion", "csh"], 64],
  ])("tells %s", async (_what, words, exitCode) => {
    const ran = await runInProcess(words, { environment: nowhere, stdin: "" });
    expect(ran).toMatchObject({ exitCode, stdout: "" });
    expect(ran.stderr).toMatch(/^[A-Z"]/);
    expect(ran.stderr).not.toMatch(/SECRET|\n +at /);
  });

  it("are 78 for a key that is none, which is not repeated", async () => {
    const environment = { ...nowhere, TROUPE_API_KEY: "SECRET key" };
    const { exitCode, stderr } = await runInProcess(["status"], { environment });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 78,
      stderr: "The API key must be printable ASCII without spaces\n",
    });
  });
});

describe("what is loaded", () => {
  it("at the start of a command is the command line alone, and with the first call the client", () => {
    const folders = (from: string) =>
      new Set(staticImports(from).map((file) => relative(join(root, "src"), file).split("/")[0]));
    expect([...folders("src/main.ts")].sort()).toEqual(["cli", "limits.ts", "main.ts"]);
    expect([...folders("src/cli/session.ts")].sort()).toEqual(["cli", "client", "gen"]);
  });
});

describe("a command that waits for its stdin", () => {
  const setSecret = ["services", "secrets", "set", "petstore", "petKey"];
  it.each([
    ["for a program", ["processes", "run", "-"], {}, { exitCode: 130, stdout: "", stderr: "" }],
    ["for a secret", setSecret, {}, { exitCode: 130, stdout: "", stderr: "" }],
    [
      "for a secret that is typed",
      setSecret,
      { isTTY: true, setRawMode: () => undefined },
      { exitCode: 130, stdout: "", stderr: expect.stringContaining("(not shown)") },
    ],
    // As if its stdin had ended.
    ["for a message of MCP", ["mcp"], {}, { exitCode: 0, stdout: "", stderr: "" }],
  ])("%s is ended by a signal", async (_, words, terminal, expected) => {
    const stdin = Object.assign(new PassThrough(), terminal);
    const interrupt = new AbortController();
    const ran = runInProcess(words, { environment: nowhere, stdin, interrupt: interrupt.signal });
    await expect.poll(() => stdin.listenerCount("readable") + stdin.listenerCount("data")).toBeGreaterThan(0);
    interrupt.abort();
    expect(await ran).toEqual(expected);
  });
});

describe("a secret", () => {
  it("that is typed as a word is refused and not repeated", async () => {
    const ran = await runInProcess(["services", "secrets", "set", "petstore", "petKey", "SECRET"], {
      environment: nowhere,
    });
    expect(ran.exitCode).toBe(64);
    expect(ran.stderr).toContain("Too many arguments");
    expect(ran.stderr).not.toContain("SECRET");
  });

  it("that is empty is refused", async () => {
    const ran = await runInProcess(["services", "secrets", "set", "petstore", "petKey"], {
      environment: nowhere,
      stdin: "\n",
    });
    expect(ran).toMatchObject({ exitCode: 65, stderr: 'Secret "petKey" is empty\n' });
  });
});

describe("a server that is not there", () => {
  it("is named in one sentence with the code", async () => {
    const { stderr } = await runInProcess(["status"], { environment: nowhere });
    expect(stderr).toBe(
      'Cannot reach the server at "http://127.0.0.1:1": nothing listens there; is it running? (unavailable)\n',
    );
  });

  it("and is no Troupe either is told apart", async () => {
    const other = createServer((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"));
    const port = await new Promise<number>((done) => {
      other.listen(0, "127.0.0.1", () => done((other.address() as { port: number }).port));
    });
    const ran = await runInProcess(["status", "--server", `127.0.0.1:${port}`]);
    other.close();
    expect(ran.exitCode).toBe(69);
    expect(ran.stderr).toMatch(
      /^The server at "http:\/\/127\.0\.0\.1:\d+" does not answer as Troupe does: .*\(unknown\)\n$/,
    );
  });
});

describe("what answers as Troupe does not", () => {
  it.each<[string, number, string, string, number]>([
    ["the REST face", 404, "application/json", '{"code":"not_found","error":"There is no route"}', 69],
    ["a site", 404, "text/html", "<h1>Not found</h1>", 69],
    ["a site that answers everything", 200, "text/html", "<h1>Hello</h1>", 69],
    ["a stranger's Connect", 400, "application/json", '{"code":"invalid_argument","message":"No"}', 69],
    ["a proxy that wants a key", 401, "text/html", "Who are you?", 77],
    ["a proxy that lets nobody in", 403, "text/html", "No", 77],
    ["a proxy whose server is away", 503, "text/html", "Come back later", 69],
  ])("is told from a refusal of Troupe's: %s", async (_what, status, type, text, exitCode) => {
    const other = createHttpServer((_request, response) =>
      response.writeHead(status, { "content-type": type }).end(text),
    );
    const address = await listening(other);
    for (const words of [["status"], ["logs", "--follow"], ["events"], ["processes", "list"]]) {
      const ran = await runInProcess([...words, "--server", address]);
      expect({ words, ...ran }).toMatchObject({ words, exitCode, stdout: "" });
      expect(ran.stderr, words.join(" ")).toMatch(
        new RegExp(`^The server at "http://${address}" does not answer as Troupe does: \\S.* \\([a-z_]+\\)\n$`),
      );
    }
    other.close();
  });
});

describe("a server that hangs", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => vi.useRealTimers());

  it.each([
    ["status"],
    ["processes list"],
    ["processes get 1"],
    ["processes get 1 --wait 5"],
    ["processes run -"],
    ["processes run - --watch"],
    ["processes logs 1 --follow"],
    ["processes list --watch"],
    ["logs --follow"],
    ["events --json"],
    ["verify"],
    ["drain"],
    [`backup ${join(tmpdir(), "never-whole.troupe")}`],
  ])("is not waited for by `%s` for ever", async (line) => {
    const silent = createServer(() => undefined);
    const sockets: Socket[] = [];
    silent.on("connection", (socket) => sockets.push(socket.on("error", () => undefined)));
    const ran = runInProcess([...line.split(" "), "--server", await listening(silent)], { stdin: "return {};" });
    expect(await passing(ran)).toMatchObject({
      exitCode: 75,
      stdout: "",
      stderr: expect.stringMatching(/The server at "http:\/\/127\.0\.0\.1:\d+" did not answer .*\n$/),
    });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it("is told from one that has nothing to tell, by asking it something else", async () => {
    let asked = 0;
    let isHung = false;
    const quiet = createHttpServer((request, response) => {
      if (!request.url?.endsWith("/ListProcesses")) return;
      asked += 1;
      if (!isHung) response.writeHead(200, { "content-type": "application/proto" }).end();
    });
    const ran = runInProcess(["events", "--server", await listening(quiet)]);
    let isOver = false;
    void ran.finally(() => {
      isOver = true;
    });
    for (const times of [1, 2, 3, 4]) {
      while (asked < times && !isOver) await tick(100);
      // The answer arrives before the next one is asked for.
      for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate);
    }
    expect({ asked, isOver }).toEqual({ asked: 4, isOver: false });
    isHung = true;
    expect(await passing(ran)).toMatchObject({ exitCode: 75, stdout: "", stderr: expect.stringContaining("hangs") });
    quiet.closeAllConnections();
    quiet.close();
  });
});

async function tick(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await new Promise(setImmediate);
}

/** Time passes until it is there. */
async function passing<Result>(work: Promise<Result>): Promise<Result> {
  let isOver = false;
  const watched = work.finally(() => {
    isOver = true;
  });
  while (!isOver) await tick(500);
  return watched;
}

/** host:port */
async function listening(server: NetServer): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("--help", () => {
  it("of each command says what it does and what it takes", async () => {
    const commands = await commandPaths();
    expect(commands.length).toBeGreaterThan(60);
    for (const path of commands) {
      const { exitCode, stdout, stderr } = await runInProcess([...path.split(" "), "--help"]);
      expect({ path, exitCode, stderr }).toEqual({ path, exitCode: 0, stderr: "" });
      expect(stdout).toContain(`Usage: troupe ${path}`);
      expect(stdout.split("\n")[2], path).toMatch(/\w{3}/);
    }
  });
});

/** Own files that are there before the first line runs. */
function staticImports(from: string): readonly string[] {
  const found = new Set<string>();
  const visit = (file: string): void => {
    if (found.has(file)) return;
    found.add(file);
    const written = /^\s*(?:import|export)\s+(?!type\s)(?:[^"'`;]*?\sfrom\s+)?"(\.[^"]+)"/gm;
    for (const [, to = ""] of readFileSync(file, "utf8").matchAll(written)) visit(resolve(dirname(file), to));
  };
  visit(join(root, from));
  return [...found];
}

describe("every command", () => {
  it("that there is has a test that runs it", async () => {
    const suites = ["test/cli/*.test.ts", "test/e2e/cli/*.test.ts", "test/e2e/mcp.test.ts"];
    const texts = globSync(suites, { cwd: root }).map((file) =>
      readFileSync(join(root, file), "utf8").replace(/",\s*"/g, " "),
    );
    const paths = await commandPaths();
    // test/e2e/server.ts starts `serve`, by no word of its own.
    const leaves = paths.filter((path) => path !== "serve" && !paths.some((other) => other.startsWith(`${path} `)));
    expect(leaves.length).toBeGreaterThan(60);
    const untested = leaves.filter((leaf) => !texts.some((text) => new RegExp(`["\`]${leaf}[ "\`]`).test(text)));
    expect(untested).toEqual([]);
  });
});

async function commandPaths(): Promise<readonly string[]> {
  const { stdout } = await runInProcess(["completion", "fish"]);
  const paths = /contains -- \$next (.*); and/.exec(stdout)?.[1] ?? "";
  return [...paths.matchAll(/'([^']+)'/g)].map((match) => match[1] ?? "");
}
