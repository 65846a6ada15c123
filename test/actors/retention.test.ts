import { describe, expect, it } from "vitest";
import { processKind } from "../../src/actors/process.ts";
import { startRetention } from "../../src/actors/retention.ts";
import type { Launcher, RunResult } from "../../src/ports/launcher.ts";
import { System } from "../../src/runtime/system.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";

const day = 86_400_000;
const result: RunResult = {
  ending: "success",
  reason: null,
  error: null,
  output: "{}",
  stdout: "",
  stderr: "",
  events: "[]",
};

/** Runs whatever it is given, at once. */
const instantLauncher: Launcher = {
  reserve: () => () => {},
  enqueue: (_, admitted) => admitted(),
  release() {},
  execute: (_, ended) => ended(result),
  stop() {},
  knows: () => false,
  live: () => undefined,
  recording: () => undefined,
  onRecorded: () => () => {},
};

async function openProcesses(keepMs: number | null) {
  const clock = new ManualClock();
  const store = await openMemoryStore({ clock, log: silentLog });
  const system = new System({ store, clock, log: silentLog });
  const processes = system.register(processKind, { launcher: instantLauncher });
  const stop = startRetention({ processes, clock, log: silentLog, keepMs });
  const create = async (autorun = true): Promise<number> => {
    const id = processes.nextKey();
    const message = { type: "create", id, code: "", ref: undefined, timeoutMs: null, envConfig: {}, autorun } as const;
    await processes.ask(String(id), message);
    await clock.advance(0);
    return id;
  };
  const exists = async (id: number): Promise<boolean> => (await processes.query(String(id))).state !== null;
  return { clock, processes, create, exists, stop };
}

describe("retention", () => {
  it("deletes runs that finished longer ago, and no others", async () => {
    const { clock, create, exists, processes } = await openProcesses(30 * day);
    const old = await create();
    const neverRun = await create(false);
    const again = await create();
    await clock.advance(29 * day);
    const young = await create();
    await processes.ask(String(again), { type: "run", force: true });
    await clock.advance(day + 61_000);
    expect(await Promise.all([old, neverRun, again, young].map(exists))).toEqual([false, true, true, true]);
    expect(await processes.blob(String(old), "code")).toBeUndefined();
  });

  it("works through more than one page in one sweep", async () => {
    const { clock, create, exists } = await openProcesses(day);
    const ids: number[] = [];
    for (let count = 0; count < 250; count++) ids.push(await create());
    await clock.advance(day + 61_000);
    expect((await Promise.all(ids.map(exists))).filter(Boolean)).toEqual([]);
  });

  it("of 0 keeps everything, and stopped it does nothing more", async () => {
    const forEver = await openProcesses(null);
    const kept = await forEver.create();
    await forEver.clock.advance(400 * day);
    expect(await forEver.exists(kept)).toBe(true);
    const stopped = await openProcesses(day);
    const id = await stopped.create();
    stopped.stop();
    await stopped.clock.advance(40 * day);
    expect(await stopped.exists(id)).toBe(true);
    expect(stopped.clock.timers).toBe(0);
  });
});
