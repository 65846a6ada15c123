/** What a process decides: every message in every state, and stories told as transcripts. */
import { describe, expect, it } from "vitest";
import {
  interruptedError,
  type ProcessEffect,
  type ProcessMessage,
  type ProcessState,
  processKind,
} from "../../src/actors/process.ts";
import { isFailure } from "../../src/errors/failure.ts";
import type { RunResult } from "../../src/ports/launcher.ts";
import { transcript } from "./transcript.ts";

const now = 1_700_000_000_000;

const create = (autorun: boolean): ProcessMessage => ({
  type: "create",
  id: 7,
  code: "return 1",
  ref: "job",
  timeoutMs: 30_000,
  envConfig: {},
  autorun,
});

const result = (ending: RunResult["ending"], more: Partial<RunResult> = {}): RunResult => ({
  ending,
  reason: ending === "failed" ? "thrown" : null,
  error: ending === "failed" ? "boom" : null,
  output: '{"a":1}',
  stdout: "out",
  stderr: "",
  events: "[]",
  ...more,
});

function after(...messages: ProcessMessage[]): ProcessState | null {
  return messages.reduce<ProcessState | null>((state, message) => processKind.decide(state, message, now).state, null);
}

const states: Record<string, ProcessState | null> = {
  absent: null,
  "never run": after(create(false)),
  queued: after(create(true)),
  running: after(create(true), { type: "admitted", run: 1 }),
  terminating: after(create(true), { type: "admitted", run: 1 }, { type: "kill" }),
  finished: after(create(true), { type: "admitted", run: 1 }, { type: "ended", run: 1, result: result("success") }),
};

/** State or refusal after a message, with the effects decided. */
function told(state: ProcessState | null, message: ProcessMessage): string {
  try {
    const step = processKind.decide(state, message, now);
    const effects = (step.effects ?? []).map((effect: ProcessEffect) => effect.type).join(",");
    const next = step.state === null ? "gone" : `${step.state.state}/${step.state.exitState}`;
    return `${step.state === state ? "unchanged" : next}${effects === "" ? "" : ` → ${effects}`}`;
  } catch (error) {
    return isFailure(error) ? error.kind : `crash: ${error}`;
  }
}

const messages: Record<string, ProcessMessage> = {
  create: create(true),
  run: { type: "run", force: false },
  "run by force": { type: "run", force: true },
  kill: { type: "kill" },
  unload: { type: "unload", loaded: true },
  "unload when not loaded": { type: "unload", loaded: false },
  delete: { type: "delete" },
  "expire when old": { type: "expire", completedBefore: now + 1 },
  "expire when young": { type: "expire", completedBefore: now },
  admitted: { type: "admitted", run: 1 },
  "admitted, older run": { type: "admitted", run: 0 },
  "ended well": { type: "ended", run: 1, result: result("success") },
  "ended badly": { type: "ended", run: 1, result: result("failed") },
  "ended at its limit": { type: "ended", run: 1, result: result("timeout") },
  "ended, older run": { type: "ended", run: 0, result: result("success") },
  lost: { type: "lost", run: 1 },
};

const table: Record<string, Record<keyof typeof states, string>> = {
  create: {
    absent: "queued/null → enqueue",
    "never run": "already_exists",
    queued: "already_exists",
    running: "already_exists",
    terminating: "already_exists",
    finished: "already_exists",
  },
  run: {
    absent: "not_found",
    "never run": "queued/null → enqueue",
    queued: "conflict",
    running: "conflict",
    terminating: "conflict",
    finished: "refused",
  },
  "run by force": {
    absent: "not_found",
    "never run": "queued/null → enqueue",
    queued: "conflict",
    running: "conflict",
    terminating: "conflict",
    finished: "queued/null → enqueue",
  },
  kill: {
    absent: "not_found",
    "never run": "conflict",
    queued: "idle/canceled → release",
    running: "terminating/null → stop",
    terminating: "unchanged",
    finished: "conflict",
  },
  unload: {
    absent: "not_found",
    "never run": "unchanged",
    queued: "conflict",
    running: "conflict",
    terminating: "conflict",
    finished: "unchanged",
  },
  "unload when not loaded": {
    absent: "not_found",
    "never run": "conflict",
    queued: "conflict",
    running: "conflict",
    terminating: "conflict",
    finished: "conflict",
  },
  delete: {
    absent: "not_found",
    "never run": "gone",
    queued: "conflict",
    running: "conflict",
    terminating: "conflict",
    finished: "gone",
  },
  "expire when old": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "unchanged",
    terminating: "unchanged",
    finished: "gone",
  },
  "expire when young": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "unchanged",
    terminating: "unchanged",
    finished: "unchanged",
  },
  admitted: {
    absent: "unchanged → release",
    "never run": "unchanged → release",
    queued: "running/null → execute",
    running: "unchanged → release",
    terminating: "unchanged → release",
    finished: "unchanged → release",
  },
  "admitted, older run": {
    absent: "unchanged → release",
    "never run": "unchanged → release",
    queued: "unchanged → release",
    running: "unchanged → release",
    terminating: "unchanged → release",
    finished: "unchanged → release",
  },
  "ended well": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "idle/success",
    terminating: "idle/canceled",
    finished: "unchanged",
  },
  "ended badly": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "idle/failed",
    terminating: "idle/canceled",
    finished: "unchanged",
  },
  "ended at its limit": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "idle/timeout",
    terminating: "idle/canceled",
    finished: "unchanged",
  },
  "ended, older run": {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "unchanged",
    terminating: "unchanged",
    finished: "unchanged",
  },
  lost: {
    absent: "unchanged",
    "never run": "unchanged",
    queued: "unchanged",
    running: "idle/failed",
    terminating: "idle/failed",
    finished: "unchanged",
  },
};

