/** What followers of a process are told: in which order, under which numbers, and that none of them affects a run or another. */
import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { endedRecordingsCharactersMax, recordedStretchCharactersMax, recordingBytesMax } from "../../src/limits.ts";
import { EndedRecordings } from "../../src/operations/ended-recordings.ts";
import type { ProcessEvent } from "../../src/operations/process-events.ts";
import { settle } from "../runtime/manual-clock.ts";
import { openProcesses, sequences, told } from "./process-events-stage.ts";

type Stage = Awaited<ReturnType<typeof openProcesses>>;

/** Prints, calls a tool, and ends. */
async function act({ run }: Stage): Promise<void> {
  const { events } = run();
  events.stdout("one");
  events.stderr("two");
  events.toolCall({ callId: 1, serviceId: "shop", toolId: "list", parameters: {} });
  await settle();
  events.stdout("three");
  run().end({ kind: "success", output: '{"n":1}' });
  await settle();
}

const whole = [
  "snapshot",
  "state queued",
  "state running",
  "stdout one",
  "stderr two",
  "toolCall started",
  "toolCall ok",
  "stdout three",
  'output {"n":1}',
  "state idle",
];

async function all(stage: Stage, id: number, lastEventId?: unknown): Promise<ProcessEvent[]> {
  const follower = await stage.follow(id, lastEventId);
  await follower.over;
  return follower.events;
}

