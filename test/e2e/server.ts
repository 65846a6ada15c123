/** The real server as a child process on a folder of its own; killed with the test file that started it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const main = resolve(import.meta.dirname, "../../src/main.ts");
const startMsMax = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed when the answer is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly body: any;
}

export class Server {
  readonly http: string;
  readonly grpc: string;
  readonly folder: string;
  readonly child: ChildProcess;
  readonly lines: string[];

  constructor(child: ChildProcess, folder: string, lines: string[], addresses: { http: string; grpc: string }) {
    this.child = child;
    this.folder = folder;
    this.lines = lines;
    this.http = addresses.http;
    this.grpc = addresses.grpc;
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(this.http + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
  }

  get(path: string): Promise<Answer> {
    return this.call("GET", path);
  }

  post(path: string, body: unknown = {}): Promise<Answer> {
    return this.call("POST", path, body);
  }

  patch(path: string, ...operations: unknown[]): Promise<Answer> {
    return this.call("PATCH", path, operations);
  }

  /** Creates a process and waits until it is idle. */
  async run(code: string, more: Record<string, unknown> = {}): Promise<Answer["body"]> {
    const created = await this.post("/processes", { code, ...more });
    if (created.status !== 200) throw new Error(`create answered ${created.status}: ${created.text}`);
    return (await this.get(`/processes/${created.body.id}?wait=60`)).body;
  }

  async output(id: number): Promise<Answer["body"]> {
    return (await this.get(`/processes/${id}/output`)).body;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return this.child.exitCode;
    const closed = once(this.child, "close");
    this.child.kill(signal);
    const [code] = (await closed) as [number | null];
    return code;
  }
}

export interface ServerOptions {
  readonly folder?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "troupe-e2e-"));
}

export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

function spawnServer(folder: string, settings: Readonly<Record<string, string>>): ChildProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SERVICE_")));
  return spawn(process.execPath, [main], {
    env: {
      ...inherited,
      SERVICE_DATA_DIR: folder,
      SERVICE_HTTP_PORT: "0",
      SERVICE_GRPC_PORT: "0",
      // A suite makes more installations a minute than any caller may.
      SERVICE_RATE_LIMITS: "off",
      ...settings,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Rejects with its last lines when it ends, or does not listen in time. */
export async function startServer({ folder, settings = {} }: ServerOptions = {}): Promise<Server> {
  const own = folder ?? (await newFolder());
  const child = spawnServer(own, settings);
  const lines: string[] = [];
  const stop = (): boolean => child.kill("SIGKILL");
  process.once("exit", stop);
  child.once("close", () => process.removeListener("exit", stop));
  createInterface({ input: child.stderr! }).on("line", (line) => lines.push(line));
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${why}:\n${lines.slice(-20).join("\n")}`));
    const timer = setTimeout(() => fail("the server does not listen"), startMsMax);
    child.once("close", (code) => {
      clearTimeout(timer);
      fail(`the server ended with ${code}`);
    });
    createInterface({ input: child.stdout! }).on("line", (line) => {
      lines.push(line);
      if (!line.includes('"event":"listening"')) return;
      clearTimeout(timer);
      const { http, grpc } = JSON.parse(line) as { http: string; grpc: string };
      resolve(new Server(child, own, lines, { http, grpc }));
    });
  });
}

/** A server that is expected to refuse to start: its exit code and what it said. */
export async function startRefused({
  folder,
  settings = {},
}: ServerOptions = {}): Promise<{ code: number; said: string }> {
  const own = folder ?? (await newFolder());
  const child = spawnServer(own, settings);
  let said = "";
  child.stdout?.on("data", (chunk) => {
    said += String(chunk);
  });
  child.stderr?.on("data", (chunk) => {
    said += String(chunk);
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), startMsMax);
  const [code] = (await once(child, "close")) as [number];
  clearTimeout(timer);
  return { code, said };
}
