/** WatchProcesses and WatchEvents over real processes: what a snapshot holds and leaves out, and which changes a filter lets through. */
import { describe, expect, it } from "vitest";
import { processKind } from "../../src/actors/process.ts";
import { changesTellMs, restartsMax, snapshotCharactersMax, snapshotProcessesMax } from "../../src/limits.ts";
import { changeStreams } from "../../src/operations/change-streams.ts";
import type { RpcStream } from "../../src/operations/operation.ts";
import { settle } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openProcesses } from "./process-events-stage.ts";

interface Told {
  readonly sequence: number;
  readonly kind?: string;
  readonly snapshot?: { reason: string; items: { id: number | string; state?: string }[]; hasMore: boolean };
  readonly process?: { id: number; state: string };
  readonly reason?: string | null;
  readonly event?: { type: string; id: string; state?: string };
}

async function openStage() {
  const stage = await openProcesses();
  const none = { list: async () => ({ items: [], next: undefined }) } as never;
  const { system, processes, clock } = stage;
  const rows = changeStreams({
    ...{ system, store: system.store, clock, log: silentLog },
    ...{ processes, registries: none, services: none, modules: none },
  });
  const leaving = new AbortController();
  const follow = async (name: string, input: Record<string, unknown> = {}): Promise<Told[]> => {
    const row = rows.find((one) => one.name === name) as RpcStream<unknown, Told>;
    const context = {
      requestId: "r",
      caller: { name: "c", role: "agent" },
      deadline: Number.POSITIVE_INFINITY,
    } as const;
    const items = await row.open(row.input.parse(input), { ...context, signal: leaving.signal });
    const told: Told[] = [];
    void (async () => {
      for await (const item of items ?? []) told.push(row.output.parse(item));
    })().catch(() => undefined);
    await settle();
    return told;
  };
  /** Lets those who follow hear of it. */
  const tell = () => clock.advance(changesTellMs);
  const label = async (ref: string, autorun: boolean): Promise<number> => {
    const id = processes.nextKey();
    const message = { type: "create", id, code: "", ref, timeoutMs: null, envConfig: {}, autorun } as const;
    await processes.ask(String(id), message);
    return id;
  };
  return { ...stage, follow, tell, label, leave: () => leaving.abort(new Error("gone")) };
}

describe("the processes that match", () => {
  it("are in the snapshot newest first, as many as one message may hold", async () => {
    const { follow, label } = await openStage();
    const ids: number[] = [];
    for (let n = 0; n < snapshotProcessesMax + 3; n++) ids.push(await label("many", false));
    const [first] = await follow("watchProcesses", { ref: "many" });
    expect(first?.snapshot?.items.map(({ id }) => id)).toEqual(ids.reverse().slice(0, snapshotProcessesMax));
    expect([first?.kind, first?.snapshot?.reason, first?.snapshot?.hasMore]).toEqual(["snapshot", "start", true]);
    const [other] = await follow("watchProcesses", { ref: "none of them" });
    expect(other?.snapshot).toEqual({ reason: "start", items: [], hasMore: false });
  });

  it("are fewer where what they say of themselves is long", async () => {
    const { follow, create, run } = await openStage();
    const error = "e".repeat(snapshotCharactersMax / 3);
    for (let n = 0; n < 5; n++) {
      await create();
      run().end({ kind: "failed", reason: "thrown", error });
      await settle();
    }
    const [first] = await follow("watchProcesses");
    expect(first?.snapshot?.items.map(({ id }) => id)).toEqual([5, 4]);
    expect(first?.snapshot?.hasMore).toBe(true);
  });

  it("are told of when they come to match, change, match no longer, or go", async () => {
    const { follow, tell, create, run, remove, label } = await openStage();
    const all = await follow("watchProcesses");
    const running = await follow("watchProcesses", { state: "running" });
    const labelled = await follow("watchProcesses", { ref: "mine" });
    const id = await create();
    await label("mine", false);
    run().end();
    await settle();
    await remove(id);
    await tell();
    const words = (told: Told[]) =>
      told.slice(1).map(({ kind, process }) => `${kind} ${process?.id} ${process?.state}`);
    expect(words(all)).toEqual([
      "added 1 queued",
      "changed 1 running",
      "added 2 idle",
      "changed 1 idle",
      "removed 1 idle",
    ]);
    expect(words(running)).toEqual(["changed 1 running", "changed 1 idle"]);
    expect(words(labelled)).toEqual(["added 2 idle"]);
    expect(running.slice(1).map(({ sequence }) => sequence)).toEqual(
      all
        .filter(({ process }, place) => place > 0 && [2, 4].includes(place) && process)
        .map(({ sequence }) => sequence),
    );
  });
});

describe("why a run failed", () => {
  it.each(["thrown", "memory", "deadlocked"] as const)("is told with each change since: %s", async (reason) => {
    const { follow, tell, create, run, remove } = await openStage();
    const all = await follow("watchProcesses");
    const id = await create();
    run().end({ kind: "failed", reason, error: "no" });
    await settle();
    await remove(id);
    await tell();
    expect(all.slice(1).map((told) => [told.kind, told.reason])).toEqual([
      ["added", null],
      ["changed", null],
      ["changed", reason],
      ["removed", reason],
    ]);
  });
});

describe("the things of the node", () => {
  it("are there with their states: processes at work, and whatever is parked", async () => {
    const { follow, tell, create, run, system, clock, processes, remove } = await openStage();
    const idle = await create(false);
    const atWork = await create();
    const parked = await create(false);
    const { decide } = processKind;
    // As a broken invariant of the kind would.
    processKind.decide = () => {
      throw new Error("broken invariant");
    };
    for (let crash = 0; crash <= restartsMax; crash++) {
      await processes.ask(String(parked), { type: "unload", loaded: true }).catch(() => undefined);
      await clock.advance(2_000);
    }
    processKind.decide = decide;
    const events = await follow("watchEvents");
    expect(events[0]?.snapshot).toEqual({
      reason: "start",
      items: [
        { kind: "process", id: String(atWork), state: "running" },
        { kind: "process", id: String(parked), state: "parked" },
      ],
      hasMore: false,
    });
    system.restart({ kind: "process", key: String(parked) });
    await clock.advance(10);
    await remove(idle);
    run().end({ kind: "failed", reason: "memory", error: "too much" });
    await tell();
    expect(events.slice(1).map(({ event }) => [event?.id, event?.type, event?.state])).toEqual([
      [String(parked), "restarted", "idle"],
      [String(idle), "removed", undefined],
      [String(atWork), "failed", "idle"],
    ]);
    expect((await follow("watchEvents"))[0]?.snapshot?.items).toEqual([]);
  });
});