describe("a follower", () => {
  it("is told the run in order, as it goes, and the stream ends when all is told", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const follower = await stage.follow(id);
    expect(told(follower.events)).toEqual(["snapshot", "state queued", "state running"]);
    stage.run().events.stdout("now");
    await settle();
    expect(told(follower.events).at(-1)).toBe("stdout now");
    stage.run().end({ kind: "success", output: '{"n":1}' });
    await follower.over;
    expect(told(follower.events).slice(3)).toEqual(["stdout now", 'output {"n":1}', "state idle"]);
    expect(follower.events.at(-1)?.process).toMatchObject({ id, state: "idle", exitState: "success" });
    expect(follower.events.at(-1)?.reason).toBeNull();
  });

  it("who comes at any moment is told the same under the same numbers, as is one after a restart", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const early = await stage.follow(id);
    const late: Awaited<ReturnType<Stage["follow"]>>[] = [];
    const { events } = stage.run();
    for (const text of ["one", "two", "three"]) {
      events.stdout(text);
      late.push(await stage.follow(id));
    }
    stage.run().end({ kind: "failed", reason: "thrown", error: "boom", output: "{}" } as never);
    await early.over;
    late.push(await stage.follow(id), await (await openProcesses(stage.disk)).follow(id));
    const happened = early.events.filter(({ kind }) => kind !== "snapshot");
    expect(happened.at(-1)).toMatchObject({ state: "idle", reason: "thrown", process: { error: "boom" } });
    for (const follower of late) {
      await follower.over;
      const [first, ...rest] = follower.events;
      expect(first).toMatchObject({ kind: "snapshot", sequence: 999_999, process: { id } });
      expect(withoutPid(rest)).toEqual(withoutPid(happened));
    }
    const numbers = sequences(early.events);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  });

  it("who comes back with any number of a run is told exactly the rest, live, afterwards, and after a restart", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const first = await stage.follow(id);
    const { events } = stage.run();
    events.stdout("one");
    events.stderr("two");
    await settle();
    const live = await Promise.all(first.events.map(({ sequence }) => stage.follow(id, String(sequence))));
    const seen = first.events.length;
    events.toolCall({ callId: 1, serviceId: "shop", toolId: "list", parameters: {} });
    await settle();
    stage.run().end({ kind: "success", output: '{"n":1}' });
    await first.over;
    for (const [at, follower] of live.entries()) {
      await follower.over;
      expect(follower.events).toEqual(first.events.slice(at + 1));
    }
    expect(seen).toBe(5);
    for (const stageNow of [stage, await openProcesses(stage.disk)]) {
      for (const [at, { sequence }] of first.events.entries()) {
        const rest = first.events.slice(at + 1);
        const isLast = rest.length === 0;
        if (isLast) expect(await stageNow.open(id, sequence)).toBeNull();
        else expect(withoutPid(await all(stageNow, id, sequence))).toEqual(withoutPid(rest));
      }
    }
  });

  it.each(["", "abc", "-1", "1.5", "0", "999998", "1000020", "2000000", "9".repeat(15), "9".repeat(30), "1e6", " 1"])(
    "who comes back with %j, which is no number of the run, starts over",
    async (lastEventId) => {
      const stage = await openProcesses();
      const id = await stage.create();
      const live = await stage.follow(id, lastEventId);
      await act(stage);
      await live.over;
      expect(told(live.events)).toEqual(whole);
      expect(told(await all(stage, id, lastEventId))).toEqual(whole);
    },
  );

  it("who knows of the end of a run that is still going starts over", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    for (const number of [1_999_999, 1_999_998, 1_000_002]) {
      expect(told((await stage.follow(id, number)).events)[0]).toBe("snapshot");
    }
  });

  it("of a queued process waits, and one with a number that only a begun run has starts over", async () => {
    const stage = await openProcesses(undefined, 1);
    await stage.create();
    const id = await stage.create();
    expect(told((await stage.follow(id)).events)).toEqual(["snapshot", "state queued"]);
    expect(told((await stage.follow(id, 1_000_000)).events)).toEqual([]);
    expect(told((await stage.follow(id, 1_000_001)).events)).toEqual(["snapshot", "state queued"]);
  });

  it("of a process that never ran is told its snapshot, waits for a run, and may leave and come back meanwhile", async () => {
    const stage = await openProcesses();
    const id = await stage.create(false);
    const patient = await stage.follow(id);
    expect(patient.events).toMatchObject([{ kind: "snapshot", process: { state: "idle", exitState: null } }]);
    const back = await stage.follow(id, patient.events[0]?.sequence);
    expect(back.events).toEqual([]);
    await stage.force(id);
    await act(stage);
    await Promise.all([patient.over, back.over]);
    expect(told(patient.events)).toEqual(whole);
    expect(told(back.events)).toEqual(whole.slice(1));
  });

  it("of a process that does not exist is refused before anything is told", async () => {
    const stage = await openProcesses();
    await expect(stage.open(9)).rejects.toMatchObject({ kind: "not_found" });
  });

  it("of a process that is deleted is told what is left, and the stream ends", async () => {
    const stage = await openProcesses();
    const never = await stage.create(false);
    const waiting = await stage.follow(never);
    await stage.remove(never);
    await waiting.over;
    const id = await stage.create();
    const follower = await stage.follow(id);
    stage.run().end();
    await follower.over;
    await stage.remove(id);
    await expect(stage.open(id)).rejects.toMatchObject({ kind: "not_found" });
  });

  it("who leaves is forgotten: nothing waits for it, and the run goes on", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const watchers = countWatchers(stage);
    const followers = await Promise.all(Array.from({ length: 10 }, () => stage.follow(id)));
    expect(watchers()).toBe(20);
    for (const { leave } of followers) leave(new Failure("cancelled", "The client went away"));
    for (const { over } of followers) await expect(over).rejects.toMatchObject({ kind: "cancelled" });
    expect(watchers()).toBe(0);
    await act(stage);
    expect(await stage.stateOf(id)).toMatchObject({ state: "idle", exitState: "success" });
    expect(watchers()).toBe(0);
  });

  it("who leaves before it took anything, or was not told anything, is forgotten as well", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const watchers = countWatchers(stage);
    const leaving = new AbortController();
    await stage.open(id, undefined, leaving.signal);
    leaving.abort(new Failure("cancelled", "gone"));
    await act(stage);
    await stage.open(id, 1_999_999);
    await expect(stage.open(99)).rejects.toThrow();
    expect(watchers()).toBe(0);
  });

  it("who reads slowly holds up neither the run nor the others, and is told everything all the same", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const slow = (await stage.open(id))?.[Symbol.asyncIterator]() as AsyncIterator<ProcessEvent>;
    const taken = [(await slow.next()).value];
    const fast = await stage.follow(id);
    await act(stage);
    await fast.over;
    expect(await stage.stateOf(id)).toMatchObject({ exitState: "success" });
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) taken.push(next.value);
    expect(told(taken)).toEqual(whole);
    expect(sequences(taken)).toEqual(sequences(fast.events));
  });

  it("takes a recording of many stretches in order, each event once", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const texts = Array.from({ length: 50 }, (_, at) => `${at}:${"x".repeat(recordedStretchCharactersMax / 16)}`);
    for (const text of texts) stage.run().events.stdout(text);
    stage.run().end();
    await settle();
    const events = await all(stage, id);
    expect(events.flatMap(({ text }) => (text === undefined ? [] : [text]))).toEqual(texts);
    expect(told(await all(stage, id, events.at(-3)?.sequence))).toEqual(["output {}", "state idle"]);
  });

  it("of many who take a recording of many stretches, the first has it read and parsed, once", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const text = "x".repeat(recordedStretchCharactersMax);
    for (let stretch = 0; stretch < 7; stretch++) stage.run().events.stdout(text);
    stage.run().end();
    await settle();
    const read: string[] = [];
    const blob = stage.processes.blob.bind(stage.processes);
    stage.processes.blob = (key, name) => {
      read.push(name);
      return blob(key, name);
    };
    const parse = vi.spyOn(JSON, "parse");
    try {
      const crowd = 20;
      for (const events of await Promise.all(Array.from({ length: crowd }, () => all(stage, id)))) {
        expect(events.map((event) => event.text ?? "").join("")).toBe(text.repeat(7));
      }
      expect(parse.mock.calls.filter(([given]) => given.length > text.length)).toHaveLength(1);
      // Those who came at once all asked for it; nobody did for a second stretch.
      expect(read.filter((name) => name === "events").length).toBeLessThanOrEqual(crowd);
      expect(read.filter((name) => name === "output")).toHaveLength(crowd);
      read.length = 0;
      await all(stage, id);
      expect(read).toEqual(["output"]);
    } finally {
      parse.mockRestore();
    }
  });

  it("keeps no more of ended runs for its followers than may be kept, the last asked for", () => {
    const recordings = new EndedRecordings();
    const kept = endedRecordingsCharactersMax / recordingBytesMax;
    const events = [{ kind: "stdout", text: "x" }];
    const largest = JSON.stringify(events).padEnd(recordingBytesMax);
    for (let run = 0; run < kept; run++) recordings.parse({ processId: 1, run }, largest);
    expect(recordings.get({ processId: 1, run: 0 })).toEqual(events);
    recordings.parse({ processId: 2, run: 0 }, largest);
    expect(recordings.get({ processId: 1, run: 1 })).toBeUndefined();
    expect(recordings.get({ processId: 1, run: 0 })).toEqual(events);
    expect(recordings.get({ processId: 2, run: 0 })).toEqual(events);
  });
});

