/**
 * GET /processes/{id} of the real server, against fastify alone answering with the same bytes. `node test/bench/rest.bench.ts`
 *
 * Three processes: the server, the peer, the load generator. The process read is once in memory, once not (then each read goes
 * to LevelDB). The product asks for a key, counts against limits, and keeps its metrics. Not measured: TLS, large answers, the
 * control plane.
 */
import { type LoadSample, measureLoad, startLoad } from "./load.ts";
import { inRounds, quartilesText, report } from "./measure.ts";
import { type ServerProcess, startProcess, startTroupe } from "./server-process.ts";

const connections = 32;
const rounds = 15;
const requests = 4_000;

const key = "bench-key-0123456789";
const authorization = `Bearer ${key}`;
const troupe = await startTroupe([], { SERVICE_API_KEYS: `bench:operator:${key}` });
const resident = await createProcess(troupe);
const stored = await createProcess(troupe);
await post(`${troupe.http}/processes/${stored}/signals/unload`, {});
const residentUrl = `${troupe.http}/processes/${resident}`;
const storedUrl = `${troupe.http}/processes/${stored}`;
const body = await textOf(residentUrl);
if (!(await textOf(storedUrl)).includes('"pid":null')) throw new Error("The unloaded process is in memory");

const fastify = await startProcess(new URL("./bare-fastify.ts", import.meta.url), { env: { BENCH_SNAPSHOT: body } });
const fastifyUrl = `${fastify.http}/processes/${resident}`;
if ((await textOf(fastifyUrl)) !== body) throw new Error("The peer answers with other bytes");

const load = startLoad();
const measured = await inRounds(
  {
    resident: () => read(troupe, residentUrl),
    stored: () => read(troupe, storedUrl),
    fastify: () => read(fastify, fastifyUrl),
  },
  { rounds, warmUps: 2, secondsMax: 35 },
);
await load.stop();
await Promise.all([troupe.stop(), fastify.stop()]);

const titles = { resident: "troupe, in memory", stored: "troupe, from disk", fastify: "bare fastify" } as const;
const rows = (["resident", "stored", "fastify"] as const).map((way) => {
  const rate = measured.ratio(way, "fastify", "perSecond");
  const cpu = measured.ratio("fastify", way, "cpuUs");
  return {
    way: titles[way],
    "requests/s": measured.median(way, "perSecond"),
    ratio: rate.median,
    "q1..q3": quartilesText(rate),
    "p50 ms": measured.median(way, "p50Ms"),
    "p99 ms": measured.median(way, "p99Ms"),
    "cpu µs/request": measured.median(way, "cpuUs"),
    "cpu ratio": cpu.median,
    "cpu q1..q3": quartilesText(cpu),
  };
});
report(
  "rest",
  `GET /processes/{id}, ${body.length} bytes, ${connections} connections, ${requests} requests a round, medians of ${measured.rounds} rounds`,
  rows,
  [
    { what: "GET of a process in memory, rate, ratio to bare fastify", atLeast: 0.6, measured: rows[0]!.ratio },
    { what: "GET of a process in memory, CPU, ratio to bare fastify", atLeast: 0.6, measured: rows[0]!["cpu ratio"] },
    { what: "GET of a process on disk, rate, ratio to bare fastify", atLeast: 0.5, measured: rows[1]!.ratio },
    { what: "GET of a process on disk, CPU, ratio to bare fastify", atLeast: 0.5, measured: rows[1]!["cpu ratio"] },
  ],
);

function read(server: ServerProcess, url: string): Promise<LoadSample> {
  return measureLoad(load, server, { url, headers: { authorization }, connections, requests });
}

async function createProcess(server: ServerProcess): Promise<number> {
  const { id } = (await post(`${server.http}/processes`, { code: "return 1" })) as { id: number };
  await textOf(`${server.http}/processes/${id}/output?wait=30`);
  return id;
}

async function post(url: string, value: unknown): Promise<unknown> {
  const headers = { "content-type": "application/json", authorization };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(value) });
  if (!answer.ok) throw new Error(`POST "${url}" was answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { authorization } });
  if (!answer.ok) throw new Error(`GET "${url}" was answered ${answer.status}: ${await answer.text()}`);
  return answer.text();
}
