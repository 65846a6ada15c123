/** What the node keeps of the steps of its actors, and under which numbers: nothing before the first watcher, and every step once from then on. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { changeNumbersReserved, restartsMax } from "../../src/limits.ts";
import { ChangeNumbers } from "../../src/operations/change-numbers.ts";
import type { ChangeRing } from "../../src/operations/change-ring.ts";
import { type NodeChange, NodeChanges } from "../../src/operations/node-changes.ts";
import type { ActorObserver } from "../../src/runtime/system.ts";
import { ManualClock, settle } from "../runtime/manual-clock.ts";
import { openStage, type Stage, silentLog } from "../runtime/stage.ts";
import { MemoryDisk } from "../store/memory-store.ts";

const changesOf = (stage: Stage): NodeChanges => new NodeChanges({ ...stage, log: silentLog });

function all(ring: ChangeRing<NodeChange>): readonly NodeChange[] {
  return Array.from({ length: ring.held }, (_, n) => ring.at(ring.last + 1 - ring.held + n) as NodeChange);
}

const told = (ring: ChangeRing<NodeChange>): string[] => all(ring).map(({ id, what }) => `${id} ${what}`);

describe("the changes of the node", () => {
  it("are those of durable steps, once each, in order", async () => {
    const stage = await openStage();
    const { accounts, store, clock } = stage;
    await accounts.ask("1", { type: "open" });
    const ring = await changesOf(stage).ring();
    await accounts.ask("1", { type: "deposit", amount: 1 });
    await accounts.ask("2", { type: "open" });
    await accounts.ask("1", { type: "read" });
    await accounts.ask("3", { type: "read" }).catch(() => undefined);
    await accounts.ask("2", { type: "open" }).catch(() => undefined);
    store.gate = () => "unknown";
    await accounts.ask("2", { type: "deposit", amount: 1 }).catch(() => undefined);
    store.gate = () => "pass";
    await clock.advance(1_000);
    await accounts.ask("1", { type: "close" });
    expect(told(ring)).toEqual(["1 changed", "2 added", "2 restarted", "1 removed"]);
    expect(all(ring).map(({ exists }) => exists)).toEqual([true, true, true, false]);
  });

  it("have the step of a commit that was not confirmed and was made all the same, as its watchers do", async () => {
    const stage = await openStage();
    const { accounts, store, clock } = stage;
    await accounts.ask("1", { type: "open" });
    const ring = await changesOf(stage).ring();
    const watched: unknown[] = [];
    accounts.watch("1", (state) => watched.push(state?.balance));
    accounts.watch("2", (state) => watched.push(state?.balance));
    store.gate = () => "land-then-unknown";
    await accounts.ask("1", { type: "deposit", amount: 5 }).catch(() => undefined);
    await accounts.ask("2", { type: "open" }).catch(() => undefined);
    store.gate = () => "pass";
    await clock.advance(1_000);
    expect(told(ring)).toEqual(["1 changed", "1 restarted", "2 added", "2 restarted"]);
    expect(watched).toEqual([5, 0]);
  });

  it.each([
    ["did not answer", new Failure("unavailable", "The store is away")],
    ["answered with what is no record", new Error("damaged")],
  ])("have no step of an actor that is only read again after the store %s", async (_, failure) => {
    const stage = await openStage();
    const { accounts, clock, store } = stage;
    await accounts.ask("1", { type: "open" });
    await accounts.ask("1", { type: "leave" });
    const ring = await changesOf(stage).ring();
    const { load } = store;
    let fails = 1;
    store.load = (key) => (fails-- > 0 ? Promise.reject(failure) : load.call(store, key));
    const read = accounts.ask("1", { type: "read" }).catch(() => "refused");
    await clock.advance(5_000);
    stage.system.restart({ kind: "account", key: "1" });
    await clock.advance(5_000);
    await read;
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
    expect(told(ring).filter((what) => /added|changed/.test(what))).toEqual([]);
  });

  it("tell of crashes, of parking, and of an operator's restart", async () => {
    const stage = await openStage();
    const { accounts, clock, system } = stage;
    await accounts.ask("1", { type: "open" });
    const ring = await changesOf(stage).ring();
    for (let crash = 0; crash <= restartsMax; crash++) {
      await accounts.ask("1", { type: "crash" }).catch(() => undefined);
      await clock.advance(2_000);
    }
    system.restart({ kind: "account", key: "1" });
    await clock.advance(1);
    const restarts = Array.from({ length: restartsMax }, () => ["1 crashed", "1 restarted"]).flat();
    expect(told(ring)).toEqual([...restarts, "1 crashed", "1 parked", "1 restarted"]);
    expect(all(ring).at(-2)?.state).toBe("parked");
  });

  it("are not kept, and cost no write, before somebody asks for them", async () => {
    const stage = await openStage();
    const changes = changesOf(stage);
    await stage.accounts.ask("1", { type: "open" });
    expect(stage.store.commits).toBe(1);
    const [one, other] = await Promise.all([changes.ring(), changes.ring()]);
    expect(one).toBe(other);
    expect([stage.store.commits, one.held]).toEqual([2, 0]);
  });

  it("can be asked for again after the store did not take the mark", async () => {
    const stage = await openStage();
    const changes = changesOf(stage);
    stage.store.gate = () => "unknown";
    await expect(changes.ring()).rejects.toMatchObject({ kind: "unavailable" });
    stage.store.gate = () => "pass";
    const ring = await changes.ring();
    await stage.accounts.ask("1", { type: "open" });
    expect(told(ring)).toEqual(["1 added"]);
  });
});

describe("the numbers of changes", () => {
  it.each([
    ["goes on", 1_000],
    ["stands still", 0],
    ["was set back by a year", -31_536_000_000],
  ])("grow over restarts while the clock %s", async (_, ms) => {
    const disk = new MemoryDisk();
    let now = 1_795_858_200_000;
    let last = 0;
    for (let start = 0; start < 4; start++, now += ms) {
      const stage = await openStage({ disk, manualClock: new ManualClock(now) });
      const ring = await changesOf(stage).ring();
      await stage.accounts.ask(String(start), { type: "open" });
      expect(ring.last).toBeGreaterThan(last);
      expect(ring.last + 1 - ring.held).toBeGreaterThan(last);
      last = ring.last;
      expect(Number.isSafeInteger(last)).toBe(true);
      await stage.store.close();
    }
  });

  it("are marked as used before they are, with half of them to go, and again when that failed", async () => {
    const stage = await openStage();
    const numbers = await ChangeNumbers.open({ ...stage, log: silentLog });
    const mark = async () => Number((await stage.store.load("m/changes"))?.value) - numbers.first;
    expect(await mark()).toBe(changeNumbersReserved);
    numbers.used(numbers.first + changeNumbersReserved / 2 - 1);
    await settle();
    expect(await mark()).toBe(changeNumbersReserved);
    stage.store.gate = () => "unknown";
    numbers.used(numbers.first + changeNumbersReserved / 2);
    await settle();
    expect(await mark()).toBe(changeNumbersReserved);
    stage.store.gate = () => "pass";
    for (let n = 0; n < 3; n++) numbers.used(numbers.first + changeNumbersReserved / 2 + n);
    await settle();
    expect(await mark()).toBe(2 * changeNumbersReserved);
  });
});

describe("what a step means", () => {
  const module = (failed: string | null, missing: string | null, enabled: boolean) => ({ failed, missing, enabled });
  const service = (stale: string | null, enabled: boolean) => ({ stale, enabled });
  const process = (state: string, exitState: string | null = null) => ({ id: 1, state, exitState, error: null });

  it.each([
    ["registry", null, {}, "added", undefined],
    ["registry", {}, {}, "changed", undefined],
    ["registry", {}, null, "removed", undefined],
    ["module", null, module(null, null, true), "added", "enabled"],
    ["module", module(null, null, false), module(null, null, true), "enabled", "enabled"],
    ["module", module(null, null, true), module(null, null, false), "disabled", "disabled"],
    ["module", module(null, null, true), module(null, null, true), "changed", "enabled"],
    ["module", module(null, null, true), module("crashed", null, true), "failed", "failed"],
    ["module", module("crashed", null, true), module(null, null, true), "enabled", "enabled"],
    ["module", module(null, null, true), module(null, "no package", true), "failed", "missing"],
    ["module", module(null, "no package", false), module(null, null, false), "disabled", "disabled"],
    ["module", module("crashed", null, true), null, "removed", undefined],
    ["service", service(null, false), service(null, true), "enabled", "enabled"],
    ["service", service(null, true), service("gone", true), "failed", "stale"],
    ["service", service("gone", true), service("gone", true), "changed", "stale"],
    ["process", null, process("queued"), "added", "queued"],
    ["process", process("queued"), process("running"), "changed", "running"],
    ["process", process("running"), process("idle", "success"), "changed", "idle"],
    ["process", process("running"), process("idle", "failed"), "failed", "idle"],
    ["process", process("running"), process("idle", "timeout"), "failed", "idle"],
    ["process", process("terminating"), process("idle", "canceled"), "changed", "idle"],
    ["process", process("idle", "failed"), process("queued"), "changed", "queued"],
    ["process", process("idle", "failed"), null, "removed", undefined],
  ])("of a %s from %j to %j: %s", async (kind, before, after, what, state) => {
    const stage = await openStage();
    const observers: ActorObserver[] = [];
    const system = { observe: (observer: ActorObserver) => void observers.push(observer) };
    const ring = await new NodeChanges({ ...stage, system, log: silentLog }).ring();
    observers[0]?.stepped({ kind, key: "x" }, before, after === before ? { ...(after as object) } : after);
    const [change] = all(ring);
    expect(change).toMatchObject({ id: "x", subject: kind, what, exists: after !== null });
    expect(change?.state).toBe(state);
    expect("process" in (change ?? {})).toBe(kind === "process");
  });
});
