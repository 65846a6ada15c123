/** What no client can bring about: deaths between two writes, and a day that passes. Real calls, a store in memory. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Failure } from "../../src/errors/failure.ts";
import { idempotencyKeepMs, idempotencySweepMs } from "../../src/limits.ts";
import { Call } from "../../src/operations/call.ts";
import { IdempotentCalls } from "../../src/operations/idempotency.ts";
import type { Operation } from "../../src/operations/operation.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";

async function open() {
  const clock = new ManualClock();
  const store = await openMemoryStore({ clock, log: silentLog });
  const made: unknown[] = [];
  const records: { name: string; body: string; id: number }[] = [];
  const row: Operation<{ what: string }, { id: number }> = {
    name: "createThing",
    summary: "",
    rpcService: "ThingService",
    route: { method: "POST", path: "/things", body: "fields", status: 200 },
    role: "agent",
    input: z.object({ what: z.string() }),
    output: z.object({ id: z.int() }),
    idempotent: {
      find: async (name) => {
        const found = records.find((record) => record.name === name);
        return found === undefined ? undefined : { body: found.body, output: { id: found.id } };
      },
    },
    run: async ({ what }, { idempotency }) => {
      await Promise.resolve();
      if (what === "refused") throw new Failure("conflict", "No");
      made.push(what);
      if (idempotency !== undefined) records.push({ ...idempotency, id: made.length });
      return { id: made.length };
    },
  };
  const calls = new IdempotentCalls({ store, clock, log: silentLog });
  const send = (what: string, key = "k", through = calls) =>
    through.call(
      row,
      { what },
      new Call({ requestId: "r", caller: { name: "me", role: "agent" }, clock, log: silentLog }),
      key,
    );
  const noted = async () => (await store.range({ prefix: "idempotency/", limit: 100 })).length;
  return { clock, store, calls, send, made, records, row, noted };
}

describe("an idempotent call", () => {
  it("whose server died before the note of it is found by its record", async () => {
    const { clock, store, send, made } = await open();
    await send("a");
    for (const { key } of await store.range({ prefix: "idempotency/note/", limit: 10 })) {
      const revision = (await store.load(key))?.revision ?? 0;
      await store.commit([{ record: { key, expect: revision, value: null }, writes: [], epoch: store.epoch }]);
    }
    const restarted = new IdempotentCalls({ store, clock, log: silentLog });
    expect(await send("a", "k", restarted)).toEqual({ output: { id: 1 }, replayed: true });
    await expect(send("b", "k", restarted)).rejects.toMatchObject({ kind: "conflict" });
    expect(made).toEqual(["a"]);
  });

  it("whose first fails is made by the next that waits", async () => {
    const { send, made } = await open();
    const answers = await Promise.allSettled([send("refused"), send("refused"), send("refused")]);
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await send("a")).toEqual({ output: { id: 1 }, replayed: false });
    expect(made).toEqual(["a"]);
  });

  it("is forgotten after a day, and its notes with it", async () => {
    const { clock, send, made, records, noted } = await open();
    await send("a");
    expect(await noted()).toBe(2);
    await clock.advance(idempotencyKeepMs - 1_000);
    expect((await send("a")).replayed).toBe(true);
    records.length = 0;
    await clock.advance(idempotencySweepMs + 1_000);
    expect(await noted()).toBe(0);
    expect((await send("a")).replayed).toBe(false);
    expect(made).toEqual(["a", "a"]);
  });

  it("whose note cannot be written is answered all the same", async () => {
    const { store, send } = await open();
    store.commit = async () => {
      throw new Failure("unavailable", "The disk is full");
    };
    expect(await send("a")).toEqual({ output: { id: 1 }, replayed: false });
  });
});