describe("runs by force", () => {
  it("go on with greater numbers, and who has all of the run before is told the next without a snapshot", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    await act(stage);
    const first = await all(stage, id);
    await stage.force(id);
    const next = await stage.follow(id, first.at(-1)?.sequence);
    const fresh = await stage.follow(id);
    const partly = await stage.follow(id, first.at(-2)?.sequence);
    await act(stage);
    await Promise.all([next.over, fresh.over, partly.over]);
    expect(told(next.events)).toEqual(whole.slice(1));
    expect(told(fresh.events)).toEqual(whole);
    expect(told(partly.events)).toEqual(whole);
    expect(Math.min(...sequences(next.events))).toBeGreaterThan(Math.max(...sequences(first)));
    expect(fresh.events[0]?.sequence).toBe(first.at(-1)?.sequence);
  });

  it("that begin while somebody follows are told as well", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const slow = (await stage.open(id))?.[Symbol.asyncIterator]() as AsyncIterator<ProcessEvent>;
    const taken: ProcessEvent[] = [];
    while (taken.at(-1)?.state !== "running") taken.push((await slow.next()).value);
    const ending = slow.next();
    stage.run().end();
    await settle();
    taken.push((await ending).value);
    await stage.force(id);
    await act(stage);
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) taken.push(next.value);
    expect(told(taken)).toEqual([...whole.slice(0, 3), "output {}", "state idle", ...whole.slice(1)]);
  });

  it.each(["run by force", "deleted"])(
    "a process that is %s in the moment it ends: its follower is told the end first",
    async (what) => {
      const stage = await openProcesses();
      const id = await stage.create();
      stage.processes.watch(String(id), (state) => {
        if (state?.state !== "idle" || state.run !== 1) return;
        void (what === "deleted" ? stage.remove(id) : stage.force(id));
      });
      const follower = await stage.follow(id);
      // By the time it reads what is beside the record, that may be gone.
      stage.processes.blob = async () => undefined;
      stage.run().end({ kind: "success", output: '{"n":1}' });
      await settle();
      expect(told(follower.events).slice(3, 5)).toEqual(['output {"n":1}', "state idle"]);
      if (what === "deleted") return follower.over;
      const next = await stage.follow(id, follower.events[4]?.sequence);
      expect(told(next.events)).toEqual(["state queued", "state running"]);
    },
  );

  it("that a follower was told nothing of are not passed over in silence", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const slow = (await stage.open(id))?.[Symbol.asyncIterator]() as AsyncIterator<ProcessEvent>;
    const taken: ProcessEvent[] = [];
    while (taken.at(-1)?.state !== "running") taken.push((await slow.next()).value);
    const ending = slow.next();
    stage.run().end();
    taken.push((await ending).value, (await slow.next()).value);
    for (const _ of [2, 3]) {
      await stage.force(id);
      stage.run().end();
      await settle();
    }
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) taken.push(next.value);
    expect(told(taken).slice(4)).toEqual([
      "state idle",
      "snapshot",
      "state queued",
      "state running",
      "output {}",
      "state idle",
    ]);
    expect(taken.at(-1)?.sequence).toBe(3_999_999);
  });

  it("that replace what a slow follower was not told yet start it over, and its numbers still grow", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const slow = (await stage.open(id))?.[Symbol.asyncIterator]() as AsyncIterator<ProcessEvent>;
    const taken = [(await slow.next()).value as ProcessEvent];
    await act(stage);
    await stage.force(id);
    await act(stage);
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) taken.push(next.value);
    expect(told(taken)).toEqual(["snapshot", "state queued", ...whole]);
    const numbers = sequences(taken);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  });
});

