/**
 * Whatever a process does and whenever its followers take, leave, come back or meet a restart: what each is told of a run is that run's
 * events in order from where it was, without a gap, and the numbers only grow.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import type { ProcessEvent } from "../../src/operations/process-events.ts";
import { settle } from "../runtime/manual-clock.ts";
import { openProcesses } from "./process-events-stage.ts";

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("print" as const), times: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("call" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("end" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("kill" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("run" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("take" as const), who: fc.nat(2), times: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("leave" as const), who: fc.nat(2) }) },
);

interface Reader {
  readonly told: ProcessEvent[];
  iterator: AsyncIterator<ProcessEvent> | undefined;
  /** Asked for and not yet there. */
  pending: Promise<void> | undefined;
  leaving: AbortController;
}

const runOf = ({ sequence }: ProcessEvent): number => Math.floor(sequence / 1_000_000);

async function story(steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]) {
  let stage = await openProcesses();
  const id = await stage.create();
  /** By number: what those who take everything at once were told. */
  const happened = new Map<number, string>();
  /** Of runs that a restart interrupted. */
  const lost = new Set<number>();
  const readers = [0, 1, 2].map(
    (): Reader => ({ told: [], iterator: undefined, pending: undefined, leaving: new AbortController() }),
  );

  const witness = async (): Promise<void> => {
    const follower = await stage.follow(id).catch(() => undefined);
    follower?.leave(new Failure("cancelled", "seen"));
    for (const event of follower?.events ?? []) {
      if (event.kind === "snapshot") continue;
      const text = textOf(event);
      expect(happened.get(event.sequence) ?? text, "a number means one event for ever").toBe(text);
      happened.set(event.sequence, text);
    }
  };
  const leave = async (reader: Reader): Promise<void> => {
    reader.leaving.abort(new Failure("cancelled", "left"));
    await reader.pending;
    await reader.iterator?.return?.();
    reader.iterator = undefined;
    reader.pending = undefined;
  };
  const take = async (reader: Reader): Promise<void> => {
    if (reader.iterator === undefined) {
      reader.leaving = new AbortController();
      const items = await stage.open(id, reader.told.at(-1)?.sequence, reader.leaving.signal);
      if (items === null) return;
      reader.iterator = items[Symbol.asyncIterator]();
    }
    reader.pending ??= reader.iterator.next().then(
      (next) => {
        reader.pending = undefined;
        if (next.done === true) reader.iterator = undefined;
        else reader.told.push(next.value);
      },
      () => {
        reader.pending = undefined;
        reader.iterator = undefined;
      },
    );
    await settle();
  };

  for (const now of steps) {
    const state = await stage.stateOf(id);
    const isRunning = state?.state === "running" || state?.state === "terminating";
    switch (now.do) {
      case "print":
        for (let at = 0; isRunning && at < now.times; at++) stage.run().events.stdout(`${state?.run}.${at}`);
        break;
      case "call":
        if (isRunning) stage.run().events.toolCall({ callId: 1, serviceId: "s", toolId: "t", parameters: {} });
        break;
      case "end":
        if (isRunning) stage.run().end({ kind: "success", output: `{"run":${state?.run}}` });
        break;
      case "kill":
        if (state?.state !== "idle") await stage.kill(id);
        break;
      case "run":
        if (state?.state === "idle") await stage.force(id);
        break;
      case "restart":
        for (const reader of readers) await leave(reader);
        for (const number of happened.keys())
          if (isRunning && number > (state?.run ?? 0) * 1_000_000 + 1) lost.add(number);
        stage = await openProcesses(stage.disk);
        break;
      case "take":
        for (let at = 0; at < now.times; at++) await take(readers[now.who] as Reader);
        break;
      case "leave":
        await leave(readers[now.who] as Reader);
        break;
    }
    await settle();
    await witness();
  }
  for (const reader of readers) await leave(reader);
  return { told: readers.map(({ told }) => told), happened, lost };
}

function textOf(event: ProcessEvent): string {
  const { process, ...rest } = event;
  return JSON.stringify({ ...rest, exitState: process?.exitState });
}

/** Numbers of a run that come between two that a follower was told. */
function skipped(numbers: readonly number[], after: number, before: number): number[] {
  return numbers.filter((number) => number > after && number < before);
}

it("holds in a hundred stories", { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { told, happened, lost } = await story(steps);
      const kept = [...happened.keys()].filter((number) => !lost.has(number));
      for (const events of told) {
        for (const [at, event] of events.entries()) {
          const before = events[at - 1];
          if (event.kind !== "snapshot") expect(happened.get(event.sequence)).toBe(textOf(event));
          if (before === undefined) {
            expect(event.kind).toBe("snapshot");
            continue;
          }
          if (event.kind === "snapshot") {
            expect(event.sequence).toBeGreaterThanOrEqual(before.sequence);
            continue;
          }
          expect(event.sequence).toBeGreaterThan(before.sequence);
          expect(skipped(kept, before.sequence, event.sequence), `before ${event.sequence}`).toEqual([]);
          expect(runOf(event) - runOf(before)).toBeLessThanOrEqual(1);
        }
      }
    }),
    { numRuns: 100 },
  );
});
