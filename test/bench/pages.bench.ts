/**
 * One page of GET /processes of the real server: with 1,000 processes stored, and with 1,000,000. `node test/bench/pages.bench.ts`
 *
 * The first page, a page from the middle, and filtered ones. Both stores are filled through the product's own commits, none of the
 * processes is in memory, and most of the run is filling. Not measured: other lists, which walk the same kind of index.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProcessState, processKind } from "../../src/actors/process.ts";
import { encodeCursor } from "../../src/operations/page.ts";
import { planCommit } from "../../src/runtime/commit-plan.ts";
import { sequenceKey } from "../../src/runtime/keys.ts";
import type { AnyKind } from "../../src/runtime/kind.ts";
import { openLevelStore } from "../../src/store/level-store.ts";
import { keptLog, wallClock } from "../store/parts.ts";
import { cpuMs } from "./cpu-time.ts";
import { startLoad } from "./load.ts";
import { inRounds, quartilesText, report, type Sample } from "./measure.ts";
import { type ServerProcess, startTroupe } from "./server-process.ts";

const sizes = { few: 1_000, many: 1_000_000 } as const;
type Size = keyof typeof sizes;
const connections = 8;
const requests = 400;
const rounds = 9;
const refs = 10;

const paths = {
  "first page": () => "/processes?limit=50",
  "from the middle": (middle: string) => `/processes?limit=50&cursor=${encodeURIComponent(middle)}`,
  "of one ref": () => "/processes?limit=50&ref=team-3",
  "of one exit state": () => "/processes?limit=50&exitState=failed",
} as const;
type Path = keyof typeof paths;

/** A process for each second up to now: 1,000,000 are 12 days, which the server keeps by default. */
const base = Date.now() - sizes.many * 1_000;
const folder = await mkdtemp(join(tmpdir(), "troupe-bench-"));
const servers = {} as Record<Size, ServerProcess>;
const middles = {} as Record<Size, string>;
const fillSeconds = {} as Record<Size, number>;
try {
  for (const size of Object.keys(sizes) as Size[]) {
    const data = join(folder, size);
    fillSeconds[size] = await fill(data, sizes[size]);
    servers[size] = await startTroupe([], { SERVICE_DATA_DIR: data });
    const { createdAt, id } = stateOf(sizes[size] / 2);
    middles[size] = encodeCursor([createdAt, id]);
  }
  const load = startLoad();
  const ways = Object.fromEntries(
    (Object.keys(paths) as Path[]).flatMap((path) =>
      (Object.keys(sizes) as Size[]).map((size) => [`${size} ${path}`, () => read(size, path)] as const),
    ),
  ) as Record<`${Size} ${Path}`, () => Promise<Sample<"perSecond" | "cpuUs">>>;
  const measured = await inRounds(ways, { rounds, warmUps: 2, secondsMax: 60 });
  await load.stop();
  const rows = (Object.keys(paths) as Path[]).map((path) => {
    const time = measured.ratio(`few ${path}`, `many ${path}`, "perSecond");
    return {
      page: path,
      "1,000: pages/s": measured.median(`few ${path}`, "perSecond"),
      "1,000,000: pages/s": measured.median(`many ${path}`, "perSecond"),
      "time ratio": time.median,
      "q1..q3": quartilesText(time),
      "cpu ratio": measured.ratio(`many ${path}`, `few ${path}`, "cpuUs").median,
    };
  });
  report(
    "pages",
    `GET /processes, 50 a page, ${connections} connections, medians of ${measured.rounds} rounds; filling 1,000,000 took ${Math.round(fillSeconds.many)} s`,
    rows,
    rows.map((row) => ({
      what: `Time of a page (${row.page}), 1,000,000 to 1,000 records`,
      atMost: 1.5,
      measured: row["time ratio"],
    })),
  );

  async function read(size: Size, path: Path): Promise<Sample<"perSecond" | "cpuUs">> {
    const server = servers[size];
    const before = cpuMs(server.pid);
    const url = server.http + paths[path](middles[size]);
    const { requestsPerSecond } = await load.run({ url, connections, requests });
    return { perSecond: requestsPerSecond, cpuUs: ((cpuMs(server.pid) - before) * 1_000) / requests };
  }
} finally {
  await Promise.all(Object.values(servers).map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
}

/** Seconds it took. */
async function fill(data: string, count: number): Promise<number> {
  const start = performance.now();
  const store = await openLevelStore({ folder: join(data, "store"), clock: wallClock, log: keptLog() });
  const together = 1_000;
  for (let first = 1; first <= count; first += together) {
    const commits = Array.from({ length: Math.min(together, count - first + 1) }, (_, offset) => {
      const state = stateOf(first + offset);
      const key = String(state.id);
      return planCommit({
        kind: processKind as unknown as AnyKind,
        address: { kind: "process", key },
        epoch: store.epoch,
        revision: 0,
        before: null,
        step: { state, reply: null },
        commands: [],
        extra: [{ key: sequenceKey("process"), value: key }],
      });
    });
    const outcomes = await store.commit(commits);
    if (!outcomes.every((outcome) => outcome === "ok")) throw new Error("A commit was refused");
  }
  await store.close();
  return (performance.now() - start) / 1_000;
}

function stateOf(id: number): ProcessState {
  const createdAt = base + id * 1_000;
  const isFailed = id % 10 === 0;
  return {
    id,
    state: "idle",
    exitState: isFailed ? "failed" : "success",
    error: isFailed ? "The program threw" : null,
    reason: isFailed ? "thrown" : null,
    ref: `team-${id % refs}`,
    timeoutMs: 60_000,
    createdAt,
    completedAt: createdAt + 500,
    run: 1,
  };
}
