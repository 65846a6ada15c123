/**
 * Commands that are ended, or whose server or disk is, while they write: what they were to make is there whole or not at all, an older one of
 * its name stays, and nothing lies beside it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runInProcess } from "../../cli/run-in-process.ts";
import { removeFolder, type Server, startServer } from "../server.ts";

const main = resolve(import.meta.dirname, "../../../src/main.ts");
/** Passed on of a backup, which is larger, before the line is held up. */
const heldUpBytes = 300_000;

let server: Server;
let folder: string;
let target: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-cut-off-"));
  server = await startServer();
  const codes = Array.from({ length: 10 }, () => `//${randomBytes(75_000).toString("base64")}`);
  const made = await Promise.all(codes.map((code) => server.post("/processes", { code })));
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([200]));
});
afterAll(async () => {
  await server?.kill();
  if (server !== undefined) await removeFolder(server.folder);
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  target = await mkdtemp(join(folder, "target-"));
  await writeFile(join(target, "b.troupe"), "an older one");
});

/** Between a command and the server: it stops passing on what the server sends after `heldUpBytes`, until it is closed. */
class HeldUpLine {
  readonly #proxy: NetServer;
  readonly #sockets = new Set<{ destroy(): void }>();
  readonly isHeldUp: Promise<void>;

  static async open(): Promise<HeldUpLine> {
    const line = new HeldUpLine();
    line.#proxy.listen(0, "127.0.0.1");
    await once(line.#proxy, "listening");
    return line;
  }

  private constructor() {
    const held = Promise.withResolvers<void>();
    this.isHeldUp = held.promise;
    this.#proxy = createServer((caller) => {
      const [host = "", port] = server.grpc.split(":");
      const called = connect(Number(port), host);
      let passed = 0;
      called.on("data", (data) => {
        passed += data.length;
        caller.write(data);
        if (passed < heldUpBytes) return;
        called.pause();
        held.resolve();
      });
      caller.pipe(called);
      for (const socket of [caller, called]) {
        socket.on("error", () => undefined);
        this.#sockets.add(socket);
      }
    });
  }

  get address(): string {
    return `127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#proxy.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

interface Ended {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(
  words: readonly string[],
  address: string,
  limit?: string,
): { child: ChildProcess; ended: Promise<Ended> } {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, TROUPE_SERVER: address };
  const command = [process.execPath, main, ...words];
  const [program = "", ...rest] = limit === undefined ? command : ["sh", "-c", `${limit}; exec "$0" "$@"`, ...command];
  const child = spawn(program, rest, { env, stdio: ["pipe", "pipe", "pipe"] });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      texts[name] += text;
    });
  }
  const ended = once(child, "close").then(([exitCode, signal]) => ({ exitCode, signal, ...texts }) as Ended);
  return { child, ended };
}

async function expectOlderAlone(): Promise<void> {
  expect(await readdir(target)).toEqual(["b.troupe"]);
  expect(await readFile(join(target, "b.troupe"), "utf8")).toBe("an older one");
}

describe("a backup", () => {
  const ends: Readonly<Record<string, readonly [(child: ChildProcess, line: HeldUpLine) => void, Partial<Ended>]>> = {
    "the server being gone": [(_, line) => line.close(), { exitCode: 69, signal: null }],
    "Ctrl-C": [(child) => child.kill("SIGINT"), { exitCode: 130, signal: null, stderr: "" }],
    SIGTERM: [(child) => child.kill("SIGTERM"), { exitCode: null, signal: "SIGTERM", stderr: "" }],
    "a terminal that is closed": [(child) => child.kill("SIGHUP"), { exitCode: null, signal: "SIGHUP", stderr: "" }],
  };

  it.each(Object.entries(ends))("ended by %s is not there, and the older one is", async (_, [end, expected]) => {
    const line = await HeldUpLine.open();
    const { child, ended } = start(["backup", join(target, "b.troupe")], line.address);
    await Promise.race([line.isHeldUp, ended.then((early) => expect(early).toBeUndefined())]);
    await expect.poll(async () => (await readdir(target)).length).toBe(2);
    const [, partial] = (await readdir(target)).sort();
    expect(partial).toMatch(/^b\.troupe\.partial-/);
    end(child, line);
    expect(await ended).toMatchObject({ stdout: "", ...expected });
    line.close();
    await expectOlderAlone();
  });

  it("that finds the disk full is not there, and says so", async () => {
    // Of 512 or 1,024 bytes, as the shell counts; a full disk says ENOSPC and goes the same way.
    const { ended } = start(["backup", join(target, "b.troupe")], server.grpc, "ulimit -f 500");
    expect(await ended).toEqual({
      exitCode: 74,
      signal: null,
      stdout: "",
      stderr: `Cannot write "${join(target, "b.troupe")}": EFBIG\n`,
    });
    await expectOlderAlone();
  });

  const unwritable: Readonly<Record<string, readonly [(path: string) => Promise<unknown>, string]>> = {
    "in a folder that is not there": [async () => undefined, "ENOENT"],
    "under a file": [(path) => writeFile(resolve(path, ".."), ""), "ENOTDIR"],
    "in the place of a folder": [(path) => mkdir(path, { recursive: true }), "what is there is no regular file"],
    "in the place of a link": [
      (path) => mkdir(resolve(path, "..")).then(() => symlink("/dev/null", path)),
      "what is there is no regular file",
    ],
  };

  it.each(Object.entries(unwritable))("%s is refused before anything is sent", async (_, [prepare, why]) => {
    const file = join(target, "none", "b.troupe");
    await prepare(file);
    const ran = await runInProcess(["backup", file], { environment: { TROUPE_SERVER: server.grpc } });
    expect(ran).toEqual({ exitCode: 73, stdout: "", stderr: `Cannot make the file "${file}": ${why}\n` });
    await rm(join(target, "none"), { recursive: true, force: true });
    await expectOlderAlone();
  });
});
