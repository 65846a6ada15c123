/**
 * Calls of one adapter while the module of another crashes in a loop, against the same calls while it does not.
 * `node test/bench/module-crash.bench.ts`
 *
 * Both adapters are third-party modules in processes of their own. The crashing one ends its process at every call; it is started
 * again with growing pauses, given up, and enabled again at once by the benchmark, so it never rests. Latency is of a whole call over
 * REST; CPU is the server's.
 */
import { startDevRegistry } from "../../src/dev-registry/dev-registry.ts";
import { moduleArchive } from "../../src/dev-registry/offers/modules.ts";
import { cpuMs } from "./cpu-time.ts";
import { inRounds, quantile, quartilesText, report, type Sample } from "./measure.ts";
import { startTroupe } from "./server-process.ts";

const calls = 600;
const callsAtOnce = 4;
const rounds = 12;
let crashesSeen = 0;

const registry = await startDevRegistry();
const troupe = await startTroupe();
await post("/registries", { baseUrl: registry.url });
await install("steady", "invoke: () => ({ answer: 42 })");
await install("crashing", "invoke: () => process.exit(1)");

const measured = await inRounds(
  {
    alone: () => measure(),
    beside: async () => {
      const stop = crashInALoop();
      try {
        return await measure();
      } finally {
        await stop();
      }
    },
  },
  { rounds, warmUps: 2, secondsMax: 45 },
);
await troupe.stop();
await registry.close();

const titles = { alone: "alone", beside: "beside a crash loop" } as const;
const rows = (["alone", "beside"] as const).map((way) => {
  const p99 = measured.ratio(way, "alone", "p99Ms");
  return {
    way: titles[way],
    "p50 ms": measured.median(way, "p50Ms"),
    "p99 ms": measured.median(way, "p99Ms"),
    "p99 ratio": p99.median,
    "q1..q3": quartilesText(p99),
    "cpu µs/call": measured.median(way, "cpuUs"),
  };
});
report(
  "module-crash",
  `${calls} calls a round, ${callsAtOnce} at once, medians of ${measured.rounds} rounds; ${crashesSeen} calls of the crashing module failed`,
  rows,
  [
    {
      what: "p99 beside a crash loop / alone",
      atMost: 1.5,
      measured: measured.ratio("beside", "alone", "p99Ms").median,
    },
  ],
);

async function measure(): Promise<Sample<"p50Ms" | "p99Ms" | "cpuUs">> {
  const took: number[] = [];
  const cpuBefore = cpuMs(troupe.pid);
  let left = calls;
  const caller = async (): Promise<void> => {
    while (left-- > 0) {
      const started = performance.now();
      const { status, body } = await post("/tools/s_steady/work/invoke", {});
      if (status !== 200) throw new Error(`The steady module answered ${status}: ${JSON.stringify(body)}`);
      took.push(performance.now() - started);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, caller));
  return {
    p50Ms: quantile(took, 0.5),
    p99Ms: quantile(took, 0.99),
    cpuUs: ((cpuMs(troupe.pid) - cpuBefore) * 1_000) / calls,
  };
}

/** Until the answer is called and has ended. */
function crashInALoop(): () => Promise<void> {
  let going = true;
  const loop = (async () => {
    while (going) {
      const { status } = await post("/tools/s_crashing/work/invoke", {});
      if (status === 200) throw new Error("The crashing module answered");
      crashesSeen += 1;
      const { reason } = (await (await fetch(`${troupe.http}/modules/crashing`)).json()) as { reason: string | null };
      if (reason !== null) await post("/modules/crashing/enabled", { enabled: true });
      else await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    going = false;
    await loop;
  };
}

async function install(id: string, invoke: string): Promise<void> {
  const source = `export default { type: "adapter", setup: () => ({
    generateDefinition: () => ({ name: "Work", tools: [{ id: "work", name: "Work" }] }), hydrate: () => null, ${invoke} }) };`;
  const content = moduleArchive({ id, name: id, type: "adapter", description: id, version: "1.0.0", source });
  registry.publish("modules", { id, version: "1.0.0", content });
  await expectStatus(201, post("/modules", { registryId: "dev-registry", moduleId: id }));
  await expectStatus(200, post(`/modules/${id}/enabled`, { enabled: true }));
  await expectStatus(201, post("/services", { id: `s_${id}`, adapter: id, definition: "x" }));
  await expectStatus(200, post(`/services/s_${id}/enabled`, { enabled: true }));
}

async function expectStatus(wanted: number, asked: ReturnType<typeof post>): Promise<void> {
  const { status, body } = await asked;
  if (status !== wanted) throw new Error(`Answered ${status}: ${JSON.stringify(body)}`);
}

async function post(path: string, body: unknown): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(troupe.http + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}
