/** The machine's promises, one by one: decide, persist, answer, act; and what happens when any of them fails. */
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { mailboxMessagesMax } from "../../src/limits.ts";
import { type AccountMessage, accountKind } from "./account-kind.ts";
import { settle } from "./manual-clock.ts";
import { openStage } from "./stage.ts";

const kindOf = (failure: unknown): string => (failure instanceof Failure ? failure.kind : `not a failure: ${failure}`);
const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then((value) => `answered ${JSON.stringify(value)}`, kindOf);

function held(): { open: () => void; gate: () => Promise<"pass"> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, gate: () => promise.then(() => "pass" as const) };
}

describe("a turn", () => {
  it("answers only after its step is durable", async () => {
    const { store, accounts } = await openStage();
    const { open, gate } = held();
    store.gate = gate;
    let answered = false;
    const asked = accounts.ask("1", { type: "open" }).then(() => {
      answered = true;
    });
    await settle();
    expect(answered).toBe(false);
    open();
    await asked;
    expect(answered).toBe(true);
  });

  it("acts only after its step is durable", async () => {
    const paid: number[] = [];
    const { store, accounts } = await openStage({ bank: { pay: async (_, amount) => void paid.push(amount) } });
    await accounts.ask("1", { type: "open" });
    const { open, gate } = held();
    store.gate = gate;
    const asked = accounts.ask("1", { type: "transfer", amount: 5 });
    await settle();
    expect(paid).toEqual([]);
    store.gate = () => "pass";
    open();
    expect(await asked).toBe(-5);
    expect(paid).toEqual([5]);
  });

  it("that changes nothing costs no write", async () => {
    const { store, accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    const before = store.commits;
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
    expect(store.commits).toBe(before);
  });

  it("takes messages one at a time, in the order they came", async () => {
    const { accounts } = await openStage();
    void accounts.ask("1", { type: "open" });
    const answers = await Promise.all([1, 2, 3, 4].map((amount) => accounts.ask("1", { type: "deposit", amount })));
    expect(answers).toEqual([1, 3, 6, 10]);
  });

  it("lets queries see the last committed state without waiting", async () => {
    const { store, accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    const { open, gate } = held();
    store.gate = gate;
    const slow = accounts.ask("1", { type: "deposit", amount: 7 });
    await settle();
    expect((await accounts.query("1")).state?.balance).toBe(0);
    open();
    await slow;
    expect((await accounts.query("1")).state?.balance).toBe(7);
  });

  it("refuses without touching the state or the actor", async () => {
    const { accounts, system } = await openStage();
    expect(await refusal(accounts.ask("1", { type: "deposit", amount: 1 }))).toBe("not_found");
    expect(system.residentCount).toBe(0);
    await accounts.ask("1", { type: "open" });
    expect(await refusal(accounts.ask("1", { type: "open" }))).toBe("already_exists");
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
  });

  it("shares one deferred answer between all who wait for it", async () => {
    let payments = 0;
    const { accounts } = await openStage({
      bank: {
        pay: async () => {
          payments++;
          await settle();
        },
      },
    });
    await accounts.ask("1", { type: "open" });
    const asks = Array.from({ length: 20 }, () => accounts.ask("1", { type: "transfer", amount: 3 }));
    expect(new Set(await Promise.all(asks))).toEqual(new Set([-3]));
    expect(payments).toBe(1);
  });
});

describe("a crash", () => {
  it("answers internal, keeps the state, and restarts after a backoff", async () => {
    const { accounts, clock, system } = await openStage();
    await accounts.ask("1", { type: "open" });
    await accounts.ask("1", { type: "deposit", amount: 9 });
    expect(await refusal(accounts.ask("1", { type: "crash" }))).toBe("internal");
    expect([...system.inspect()][0]).toMatchObject({ phase: "restarting", lastError: "broken invariant" });
    const later = accounts.ask("1", { type: "read" });
    await clock.advance(100);
    expect(await later).toBe(9);
  });

  it("repeated too often parks the actor until an operator restarts it", async () => {
    const { accounts, clock, system } = await openStage();
    await accounts.ask("1", { type: "open" });
    for (let crash = 0; crash < 6; crash++) {
      expect(await refusal(accounts.ask("1", { type: "crash" }))).toBe("internal");
      await clock.advance(4_000);
    }
    expect(await refusal(accounts.ask("1", { type: "read" }))).toBe("unavailable");
    await clock.advance(600_000);
    expect(await refusal(accounts.ask("1", { type: "read" }))).toBe("unavailable");
    expect([...system.inspect()][0]).toMatchObject({ phase: "parked", lastError: "broken invariant" });
    expect(system.deadLetters.counts()).toMatchObject({ crashed: 6, parked: 2 });
    system.restart({ kind: "account", key: "1" });
    const read = accounts.ask("1", { type: "read" });
    await clock.advance(0);
    expect(await read).toBe(0);
  });

  it("spread over time never parks", async () => {
    const { accounts, clock } = await openStage();
    await accounts.ask("1", { type: "open" });
    for (let crash = 0; crash < 20; crash++) {
      await refusal(accounts.ask("1", { type: "crash" }));
      await clock.advance(20_000);
    }
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
  });

  it("of one actor leaves its siblings alone", async () => {
    const { accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    await accounts.ask("2", { type: "open" });
    await refusal(accounts.ask("1", { type: "crash" }));
    expect(await accounts.ask("2", { type: "read" })).toBe(0);
  });

  it("of an effect restarts the actor, which still owes and does the work", async () => {
    let tries = 0;
    const { accounts, clock } = await openStage({
      bank: {
        pay: async () => {
          if (++tries < 3) throw new Error("bank is closed");
        },
      },
    });
    await accounts.ask("1", { type: "open" });
    const waiting = refusal(accounts.ask("1", { type: "transfer", amount: 4 }));
    await clock.advance(2_000);
    expect(await waiting).toBe("unavailable");
    expect(await accounts.ask("1", { type: "read" })).toBe(-4);
    expect(tries).toBe(3);
  });

  it("is not caused by a state that breaks its own schema being written: nothing is stored", async () => {
    const { accounts, clock } = await openStage();
    await accounts.ask("1", { type: "open" });
    expect(await refusal(accounts.ask("1", { type: "deposit", amount: Number.NaN }))).toBe("internal");
    await clock.advance(100);
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
  });
});

describe("a bound", () => {
  it("on the mailbox refuses at once and loses none of the others", async () => {
    const { store, accounts, system } = await openStage();
    await accounts.ask("1", { type: "open" });
    const { open, gate } = held();
    store.gate = gate;
    const asks = Array.from({ length: mailboxMessagesMax + 11 }, () =>
      refusal(accounts.ask("1", { type: "deposit", amount: 1 })),
    );
    await settle();
    store.gate = () => "pass";
    open();
    const answers = await Promise.all(asks);
    expect(answers.filter((answer) => answer === "overloaded")).toHaveLength(10);
    expect(await accounts.ask("1", { type: "read" })).toBe(mailboxMessagesMax + 1);
    expect(system.deadLetters.counts()).toEqual({ overloaded: 10 });
  });

  it("on time ends the wait, and an expired message is never run", async () => {
    const { store, accounts, clock, system } = await openStage();
    await accounts.ask("1", { type: "open" });
    const { open, gate } = held();
    store.gate = gate;
    const first = refusal(accounts.ask("1", { type: "deposit", amount: 1 }, { deadline: clock.monotonic() + 1_000 }));
    const second = refusal(accounts.ask("1", { type: "deposit", amount: 10 }, { deadline: clock.monotonic() + 1_000 }));
    await clock.advance(1_100);
    expect(await Promise.all([first, second])).toEqual(["timeout", "timeout"]);
    store.gate = () => "pass";
    open();
    await settle();
    // The first was already being written when its caller gave up: it counts.
    expect(await accounts.ask("1", { type: "read" })).toBe(1);
    expect(system.deadLetters.counts()).toEqual({ expired: 1 });
  });

  it("on a deferred answer is its caller's deadline", async () => {
    const { accounts, clock } = await openStage({ bank: { pay: () => new Promise(() => {}) } });
    await accounts.ask("1", { type: "open" });
    const waiting = refusal(accounts.ask("1", { type: "transfer", amount: 1 }, { deadline: clock.monotonic() + 500 }));
    await clock.advance(600);
    expect(await waiting).toBe("timeout");
  });

  it("on waiting for each other refuses a cycle at once", async () => {
    const { accounts } = await openStage();
    const chain = [{ kind: "account", key: "1" }];
    await expect(accounts.ask("1", { type: "read" }, { chain })).rejects.toThrow(
      "Actors wait for each other: account/1 → account/1",
    );
  });
});

describe("a command id", () => {
  it("gives a retry the first answer and applies it once, also after a restart", async () => {
    const { accounts, disk, store, clock } = await openStage();
    await accounts.ask("1", { type: "open" });
    const deposit: AccountMessage = { type: "deposit", amount: 2 };
    expect(await accounts.ask("1", deposit, { commandId: "c1" })).toBe(2);
    expect(await accounts.ask("1", { type: "deposit", amount: 5 })).toBe(7);
    expect(await accounts.ask("1", deposit, { commandId: "c1" })).toBe(2);
    await store.close();
    const again = await openStage({ disk, manualClock: clock });
    expect(await again.accounts.ask("1", deposit, { commandId: "c1" })).toBe(2);
    expect(await again.accounts.ask("1", { type: "read" })).toBe(7);
  });
});

describe("a store that misbehaves", () => {
  it("with an unknown outcome gets a 503 and the truth is read from disk", async () => {
    for (const [verdict, balance] of [
      ["land-then-unknown", 3],
      ["unknown", 0],
    ] as const) {
      const { store, accounts, clock } = await openStage();
      await accounts.ask("1", { type: "open" });
      store.gate = () => verdict;
      expect(await refusal(accounts.ask("1", { type: "deposit", amount: 3 }))).toBe("unavailable");
      store.gate = () => "pass";
      await clock.advance(200);
      expect(await accounts.ask("1", { type: "read" })).toBe(balance);
    }
  });

  it("with an unknown outcome lets a retried command find its first answer", async () => {
    const { store, accounts, clock } = await openStage();
    await accounts.ask("1", { type: "open" });
    store.gate = () => "land-then-unknown";
    const ask = (): Promise<unknown> => accounts.ask("1", { type: "deposit", amount: 3 }, { commandId: "c" });
    expect(await refusal(ask())).toBe("unavailable");
    store.gate = () => "pass";
    await clock.advance(200);
    expect(await ask()).toBe(3);
    expect(await accounts.ask("1", { type: "read" })).toBe(3);
  });

  it("with a conflict reads again and decides again, a bounded number of times", async () => {
    const { store, accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    let conflicts = 2;
    store.gate = () => (conflicts-- > 0 ? "conflict" : "pass");
    expect(await accounts.ask("1", { type: "deposit", amount: 4 })).toBe(4);
    store.gate = () => "conflict";
    const before = store.commits;
    expect(await refusal(accounts.ask("1", { type: "deposit", amount: 4 }))).toBe("unavailable");
    expect(store.commits - before).toBe(4);
  });

  it("that fences makes the actor leave, answering 503", async () => {
    const { store, accounts, system } = await openStage();
    await accounts.ask("1", { type: "open" });
    store.gate = () => "fenced";
    expect(await refusal(accounts.ask("1", { type: "deposit", amount: 4 }))).toBe("unavailable");
    expect(system.residentCount).toBe(0);
  });

  it("loses no report of an effect: it is told again until the store takes it, and applied once", async () => {
    for (const verdict of [
      "unknown",
      "land-then-unknown",
      { reject: new Failure("unavailable", "The store is failing") },
    ] as const) {
      const { store, accounts, clock } = await openStage();
      await accounts.ask("1", { type: "open" });
      let refused = 0;
      // The first commit is the transfer's own; those that follow are of its report.
      store.gate = () => (store.commits <= 2 || ++refused > 3 ? "pass" : verdict);
      const transferred = refusal(accounts.ask("1", { type: "transfer", amount: 5 }));
      await clock.advance(5_000);
      await transferred;
      expect((await accounts.query("1")).state).toMatchObject({ balance: -5, pending: null });
      expect(refused).toBeGreaterThanOrEqual(1);
    }
  });

  it("that refuses passes its refusal on, and the actor goes on", async () => {
    const { store, accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    store.gate = () => ({ reject: new Failure("unavailable", "The store is failing") });
    expect(await refusal(accounts.ask("1", { type: "deposit", amount: 4 }))).toBe("unavailable");
    store.gate = () => "pass";
    expect(await accounts.ask("1", { type: "deposit", amount: 5 })).toBe(5);
  });
});

describe("memory", () => {
  it("is left after the idle time, and the actor comes back with a new pid and the same state", async () => {
    const { accounts, clock, system } = await openStage();
    await system.start();
    await accounts.ask("1", { type: "open" });
    await accounts.ask("1", { type: "deposit", amount: 8 });
    const { pid } = await accounts.query("1");
    await clock.advance(140_000);
    expect(await accounts.query("1")).toEqual({ state: expect.objectContaining({ balance: 8 }), pid: null });
    expect(await accounts.ask("1", { type: "read" })).toBe(8);
    expect((await accounts.query("1")).pid).toBeGreaterThan(pid ?? 0);
  });

  it("holds a bounded number of actors: those long unused leave first", async () => {
    const { accounts, system } = await openStage({ residentMax: 10 });
    for (let key = 1; key <= 30; key++) {
      await accounts.ask(String(key), { type: "open" });
      await accounts.ask("1", { type: "deposit", amount: 1 });
    }
    expect(system.residentCount).toBeLessThanOrEqual(11);
    expect(accounts.pid("30")).not.toBeNull();
    expect(await accounts.ask("1", { type: "read" })).toBe(30);
  });

  it("is not left while work is owed or a caller waits", async () => {
    const { accounts, clock, system } = await openStage({ bank: { pay: () => new Promise(() => {}) } });
    await system.start();
    await accounts.ask("1", { type: "open" });
    void refusal(accounts.ask("1", { type: "transfer", amount: 1 }));
    await clock.advance(500_000);
    expect(accounts.pid("1")).not.toBeNull();
  });

  it("is left at once when the step says so", async () => {
    const { accounts } = await openStage();
    await accounts.ask("1", { type: "open" });
    expect(await accounts.ask("1", { type: "leave" })).toBe("left");
    expect((await accounts.query("1")).pid).toBeNull();
  });
});

describe("a record", () => {
  it("of an older version is brought forward, of a newer one or a broken one parks the actor", async () => {
    const { store, accounts } = await openStage();
    const put = (key: string, value: string): Promise<unknown> =>
      store.inner.commit([{ record: { key: `a/account/${key}`, expect: 0, value }, writes: [], epoch: store.epoch }]);
    await put("old", JSON.stringify({ v: 1, s: { cents: 1234 } }));
    await put("new", JSON.stringify({ v: 3, s: {} }));
    await put("shape", JSON.stringify({ v: 2, s: { balance: "12" } }));
    await put("text", "{");
    await put("none", "{}");
    expect(await accounts.ask("old", { type: "read" })).toBe(12.34);
    for (const key of ["new", "shape", "text", "none"]) {
      expect(await refusal(accounts.query(key))).toBe("unavailable");
      expect(await refusal(accounts.ask(key, { type: "read" }))).toBe("unavailable");
    }
  });

  it("that ends takes its blobs and index entries with it", async () => {
    const { store, accounts } = await openStage();
    await accounts.ask("1", { type: "open", note: "hello" });
    expect(await accounts.blob("1", "note")).toBe("hello");
    await accounts.ask("1", { type: "promise-interest", at: 1_900_000_000_000 });
    await accounts.ask("1", { type: "close" });
    const left = await store.range({ prefix: "", limit: 100 });
    expect(left.map(({ key }) => key).filter((key) => !key.startsWith("m/"))).toEqual([]);
  });

  it("is listed by its indexes in order, page by page", async () => {
    const { accounts } = await openStage();
    for (const [key, amount] of [
      ["1", 30],
      ["2", 10],
      ["3", 20],
    ] as const) {
      await accounts.ask(key, { type: "open" });
      await accounts.ask(key, { type: "deposit", amount });
    }
    const first = await accounts.list("balance", undefined, 2);
    expect(first.items.map(({ key }) => key)).toEqual(["2", "3"]);
    const second = await accounts.list("balance", first.next, 2);
    expect(second.items.map(({ key }) => key)).toEqual(["1"]);
    expect(second.next).toBeUndefined();
  });
});

describe("text in the store that is no record", () => {
  it("parks its actor, is told to whoever asks for it, and is left out of a list without taking others along", async () => {
    const { accounts, system, disk } = await openStage();
    for (const key of ["1", "2", "3"]) {
      await accounts.ask(key, { type: "open" });
      await accounts.ask(key, { type: "leave" });
    }
    const database = await disk.open();
    await database.batchSynced([{ type: "put", key: "a/account/2", value: "garbage" }]);
    expect((await accounts.list("balance", undefined, 10)).items.map(({ key }) => key)).toEqual(["1", "3"]);
    expect(await refusal(accounts.query("2"))).toBe("unavailable");
    expect(await refusal(accounts.ask("2", { type: "read" }))).toBe("unavailable");
    expect(system.inspectOne({ kind: "account", key: "2" })).toMatchObject({ phase: "parked", restarts: 0 });
  });
});

describe("a sequence", () => {
  it("grows over restarts and deletes, whatever order commits land in", async () => {
    const { accounts, system, disk, store, clock } = await openStage();
    await system.start();
    const keys = [1, 2, 3].map(() => accounts.nextKey());
    expect(keys).toEqual([1, 2, 3]);
    await accounts.ask("3", { type: "open" });
    await accounts.ask("2", { type: "open" });
    await accounts.ask("3", { type: "close" });
    await store.close();
    const again = await openStage({ disk, manualClock: clock });
    await again.system.start();
    expect(again.accounts.nextKey()).toBe(4);
  });
});

describe("a wake", () => {
  it("is delivered when due, once, also when it was missed", async () => {
    const { accounts, system, clock, disk, store } = await openStage();
    await system.start();
    await accounts.ask("1", { type: "open" });
    await accounts.ask("1", { type: "promise-interest", at: clock.now() + 5_000 });
    await clock.advance(4_900);
    expect(await accounts.ask("1", { type: "read" })).toBe(0);
    await clock.advance(200);
    expect(await accounts.ask("1", { type: "read" })).toBe(1);
    await accounts.ask("1", { type: "promise-interest", at: clock.now() + 5_000 });
    await system.stop(clock.monotonic());
    await store.close();
    await clock.advance(3_600_000);
    const again = await openStage({ disk, manualClock: clock });
    await again.system.start();
    expect(await again.accounts.ask("1", { type: "read" })).toBe(2);
  });

  it("that does not settle is tried again with backoff and then given up to the dead letters", async () => {
    const kind = { ...accountKind, woken: (): AccountMessage => ({ type: "ignored-wake" }) };
    const { accounts, system, clock } = await openStage({ kind });
    await system.start();
    await accounts.ask("1", { type: "open" });
    await accounts.ask("1", { type: "promise-interest", at: clock.now() + 1_000 });
    await clock.advance(300_000);
    expect(system.deadLetters.counts()).toEqual({ wake_spent: 1 });
  });
});

describe("a start", () => {
  it("wakes only the actors that owe work, and finishes it before it is done", async () => {
    const stuck = await openStage({ bank: { pay: () => new Promise(() => {}) } });
    for (let key = 1; key <= 50; key++) await stuck.accounts.ask(String(key), { type: "open" });
    void refusal(stuck.accounts.ask("7", { type: "transfer", amount: 1 }));
    await settle();
    await stuck.store.close();
    const again = await openStage({ disk: stuck.disk, manualClock: stuck.clock });
    await again.system.start();
    expect(again.store.loads).toEqual(["a/account/7"]);
    expect((await again.accounts.query("7")).state).toMatchObject({ pending: null, balance: -1 });
  });
});

describe("a stop", () => {
  it("refuses new messages, lets turns end, and leaves no timer behind", async () => {
    const { store, accounts, system, clock } = await openStage();
    await system.start();
    await accounts.ask("1", { type: "open" });
    const { open, gate } = held();
    store.gate = gate;
    const last = accounts.ask("1", { type: "deposit", amount: 6 });
    await settle();
    const stopped = system.stop(clock.monotonic() + 1_000);
    expect(await refusal(accounts.ask("1", { type: "read" }))).toBe("unavailable");
    open();
    expect(await last).toBe(6);
    await stopped;
    await store.close();
    expect(clock.timers).toBe(0);
  });

  it("does not wait beyond its deadline", async () => {
    const { accounts, system, clock } = await openStage({ bank: { pay: () => new Promise(() => {}) } });
    await accounts.ask("1", { type: "open" });
    const waiting = refusal(accounts.ask("1", { type: "transfer", amount: 1 }));
    await settle();
    const stopped = system.stop(clock.monotonic() + 300);
    await clock.advance(300);
    await stopped;
    expect(await waiting).toBe("unavailable");
  });

  it("an effect that reports after it makes a dead letter: nothing is thrown at whoever brought the news", async () => {
    let tellLater: (() => void) | undefined;
    const kind: typeof accountKind = {
      ...accountKind,
      perform: async (effect, self) => {
        tellLater = () => self.tell({ type: "transferred", amount: effect.amount });
        return undefined;
      },
    };
    const { accounts, system, clock } = await openStage({ kind });
    await accounts.ask("1", { type: "open" });
    const waiting = refusal(accounts.ask("1", { type: "transfer", amount: 1 }));
    await settle();
    await system.stop(clock.monotonic());
    expect(await waiting).toBe("unavailable");
    expect(tellLater).toBeDefined();
    expect(() => tellLater?.()).not.toThrow();
    expect(system.deadLetters.counts()).toMatchObject({ stopped: expect.any(Number) });
  });
});
