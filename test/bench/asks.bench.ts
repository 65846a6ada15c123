/**
 * Asks per second of actors in memory, against a bare promise-chain mailbox that runs the same function; and what an actor in
 * memory costs beyond its state. `node test/bench/asks.bench.ts`
 *
 * The message read changes nothing, so this is the machine alone: envelope, address, deadline, turn, answer. Not measured:
 * steps that are stored (store.bench.ts), effects, faces.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Log } from "../../src/ports/log.ts";
import type { Kind } from "../../src/runtime/kind.ts";
import { System } from "../../src/runtime/system.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { openMemoryStore } from "../store/memory-store.ts";
import { inRounds, quartilesText, report, type Sample } from "./measure.ts";

interface Counter {
  readonly count: number;
}
type CounterMessage = { readonly type: "create" } | { readonly type: "read" };

const counterKind: Kind<Counter, CounterMessage, never, undefined> = {
  name: "counter",
  version: 1,
  schema: z.object({ count: z.number() }),
  decide: (state, message) =>
    message.type === "create" || state === null ? { state: { count: 0 } } : { state, reply: state.count },
  index: () => [],
  owed: () => [],
  perform: async () => undefined,
};

/** The least a mailbox can be: messages of one actor one after the other, an answer each. */
class ChainMailbox {
  readonly #state: Counter = { count: 0 };
  #tail: Promise<unknown> = Promise.resolve();

  ask(message: CounterMessage): Promise<unknown> {
    this.#tail = this.#tail.then(() => counterKind.decide(this.#state, message, 0).reply);
    return this.#tail;
  }
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
const shapes = [
  { actors: 1, callers: 1 },
  { actors: 1, callers: 64 },
  { actors: 256, callers: 256 },
] as const;
const rounds = 31;
const asksPerRound = 51_200;
const read: CounterMessage = { type: "read" };

/** Each caller asks again as soon as it was answered. */
async function askAll(
  callers: number,
  ask: (caller: number) => Promise<unknown>,
): Promise<Sample<"perSecond" | "cpuNs">> {
  const before = process.cpuUsage();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let left = asksPerRound / callers; left > 0; left -= 1) await ask(caller);
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(before);
  return { perSecond: asksPerRound / seconds, cpuNs: ((user + system) * 1_000) / asksPerRound };
}

async function openSystem(): Promise<System> {
  const store = await openMemoryStore({ clock: systemClock, log: silent });
  const system = new System({ store, clock: systemClock, log: silent });
  system.register(counterKind, undefined);
  return system;
}

async function measureAsks() {
  const system = await openSystem();
  const addresses = Array.from({ length: 256 }, (_, key) => ({ kind: counterKind.name, key: String(key) }));
  await Promise.all(addresses.map((address) => system.ask(address, { type: "create" })));
  const chains = addresses.map(() => new ChainMailbox());
  const rows = [];
  for (const { actors, callers } of shapes) {
    const measured = await inRounds(
      {
        actor: () => askAll(callers, (caller) => system.ask(addresses[caller % actors]!, read)),
        chain: () => askAll(callers, (caller) => chains[caller % actors]!.ask(read)),
      },
      { rounds, warmUps: 4, secondsMax: 12 },
    );
    const rate = measured.ratio("actor", "chain", "perSecond");
    rows.push({
      shape: `${actors} actor${actors === 1 ? "" : "s"}, ${callers} caller${callers === 1 ? "" : "s"}`,
      "asks/s": measured.median("actor", "perSecond"),
      "chain asks/s": measured.median("chain", "perSecond"),
      ratio: rate.median,
      "q1..q3": quartilesText(rate),
      "cpu ns/ask": measured.median("actor", "cpuNs"),
      "chain cpu ns": measured.median("chain", "cpuNs"),
      "cpu ratio": measured.ratio("chain", "actor", "cpuNs").median,
    });
  }
  await system.stop(0);
  await system.store.close();
  return rows;
}

const spawned = 50_000;

/** Heap bytes per actor: with all resident, less the same system after all have left, less a plain Map of the states. */
async function measureMemory(): Promise<{ resident: number; state: number }> {
  const system = await openSystem();
  for (let key = 0; key < spawned; key += 1_000) {
    const asks = Array.from({ length: 1_000 }, (_, offset) =>
      system.ask({ kind: counterKind.name, key: String(key + offset) }, { type: "create" }),
    );
    await Promise.all(asks);
  }
  const full = await heapBytes();
  if (system.residentCount !== spawned) throw new Error(`Only ${system.residentCount} actors are resident`);
  await system.stop(systemClock.monotonic());
  const empty = await heapBytes();
  const states = new Map(Array.from({ length: spawned }, (_, key) => [key, { count: 0 }]));
  const withStates = await heapBytes();
  if (states.size !== spawned) throw new Error("The states are gone");
  return { resident: (full - empty) / spawned, state: (withStates - empty) / spawned };
}

async function heapBytes(): Promise<number> {
  // Finished promises and emptied buckets go in the turns that follow.
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (let times = 0; times < 3; times += 1) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

if (process.argv.includes("--memory")) {
  console.log(JSON.stringify(await measureMemory()));
} else {
  const script = fileURLToPath(import.meta.url);
  const run = spawnSync(process.execPath, ["--expose-gc", script, "--memory"], { encoding: "utf8" });
  if (run.status !== 0) throw new Error(`The memory measurement failed: ${run.stderr}`);
  const memory = JSON.parse(run.stdout) as { resident: number; state: number };
  const rows = await measureAsks();
  const about = `Asks of ${asksPerRound} reads a round, medians of up to ${rounds} rounds; ${spawned} actors for memory`;
  report("asks", about, rows, [
    ...rows.flatMap((row) => [
      { what: `asks, ${row.shape}, rate, ratio to a promise chain`, atLeast: 0.5, measured: row.ratio },
      { what: `asks, ${row.shape}, CPU, ratio to a promise chain`, atLeast: 0.5, measured: row["cpu ratio"] },
    ]),
    { what: "resident actor, bytes beyond its state", atMost: 1_024, measured: memory.resident - memory.state },
  ]);
}