describe("runs without a recording", () => {
  it("that were killed in the queue have the states of their record", async () => {
    const stage = await openProcesses(undefined, 1);
    await stage.create();
    const id = await stage.create();
    const follower = await stage.follow(id);
    await stage.kill(id);
    await follower.over;
    expect(told(follower.events)).toEqual(["snapshot", "state queued", "state idle"]);
    expect(told(await all(stage, id))).toEqual(told(follower.events));
    expect(await stage.open(id, follower.events.at(-1)?.sequence)).toBeNull();
  });

  it("that a restart interrupted end where their followers were, whatever those had seen", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const before = await stage.follow(id);
    stage.run().events.stdout("one");
    stage.run().events.stdout("two");
    await settle();
    const again = await openProcesses(stage.disk);
    const fresh = await all(again, id);
    expect(told(fresh)).toEqual(["snapshot", "state queued", "state running", "state idle"]);
    expect(fresh.at(-1)).toMatchObject({ reason: "interrupted", process: { exitState: "failed" } });
    for (const { sequence } of before.events.slice(2)) {
      expect(told(await all(again, id, sequence))).toEqual(["state idle"]);
    }
    expect(await again.open(id, fresh.at(-1)?.sequence)).toBeNull();
  });

  it("that was told to stop tells so before it ends", async () => {
    const stage = await openProcesses();
    const id = await stage.create();
    const follower = await stage.follow(id);
    await stage.kill(id);
    stage.run().end({ kind: "stopped", output: '{"so":"far"}' });
    await follower.over;
    expect(told(follower.events).slice(3)).toEqual(["state terminating", 'output {"so":"far"}', "state idle"]);
    expect(follower.events.at(-1)?.process).toMatchObject({ exitState: "canceled" });
  });
});

/** A pid is new after a restart, and nothing that happened. */
function withoutPid(events: readonly ProcessEvent[]): unknown[] {
  return events.map((event) => ({
    ...event,
    ...(event.process === undefined ? {} : { process: { ...event.process, pid: 0 } }),
  }));
}

/** Those who wait for the next state of a process, and for what its run does next. */
function countWatchers({ processes, launcher }: Stage): () => number {
  let open = 0;
  const counted = <Arguments extends unknown[]>(start: (...given: Arguments) => () => void) => {
    return (...given: Arguments): (() => void) => {
      const stop = start(...given);
      let isOpen = true;
      open++;
      return () => {
        if (isOpen) open--;
        isOpen = false;
        stop();
      };
    };
  };
  processes.watch = counted(processes.watch.bind(processes));
  launcher.onRecorded = counted(launcher.onRecorded.bind(launcher));
  return () => open;
}
