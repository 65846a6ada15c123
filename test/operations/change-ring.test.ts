/** The ring of recent changes by its own: what it remembers, what leaves, and who is woken. Then followers of it: exact snapshots, resumption, falling behind. */
import { describe, expect, it } from "vitest";
import { changesTellMs, snapshotReadsMax } from "../../src/limits.ts";
import { type Following, followChanges } from "../../src/operations/change-follower.ts";
import { ChangeRing } from "../../src/operations/change-ring.ts";
import { ManualClock, settle } from "../runtime/manual-clock.ts";

interface Assignment {
  readonly name: string;
  readonly value: number;
}

const first = 1_800_000_000_000_000;

function newRing(heldMax = 8, charactersMax = 1_000) {
  const clock = new ManualClock();
  return { clock, ring: new ChangeRing<string>({ clock, first, heldMax, charactersMax }) };
}

describe("the ring of changes", () => {
  it("numbers changes one after the other from the first number on", () => {
    const { ring } = newRing();
    expect([ring.last, ring.held, ring.remembers(first - 1)]).toEqual([first - 1, 0, true]);
    expect(["a", "b", "c"].map((change) => ring.add(change, 1))).toEqual([first, first + 1, first + 2]);
    expect([first - 1, first, first + 2, first + 3].map((number) => ring.at(number))).toEqual([
      undefined,
      "a",
      "c",
      undefined,
    ]);
  });

  it.each([1, 7, 8, 9, 16, 100])("holds the newest 8 of %i", (count) => {
    const { ring } = newRing();
    for (let n = 0; n < count; n++) ring.add(String(n), 1);
    const lowest = Math.max(0, count - 8);
    const held = Array.from({ length: count }, (_, n) => ring.at(first + n));
    expect(held).toEqual(held.map((_, n) => (n < lowest ? undefined : String(n))));
    expect(ring.held).toBe(count - lowest);
    const remembered = Array.from({ length: count + 3 }, (_, n) => ring.remembers(first - 2 + n));
    expect(remembered).toEqual(remembered.map((_, n) => n - 2 >= lowest - 1 && n - 2 < count));
  });

  it("holds less of what is large, and the newest however large", () => {
    const { ring } = newRing(8, 100);
    for (const size of [30, 30, 30, 30]) ring.add("x", size);
    expect(ring.held).toBe(3);
    ring.add("huge", 1_000);
    expect([ring.held, ring.at(ring.last)]).toEqual([1, "huge"]);
    ring.add("small", 1);
    expect([ring.held, ring.at(ring.last)]).toEqual([1, "small"]);
  });

  it("wakes all that wait together, once for a burst, and forgets those who leave", async () => {
    const { clock, ring } = newRing();
    const leaving = new AbortController();
    const staying = new AbortController();
    const woken: string[] = [];
    void ring.appended(ring.last, staying.signal).then(() => woken.push("staying"));
    void ring.appended(ring.last, leaving.signal).then(() => woken.push("leaving"));
    expect(ring.waiting).toBe(2);
    leaving.abort();
    await settle();
    expect([ring.waiting, woken]).toEqual([1, ["leaving"]]);
    for (const change of ["a", "b", "c"]) ring.add(change, 1);
    await settle();
    expect(woken).toEqual(["leaving"]);
    await clock.advance(changesTellMs);
    await settle();
    expect([ring.waiting, woken]).toEqual([0, ["leaving", "staying"]]);
    await ring.appended(first, staying.signal);
    await ring.appended(ring.last, AbortSignal.abort());
  });
});

