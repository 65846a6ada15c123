/** One server with keys, and `troupe` as its operator types it; shared by the suites of its commands. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Circumstances, type Ran, runInProcess } from "../../cli/run-in-process.ts";
import { removeFolder, type Server, startServer } from "../server.ts";

export const keys = { robot: "agent-key-of-the-test", boss: "operator-key-of-the-test" } as const;
/** Must never be printed. */
export const secret = "CANARY-pet-key";

export class CliBench {
  readonly server: Server;
  readonly folder: string;

  constructor(server: Server, folder: string) {
    this.server = server;
    this.folder = folder;
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  get environment(): Readonly<Record<string, string>> {
    return { TROUPE_SERVER: this.server.grpc, TROUPE_KEY_FILE: this.file("boss.key") };
  }

  troupe(line: string | readonly string[], circumstances: Circumstances = {}): Promise<Ran> {
    const words = typeof line === "string" ? line.split(" ") : line;
    return runInProcess(words, {
      ...circumstances,
      environment: { ...this.environment, ...circumstances.environment },
    });
  }

  /** Ends with 0 and has nothing to say on stderr. */
  async said(line: string | readonly string[], circumstances: Circumstances = {}): Promise<string> {
    const { exitCode, stdout, stderr } = await this.troupe(line, circumstances);
    expect({ line, exitCode, stderr }).toEqual({ line, exitCode: 0, stderr: "" });
    expect(stdout).not.toContain(secret);
    return stdout;
  }

  // biome-ignore lint/suspicious/noExplicitAny: documents of many shapes are looked into
  async json(line: string, circumstances: Circumstances = {}): Promise<any> {
    return JSON.parse(await this.said(`${line} --json`, circumstances));
  }

  /** Past the command line, for what is to happen meanwhile. */
  post(path: string, body: unknown): Promise<unknown> {
    return this.server.call("POST", path, body, { authorization: `Bearer ${keys.boss}` });
  }

  /** Does something again and again until `work` has seen it: a stream may begin later than what was done first. */
  async repeating<Result>(something: () => Promise<unknown>, work: Promise<Result>): Promise<Result> {
    const repeats = setInterval(something, 300);
    try {
      return await work;
    } finally {
      clearInterval(repeats);
    }
  }

  async close(): Promise<void> {
    await this.server.kill();
    await removeFolder(this.server.folder);
    await rm(this.folder, { recursive: true });
  }
}

export async function openCliBench(): Promise<CliBench> {
  const [server, folder] = await Promise.all([
    startServer({
      settings: {
        SERVICE_API_KEYS: `robot:agent:${keys.robot},boss:operator:${keys.boss}`,
        SERVICE_SHUTDOWN_TIMEOUT_MS: "1000",
      },
    }),
    mkdtemp(join(tmpdir(), "troupe-commands-")),
  ]);
  await writeFile(join(folder, "boss.key"), `${keys.boss}\n`);
  return new CliBench(server, folder);
}