describe("a process decides", () => {
  for (const [messageName, message] of Object.entries(messages)) {
    for (const [stateName, state] of Object.entries(states)) {
      it(`${messageName} while ${stateName}`, () => {
        expect(told(state, message)).toBe(table[messageName]?.[stateName]);
      });
    }
  }
});

describe("a process", () => {
  it("owes to be queued while queued, to be confirmed while alive, and nothing while idle", () => {
    const owed = Object.entries(states).map(([name, state]) => [
      name,
      state === null ? [] : processKind.owed(state).map(({ type }) => type),
    ]);
    expect(Object.fromEntries(owed)).toEqual({
      absent: [],
      "never run": [],
      queued: ["enqueue"],
      running: ["confirm"],
      terminating: ["confirm"],
      finished: [],
    });
  });

  it("has completedAt exactly when it is idle with an exit state", () => {
    for (const state of Object.values(states)) {
      if (state === null) continue;
      expect(state.completedAt !== null, JSON.stringify(state)).toBe(
        state.state === "idle" && state.exitState !== null,
      );
    }
  });

  it("clears its results in the step that queues it again", () => {
    const step = processKind.decide(states.finished ?? null, { type: "run", force: true }, now);
    expect(step.blobs).toEqual({ output: null, stdout: null, stderr: null, events: null });
    expect(step.state).toMatchObject({ run: 2, exitState: null, error: null, completedAt: null });
  });

  it("keeps a sentence and a reason when the server was restarted under it", () => {
    const { state } = processKind.decide(states.running ?? null, { type: "lost", run: 1 }, now);
    expect(state).toMatchObject({ error: interruptedError, reason: "interrupted", completedAt: now });
  });

  it("has no error text unless it failed or ran into its limit", () => {
    expect(after(create(true), { type: "kill" })).toMatchObject({ exitState: "canceled", error: null });
    const stopped: ProcessMessage = { type: "ended", run: 1, result: result("stopped") };
    expect(after(create(true), { type: "admitted", run: 1 }, stopped)).toMatchObject({
      exitState: "canceled",
      error: null,
    });
  });

  it("never completes before it was created, whatever the clock says", () => {
    const { state } = processKind.decide(states.queued ?? null, { type: "kill" }, now - 60_000);
    expect(state?.completedAt).toBe(now);
  });

  it("is listed where its filters look for it", () => {
    const names = (state: ProcessState | null): string[] =>
      state === null ? [] : processKind.index(state, "7").map(({ name }) => name);
    expect(names(states.running ?? null)).toEqual(["all", "exit/null", "state/running", "ref/job"]);
    expect(names(states.finished ?? null)).toEqual(["all", "exit/success", "ref/job", "finished"]);
  });
});

describe("the life of a process, told", () => {
  const life = (...told: ProcessMessage[]): string => transcript(processKind, "7", told);

  it("that succeeds", async () => {
    await expect(
      life(create(true), { type: "admitted", run: 1 }, { type: "ended", run: 1, result: result("success") }),
    ).toMatchFileSnapshot("transcripts/process-succeeds.txt");
  });

  it("that is killed while it runs, and returns a result all the same", async () => {
    await expect(
      life(
        create(true),
        { type: "admitted", run: 1 },
        { type: "kill" },
        { type: "kill" },
        { type: "ended", run: 1, result: result("success") },
        { type: "ended", run: 1, result: result("failed") },
      ),
    ).toMatchFileSnapshot("transcripts/process-killed.txt");
  });

  it("that is killed in the queue just before its turn comes", async () => {
    await expect(life(create(true), { type: "kill" }, { type: "admitted", run: 1 })).toMatchFileSnapshot(
      "transcripts/process-killed-in-queue.txt",
    );
  });

  it("that is run again by force while a late report of the first run is under way", async () => {
    await expect(
      life(
        create(true),
        { type: "admitted", run: 1 },
        { type: "ended", run: 1, result: result("failed") },
        { type: "run", force: false },
        { type: "run", force: true },
        { type: "ended", run: 1, result: result("success") },
        { type: "admitted", run: 2 },
        { type: "ended", run: 2, result: result("timeout", { error: "The process ran longer", reason: "timeout" }) },
        { type: "unload", loaded: true },
        { type: "delete" },
      ),
    ).toMatchFileSnapshot("transcripts/process-run-again.txt");
  });
});