/** Values by name; the stored form is read after a while, as by one who reads a store. */
function newFollower({ heldMax = 8, after }: { heldMax?: number; after?: number } = {}) {
  const clock = new ManualClock();
  const ring = new ChangeRing<Assignment>({ clock, first, heldMax });
  const values = new Map<string, number>();
  const set = (name: string, value: number): void => {
    values.set(name, value);
    ring.add({ name, value }, 1);
  };
  const leaving = new AbortController();
  let whileReading = (): void => undefined;
  const following: Following<Assignment, Map<string, number>, string> = {
    ring,
    after,
    signal: leaving.signal,
    read: async () => {
      const early = [...values].slice(0, 1);
      await Promise.resolve();
      whileReading();
      return new Map([...values].slice(1).concat(early));
    },
    apply: (rows, { name, value }) => void rows.set(name, value),
    snapshot: (rows, reason, sequence) => `${reason} ${[...rows].sort().join(" ")} @${sequence - first}`,
    item: ({ name, value }, sequence) => (name === "quiet" ? undefined : `${name}=${value} @${sequence - first}`),
  };
  const items = followChanges(following);
  return {
    clock,
    ring,
    set,
    leave: () => leaving.abort(new Error("gone")),
    duringReads(work: () => void) {
      whileReading = work;
    },
    take: async () => (await items.next()).value,
    items,
  };
}

describe("a follower of changes", () => {
  it("is told what there is, then every change it asked for", async () => {
    const { set, take } = newFollower();
    set("a", 1);
    expect(await take()).toBe("start a,1 @0");
    set("quiet", 1);
    set("a", 2);
    expect(await take()).toBe("a=2 @2");
  });

  it("finds in the snapshot what came while it was read, and is not told of it again", async () => {
    const { set, take, duringReads } = newFollower();
    set("a", 1);
    set("b", 1);
    let n = 0;
    duringReads(() => {
      if (n++ === 0) for (const name of ["a", "b", "c"]) set(name, 2);
    });
    expect(await take()).toBe("start a,2 b,2 c,2 @4");
    set("d", 3);
    expect(await take()).toBe("d=3 @5");
  });

  it("reads again when more came meanwhile than is held, and gives up when that does not end", async () => {
    const { set, take, duringReads } = newFollower({ heldMax: 4 });
    let reads = 0;
    const storm = (): void => {
      for (let n = 0; n < 6; n++) set("a", n);
    };
    duringReads(() => (reads++ === 0 ? storm() : undefined));
    expect(await take()).toBe("start a,5 @5");
    expect(reads).toBe(2);
    const other = newFollower({ heldMax: 4 });
    let storms = 0;
    other.duringReads(() => {
      storms++;
      for (let n = 0; n < 6; n++) other.set("a", n);
    });
    await expect(other.take()).rejects.toMatchObject({ kind: "unavailable" });
    expect(storms).toBe(snapshotReadsMax);
  });

  it.each([
    ["the one before the first", -1, "a=0 @0"],
    ["one in the middle", 2, "a=3 @3"],
    ["the newest", 4, "a=9 @5"],
    ["one that is to come", 5, "forgotten a,4 @4"],
    ["one of an earlier life", -first + 7, "forgotten a,4 @4"],
    ["none", undefined, "start a,4 @4"],
  ])("goes on from %s", async (_, from, told) => {
    const { clock, set, take } = newFollower(from === undefined ? {} : { after: first + from });
    for (let n = 0; n < 5; n++) set("a", n);
    const next = take();
    await settle();
    set("a", 9);
    await clock.advance(changesTellMs);
    expect(await next).toBe(told);
  });

  it("starts over, and is told so, when it reads too slowly", async () => {
    const { set, take, ring } = newFollower({ heldMax: 4 });
    set("a", 0);
    expect(await take()).toBe("start a,0 @0");
    for (let n = 1; n < 5; n++) set("a", n);
    expect(await take()).toBe("a=1 @1");
    for (let n = 5; n < 20; n++) set("a", n);
    expect(ring.waiting).toBe(0);
    expect(await take()).toBe("behind a,19 @19");
    set("a", 20);
    expect(await take()).toBe("a=20 @20");
  });

  it("that leaves while it waits leaves nothing behind", async () => {
    const { set, take, ring, leave } = newFollower();
    set("a", 0);
    await take();
    const waits = take();
    await settle();
    expect(ring.waiting).toBe(1);
    leave();
    await expect(waits).rejects.toThrow("gone");
    expect(ring.waiting).toBe(0);
  });
});
