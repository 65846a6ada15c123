/** The real server as a child process on a temporary data folder, for the demo and the examples. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** From start to the listening line: a cold machine reads a few thousand files first. */
const startMsMax = 60_000;
/** From SIGTERM to the end, above the server's own drain limit. */
const stopMsMax = 15_000;
/** Last lines shown when the server does not start. */
const linesKept = 20;

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

export interface ServerChild {
  /** `http://127.0.0.1:41234`, without a slash at the end. */
  readonly http: string;
  /** Host and port of the control plane. */
  readonly grpc: string;
  /** Ends the server and removes its data. Safe to call twice. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Settings by their full names. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Stops waiting for a server that is starting. */
  readonly signal?: AbortSignal;
}

/** Rejects with the server's last lines when it ends or does not listen in time; nothing is left behind then. */
export async function startServer({ settings = {}, signal }: ServerOptions = {}): Promise<ServerChild> {
  const dataDir = await mkdtemp(join(tmpdir(), "troupe-demo-"));
  const child = spawn(process.execPath, [main], {
    env: { ...inherited(), SERVICE_DATA_DIR: dataDir, SERVICE_HTTP_PORT: "0", SERVICE_GRPC_PORT: "0", ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= end(child).then(() => rm(dataDir, { recursive: true, force: true, maxRetries: 3 }));
    return stopping;
  };
  try {
    const { http, grpc } = await listening(child, signal);
    return { http: withScheme(http), grpc, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The user's own SERVICE_ settings would change what the demo shows. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SERVICE_")));
}

async function listening(
  child: ChildProcess,
  signal: AbortSignal | undefined,
): Promise<{ http: string; grpc: string }> {
  const lines: string[] = [];
  const keep = (line: string) => {
    lines.push(line);
    if (lines.length > linesKept) lines.shift();
  };
  createInterface({ input: child.stderr! }).on("line", keep);
  const found = new Promise<{ http: string; grpc: string }>((resolve) => {
    createInterface({ input: child.stdout! }).on("line", (line) => {
      keep(line);
      const addresses = addressesIn(line);
      if (addresses !== undefined) resolve(addresses);
    });
  });
  const ended = once(child, "close").then(([code, signal]) => `it ended with ${code ?? signal}`);
  const timer = new AbortController();
  const late = sleep(startMsMax, `it was not listening after ${startMsMax} ms`, { signal: timer.signal });
  late.catch(() => {});
  const given = new Promise<string>((resolve) =>
    signal?.addEventListener("abort", () => resolve("it was interrupted")),
  );
  const outcome = await Promise.race([found, ended, late, given]).finally(() => timer.abort());
  if (typeof outcome !== "string") return outcome;
  throw new Error(`The server did not start: ${outcome}. Its last lines:\n${lines.join("\n")}`);
}

function addressesIn(line: string): { http: string; grpc: string } | undefined {
  if (!line.includes('"listening"')) return undefined;
  try {
    const { event, http, grpc } = JSON.parse(line) as Record<string, unknown>;
    return event === "listening" && typeof http === "string" ? { http, grpc: String(grpc) } : undefined;
  } catch {
    return undefined;
  }
}

function withScheme(address: string): string {
  return (/^https?:/.test(address) ? address : `http://${address}`).replace(/\/$/, "");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = new AbortController();
  const late = sleep(stopMsMax, undefined, { signal: timer.signal }).then(() => child.kill("SIGKILL"));
  late.catch(() => {});
  await ended.finally(() => timer.abort());
}
