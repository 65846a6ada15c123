/**
 * The trivial program `return 1`, from sending it to reading its output: one caller after the other (p50, p99) and eight at
 * once (runs a second). `node test/bench/processes.bench.ts`
 *
 * The product is measured whole: two requests a run (create, read the output), three commits that each reach the disk, queue,
 * slots, deadline. Its peers, and its own executor alone, stand behind a minimal HTTP server and store nothing; compare them
 * with the executor's row. CPU is the server's with all its children, a run. Not measured: tool calls, large programs,
 * TypeScript, abuse; start-up.
 */
import { Pool } from "undici";
import { cpuMs } from "./cpu-time.ts";
import { inRounds, quantile, quartilesText, report, type Sample } from "./measure.ts";
import type { Peer } from "./peers.ts";
import { type ServerProcess, startProcess, startTroupe } from "./server-process.ts";

const program = "return 1";
const callers = 8;
const rounds = 9;
/** Runs of a round, alone and at once. A process for each run is fifty times slower: fewer tell as much. */
const runsOf = (way: Way): { readonly alone: number; readonly atOnce: number } =>
  way === "node-permission" ? { alone: 4, atOnce: 8 } : { alone: 40, atOnce: 120 };

type Way = "troupe" | Peer;
type Figure = "p50Ms" | "p99Ms" | "perSecond" | "cpuMs";

const titles: Readonly<Record<Way, string>> = {
  troupe: "troupe, whole: REST, durable",
  executor: "troupe's executor alone",
  "isolated-vm": "isolated-vm in 2 children",
  "node-permission": "node --permission per run",
  quickjs: "quickjs in the server process",
  vm: "vm in 2 reused children (unsafe)",
};
const ways = Object.keys(titles) as Way[];

const opened = await Promise.all(ways.map(async (way) => [way, await open(way)] as const));
const measured = await inRounds<Way, Figure>(
  Object.fromEntries(
    opened.map(([way, { server, run }]) => [way, () => measure(way, server, run)]),
  ) as unknown as Record<Way, () => Promise<Sample<Figure>>>,
  { rounds, warmUps: 2, secondsMax: 35 },
);
for (const [, { close }] of opened) await close();

const rows = ways.map((way) => {
  const beside = measured.ratio(way, "isolated-vm", "perSecond");
  return {
    way: titles[way],
    "p50 ms": measured.median(way, "p50Ms"),
    "p99 ms": measured.median(way, "p99Ms"),
    [`runs/s at ${callers}`]: measured.median(way, "perSecond"),
    "cpu ms/run": measured.median(way, "cpuMs"),
    "x isolated-vm": beside.median,
    "q1..q3": quartilesText(beside),
    "x its cpu": measured.ratio(way, "isolated-vm", "cpuMs").median,
  };
});
report("processes", `Program "${program}", create to output, medians of ${measured.rounds} rounds`, rows, []);

interface Opened {
  readonly server: ServerProcess;
  /** Resolves with the output. */
  run(): Promise<string>;
  close(): Promise<void>;
}

async function open(way: Way): Promise<Opened> {
  const server =
    way === "troupe"
      ? await startTroupe()
      : await startProcess(new URL("./peer-host.ts", import.meta.url), { args: [way] });
  const pool = new Pool(server.http, { connections: callers });
  const run =
    way === "troupe"
      ? async () => {
          const { id } = JSON.parse(await request(pool, "POST", "/processes", JSON.stringify({ code: program }))) as {
            id: number;
          };
          return request(pool, "GET", `/processes/${id}/output?wait=30`);
        }
      : () => request(pool, "POST", "/run", program);
  const output = await run();
  if (!/\b1\b/.test(output)) throw new Error(`"${way}" gave ${output}`);
  return {
    server,
    run,
    async close() {
      await pool.close();
      await server.stop();
    },
  };
}

async function request(pool: Pool, method: "GET" | "POST", path: string, body?: string): Promise<string> {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const { statusCode, body: answer } = await pool.request({
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.text();
  if (statusCode !== 200) throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`);
  return text;
}

async function measure(way: Way, server: ServerProcess, run: () => Promise<string>): Promise<Sample<Figure>> {
  const { alone, atOnce } = runsOf(way);
  const before = cpuMs(server.pid);
  const took: number[] = [];
  for (let left = alone; left > 0; left -= 1) {
    const start = performance.now();
    await run();
    took.push(performance.now() - start);
  }
  const start = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let left = atOnce / callers; left > 0; left -= 1) await run();
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  return {
    p50Ms: quantile(took, 0.5),
    p99Ms: quantile(took, 0.99),
    perSecond: atOnce / seconds,
    cpuMs: (cpuMs(server.pid) - before) / (alone + atOnce),
  };
}
