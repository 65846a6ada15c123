/**
 * What a thousand followers of a hundred running processes cost: memory of the server, its CPU, and the pace of the runs.
 * `node test/bench/followers.bench.ts`
 *
 * Each process prints a line every 250 ms. First nobody follows, then ten followers each; a tenth of them never read. The pace is lines
 * printed a second by all runs together, as `stdout` tells them; memory is the resident set of the server alone, at its highest.
 *
 * The first thousand followers also make V8 double its space for young objects, once, whatever they do; the row "nobody, cold" is from
 * before that, and both growths are shown. Not measured: followers of finished runs, gRPC.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuMs } from "./cpu-time.ts";
import { report } from "./measure.ts";
import { startProcess } from "./server-process.ts";

const processes = 100;
const followersOfEach = 10;
/** Of these one never reads. */
const readersPerStalled = 10;
const windowMs = 8_000;
const program = `for (let n = 0; ; n++) { console.log("line", n, "x".repeat(80)); await new Promise((r) => setTimeout(r, 250)); }`;

const folder = await mkdtemp(join(tmpdir(), "troupe-bench-"));
const server = await startProcess(new URL("../../src/main.ts", import.meta.url), {
  env: {
    SERVICE_DATA_DIR: folder,
    SERVICE_HTTP_PORT: "0",
    SERVICE_GRPC_PORT: "0",
    SERVICE_RATE_LIMITS: "off",
    SERVICE_PROCESS_CONCURRENCY: String(processes),
    SERVICE_SHUTDOWN_TIMEOUT_MS: "2000",
  },
});

const ids: number[] = [];
for (let at = 0; at < processes; at++) {
  const { id } = JSON.parse(await call("POST", "/processes", { code: program, timeoutMs: null })) as { id: number };
  ids.push(id);
}
while ((await linesOf(ids)).some((lines) => lines === 0)) await sleep(100);
await sleep(3_000);

let received = 0;
const cold = await measure();
await followAll(2_000, async () => {});
const alone = await measure();
let deliveredPerSecond = 0;
let followed = alone;
await followAll(2_000, async () => {
  received = 0;
  followed = await measure();
  deliveredPerSecond = received / (windowMs / 1_000);
});
await server.stop();
await rm(folder, { recursive: true, force: true });

const rows = Object.entries({ "nobody, cold": cold, nobody: alone, followed }).map(([way, figures]) => ({
  way,
  "rss MiB": figures.rssMiB,
  "lines/s": figures.linesPerSecond,
  "cpu ms/s": figures.cpuMsPerSecond,
}));
report(
  "followers",
  `${processes * followersOfEach} followers of ${processes} running processes, ${windowMs / 1_000} s each; ${Math.round(deliveredPerSecond)} KiB/s reached those who read`,
  rows,
  [
    { what: "growth of the server, MiB", atMost: 100, measured: followed.rssMiB - alone.rssMiB },
    { what: "growth of a cold server, MiB", atMost: 100, measured: followed.rssMiB - cold.rssMiB },
    {
      what: "pace of the runs, followed / alone",
      atLeast: 0.95,
      measured: followed.linesPerSecond / alone.linesPerSecond,
    },
  ],
);
process.exit(0);

/** All follow, `work` is done, all leave; each with time to settle. */
async function followAll(settleMs: number, work: () => Promise<void>): Promise<void> {
  const sockets = await Promise.all(
    ids.flatMap((id) => Array.from({ length: followersOfEach }, (_, at) => follow(id, at % readersPerStalled !== 0))),
  );
  await sleep(settleMs);
  await work();
  for (const socket of sockets) socket.destroy();
  await sleep(settleMs);
}

interface Figures {
  readonly rssMiB: number;
  readonly linesPerSecond: number;
  readonly cpuMsPerSecond: number;
}

async function measure(): Promise<Figures> {
  const before = sum(await linesOf(ids));
  const cpuBefore = cpuMs(server.pid);
  const started = performance.now();
  let rssMiB = 0;
  while (performance.now() - started < windowMs) {
    rssMiB = Math.max(rssMiB, rssOf(server.pid));
    await sleep(200);
  }
  const seconds = (performance.now() - started) / 1_000;
  return {
    rssMiB,
    linesPerSecond: (sum(await linesOf(ids)) - before) / seconds,
    cpuMsPerSecond: (cpuMs(server.pid) - cpuBefore) / seconds,
  };
}

function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

/** Lines printed so far by each. */
function linesOf(all: readonly number[]): Promise<number[]> {
  return Promise.all(all.map(async (id) => (await call("GET", `/processes/${id}/stdout`)).split("\n").length - 1));
}

/** Resolves with the connection once the first event has come. */
function follow(id: number, reads: boolean): Promise<net.Socket> {
  const { hostname, port } = new URL(server.http);
  const socket = net.connect(Number(port), hostname);
  socket.write(`GET /processes/${id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.on("data", (chunk) => {
      received += chunk.length / 1_024;
      if (!reads) socket.pause();
      resolve(socket);
    });
  });
}

async function call(method: string, path: string, body?: unknown): Promise<string> {
  const answer = await fetch(server.http + path, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
  return text;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
