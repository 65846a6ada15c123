/** A server in a process of its own: the product, or a peer that says where it listens in the same kind of line. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ServerProcess {
  readonly http: string;
  /** Empty where there is none. */
  readonly grpc: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Rejects when it ends before it listens; its own words are on stderr then. */
export async function startProcess(
  script: URL,
  {
    args = [],
    env = {},
    flags = [],
  }: { args?: readonly string[]; env?: NodeJS.ProcessEnv; flags?: readonly string[] } = {},
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [...flags, fileURLToPath(script), ...args], {
    env: { ...withoutSettings(process.env), ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  // A benchmark that breaks leaves nothing behind.
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const lines = createInterface({ input: child.stdout });
  const { http, grpc = "" } = await new Promise<{ http: string; grpc?: string }>((resolve, reject) => {
    lines.on("line", (line) => {
      if (!line.includes('"event":"listening"')) return;
      resolve(JSON.parse(line) as { http: string; grpc?: string });
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`"${script}" ended with ${code ?? signal}`)));
  });
  return {
    http,
    grpc,
    pid: child.pid as number,
    async stop() {
      process.off("exit", kill);
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** The product as `npm start` runs it, with default settings, on a data folder that goes with it. */
export async function startTroupe(
  flags: readonly string[] = [],
  settings: NodeJS.ProcessEnv = {},
): Promise<ServerProcess> {
  const folder = settings.SERVICE_DATA_DIR ?? (await mkdtemp(join(tmpdir(), "troupe-bench-")));
  // Limits are on and out of reach: a benchmark is one caller that asks more often than any may.
  const limits = { SERVICE_RATE_LIMITS: "*=999999999/60s" };
  const env = { SERVICE_DATA_DIR: folder, SERVICE_HTTP_PORT: "0", SERVICE_GRPC_PORT: "0", ...limits, ...settings };
  const server = await startProcess(new URL("../../src/main.ts", import.meta.url), { env, flags });
  return {
    ...server,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("SERVICE_")));
}
