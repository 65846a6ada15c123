/**
 * POST /processes (autorun false) of the real server, against fastify alone doing one synced put into LevelDB for each request, at the same
 * concurrency. `node test/bench/create.bench.ts`
 *
 * Both are durable when they answer. The product checks the key and the body, counts against limits, keeps its metrics, and stores a
 * record, its index entries and the program in one commit. Not measured: running it, TLS.
 */
import { type LoadSample, measureLoad, startLoad } from "./load.ts";
import { inRounds, quartilesText, report } from "./measure.ts";
import { type ServerProcess, startProcess, startTroupe } from "./server-process.ts";

const connections = 32;
const rounds = 15;
const requests = 2_000;
const key = "bench-key-0123456789";
const body = JSON.stringify({
  code: 'const { total } = await tools.orders.sum({ month: "2026-11" }); return total;',
  autorun: false,
});

const troupe = await startTroupe([], { SERVICE_API_KEYS: `bench:operator:${key}` });
const fastify = await startProcess(new URL("./bare-fastify-put.ts", import.meta.url));
const load = startLoad();
const measured = await inRounds(
  { troupe: () => create(troupe), fastify: () => create(fastify) },
  { rounds, warmUps: 2, secondsMax: 40 },
);
await load.stop();
await Promise.all([troupe.stop(), fastify.stop()]);

const titles = { troupe: "troupe, autorun false", fastify: "bare fastify + one synced put" } as const;
const rows = (["troupe", "fastify"] as const).map((way) => {
  const rate = measured.ratio(way, "fastify", "perSecond");
  return {
    way: titles[way],
    "requests/s": measured.median(way, "perSecond"),
    ratio: rate.median,
    "q1..q3": quartilesText(rate),
    "p50 ms": measured.median(way, "p50Ms"),
    "p99 ms": measured.median(way, "p99Ms"),
    "cpu µs/request": measured.median(way, "cpuUs"),
    "cpu ratio": measured.ratio("fastify", way, "cpuUs").median,
  };
});
report(
  "create",
  `POST /processes, ${body.length} bytes, ${connections} connections, ${requests} requests a round, medians of ${measured.rounds} rounds`,
  rows,
  [{ what: "Creations, rate, ratio to bare fastify + one synced put", atLeast: 0.5, measured: rows[0]!.ratio }],
);

function create(server: ServerProcess): Promise<LoadSample> {
  return measureLoad(load, server, {
    url: `${server.http}/processes`,
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body,
    connections,
    requests,
  });
}
