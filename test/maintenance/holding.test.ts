/** What long readings hold: places, packages and the end of a server, with time in the test's hands. */
import { describe, expect, it } from "vitest";
import { NodeDraining } from "../../src/maintenance/draining.ts";
import { holdablePackages } from "../../src/maintenance/held-packages.ts";
import { WorkLeases } from "../../src/maintenance/work-lease.ts";
import type { Packages } from "../../src/ports/packages.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { keptLog } from "../store/parts.ts";

const bounds = { atOnceMax: 1, stalledMs: 1_000, totalMs: 10_000 };
const never = new AbortController().signal;

function counted() {
  const state = { open: 0, given: 0 };
  async function* work(): AsyncGenerator<number, void, undefined> {
    state.open += 1;
    try {
      for (;;) {
        state.given += 1;
        yield state.given;
      }
    } finally {
      state.open -= 1;
    }
  }
  return { state, work };
}

describe("a long reading", () => {
  it("has its place until it ends, is left, or is aborted", async () => {
    const leases = new WorkLeases(new ManualClock(), bounds);
    const { state, work } = counted();
    const leaving = new AbortController();
    const ends: ((reading: AsyncGenerator<number>) => Promise<unknown>)[] = [
      (reading) => reading.return(undefined),
      async (reading) => {
        leaving.abort(new Error("gone"));
        await expect(reading.next()).rejects.toThrow("gone");
      },
    ];
    for (const end of ends) {
      const reading = leases.run("backup", leaving.signal, work);
      expect((await reading.next()).done).toBe(false);
      await expect(leases.run("backup", never, work).next()).rejects.toMatchObject({ kind: "overloaded" });
      await end(reading);
      expect(state.open).toBe(0);
    }
    expect((await leases.run("backup", never, work).next()).done).toBe(false);
  });

  it("takes no place before its first item is asked for", async () => {
    const leases = new WorkLeases(new ManualClock(), bounds);
    const { work } = counted();
    for (let round = 0; round < 5; round += 1) await leases.run("backup", never, work).return(undefined);
    expect((await leases.run("backup", never, work).next()).done).toBe(false);
  });

  it("lets go by itself when nobody takes its next item, and says so when somebody does", async () => {
    const clock = new ManualClock();
    const leases = new WorkLeases(clock, bounds);
    const { state, work } = counted();
    const reading = leases.run("backup", never, work);
    await reading.next();
    await clock.advance(1_001);
    expect(state.open).toBe(0);
    expect((await leases.run("proof", never, work).next()).done).toBe(false);
    await expect(reading.next()).rejects.toMatchObject({
      kind: "timeout",
      message: "The backup was taken too slowly and is cut off: begin it again",
    });
  });

  it("has no more than its whole time, however steadily it is taken", async () => {
    const clock = new ManualClock();
    const { state, work } = counted();
    const reading = new WorkLeases(clock, bounds).run("backup", never, work);
    const take = async () => {
      for (;;) {
        await reading.next();
        await clock.advance(900);
      }
    };
    await expect(take()).rejects.toMatchObject({ kind: "timeout" });
    expect(state.given).toBeLessThan(15);
    expect(state.open).toBe(0);
    expect(clock.timers).toBe(0);
  });
});

describe("held packages", () => {
  const hash = "a".repeat(64);
  function stage(failing = false) {
    const removed: string[] = [];
    const log = keptLog();
    const packages = holdablePackages(
      {
        add: async () => ({ manifest: { id: "m" }, hash, folder: "" }),
        async remove(id: string) {
          if (failing) throw new Error("EIO");
          removed.push(id);
        },
      } as unknown as Packages,
      log,
    );
    return { packages, removed, log };
  }

  it("go at once when nobody holds them", async () => {
    const { packages, removed } = stage();
    await packages.remove("m", hash);
    expect(removed).toEqual(["m"]);
  });

  it("stay until the last holder lets go, and go once", async () => {
    const { packages, removed } = stage();
    const [one, two] = [packages.hold(), packages.hold()];
    await packages.remove("m", hash);
    await packages.remove("m", hash);
    one();
    one();
    expect(removed).toEqual([]);
    two();
    await expect.poll(() => removed).toEqual(["m"]);
  });

  it("stay for good when they were added again meanwhile", async () => {
    const { packages, removed } = stage();
    const release = packages.hold();
    await packages.remove("m", hash);
    await packages.add(new Uint8Array(), hash);
    release();
    await new Promise(setImmediate);
    expect(removed).toEqual([]);
  });

  it("that cannot be removed are left for the next start, with a line in the log", async () => {
    const { packages, log } = stage(true);
    const release = packages.hold();
    await packages.remove("m", hash);
    release();
    await expect.poll(() => log.lines.map(({ event }) => event)).toEqual(["package-not-removed"]);
  });
});

describe("a drain", () => {
  async function told(executing: (now: number) => number, drainMs = 5_000) {
    const clock = new ManualClock();
    const runs = () => ({ waiting: 2, executing: executing(clock.monotonic()) });
    const draining = new NodeDraining({ runs, drainMs, clock });
    const messages: unknown[] = [];
    const follow = (async () => {
      for await (const { state, running, leftMs } of draining.begin("ops")) messages.push([state, running, leftMs]);
    })();
    expect(await draining.asked).toBe("ops");
    await clock.advance(drainMs + 1_000);
    await follow;
    return messages;
  }

  it("of an idle server is over at once", async () => {
    expect(await told(() => 0)).toEqual([
      ["draining", 0, 5_000],
      ["drained", 0, 4_950],
    ]);
  });

  it("tells every second what still runs, and when nothing does", async () => {
    expect(await told((now) => (now < 1_500 ? 2 : now < 2_500 ? 1 : 0))).toEqual([
      ["draining", 2, 5_000],
      ["draining", 2, 4_000],
      ["draining", 1, 3_000],
      ["drained", 0, 2_500],
    ]);
  });

  it("says shortly before its end what is cut", async () => {
    expect((await told(() => 3)).at(-1)).toEqual(["cut", 3, 250]);
  });

  it("with no time at all still says how it ended", async () => {
    expect((await told(() => 1, 0)).at(-1)).toEqual(["cut", 1, 0]);
  });
});
