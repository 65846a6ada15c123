/**
 * Durable writes per second of 32 writers: through the store, against LevelDB used plainly. `node test/bench/store.bench.ts`
 *
 * Prints one JSON line per disk and way, then a table. Five interleaved rounds after a warm-up, medians. Where strace may trace,
 * all is repeated with 2 ms added to each fdatasync: what an ordinary disk takes, where this machine's is quicker.
 * Set TMPDIR to choose the disk. Not measured: reads, several records per commit, values larger than 480 B.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Level } from "level";
import { openLevelStore } from "../../src/store/level-store.ts";
import { keptLog, wallClock } from "../store/parts.ts";

const writers = 32;
const rounds = 5;
const roundMs = 600;
const value = "v".repeat(480);

const ways = ["store", "naive", "serial"] as const;
type Way = (typeof ways)[number];
type Medians = Readonly<Record<Way, number>>;
const titles: Readonly<Record<Way, string>> = {
  store: `${writers} writers through the store (group commit)`,
  naive: `${writers} writers, each put synced`,
  serial: "one put after another, each synced",
};

/** Writes until told to stop; each call of `write` resolves once its value is durable. */
async function writesPerSecond(count: number, write: (writer: number, n: number) => Promise<unknown>): Promise<number> {
  const start = performance.now();
  const written = await Promise.all(
    Array.from({ length: count }, async (_, writer) => {
      let n = 0;
      while (performance.now() - start < roundMs) {
        await write(writer, n);
        n += 1;
      }
      return n;
    }),
  );
  return (written.reduce((sum, n) => sum + n, 0) * 1000) / (performance.now() - start);
}

async function measure(): Promise<Medians> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-bench-"));
  const store = await openLevelStore({ folder: join(folder, "store"), clock: wallClock, log: keptLog() });
  const level = new Level<string, string>(join(folder, "level"));
  await level.open();
  const results: Record<Way, number[]> = { store: [], naive: [], serial: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const commit = async (writer: number, n: number) => {
      const record = { key: `a/${round}/${writer}`, expect: n, value };
      const [outcome] = await store.commit([{ epoch: store.epoch, record, writes: [] }]);
      if (outcome !== "ok") throw new Error(`A commit ended "${outcome}"`);
    };
    const put = (writer: number) => level.put(`a/${round}/${writer}`, value, { sync: true });
    const measured = {
      store: await writesPerSecond(writers, commit),
      naive: await writesPerSecond(writers, put),
      serial: await writesPerSecond(1, put),
    };
    // The first round warms up.
    if (round > 0) for (const way of ways) results[way].push(measured[way]);
  }
  await store.close();
  await level.close();
  await rm(folder, { recursive: true });
  return { store: median(results.store), naive: median(results.naive), serial: median(results.serial) };
}

function median(values: readonly number[]): number {
  return Math.round([...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!);
}

/** Undefined where strace is missing or may not trace. */
function measureSlowed(): Medians | undefined {
  const slow = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_exit=2000"];
  const script = fileURLToPath(import.meta.url);
  const run = spawnSync("strace", ["--seccomp-bpf", ...slow, process.execPath, script, "--measure"], {
    encoding: "utf8",
  });
  return run.status === 0 ? (JSON.parse(run.stdout) as Medians) : undefined;
}

function report(disk: string, medians: Medians): void {
  for (const way of ways) console.log(JSON.stringify({ bench: "store", disk, way, writesPerSecond: medians[way] }));
}

function table(rows: readonly (readonly [string, Medians])[]): void {
  console.log(
    `\nNode ${process.version}, ${cpus().length} x ${cpus()[0]?.model}, 480 B values, medians of ${rounds}\n`,
  );
  for (const [disk, medians] of rows) {
    console.log(disk);
    for (const way of ways) {
      const ratio = (medians.store / medians[way]).toFixed(1);
      console.log(`  ${titles[way].padEnd(52)} ${String(medians[way]).padStart(8)} /s   store is ${ratio} x`);
    }
  }
}

if (process.argv.includes("--measure")) {
  console.log(JSON.stringify(await measure()));
} else {
  const own = await measure();
  report("own", own);
  const slowed = measureSlowed();
  if (slowed !== undefined) report("2 ms slower", slowed);
  table([["This disk", own], ...(slowed === undefined ? [] : ([["2 ms added to each fdatasync", slowed]] as const))]);
}
