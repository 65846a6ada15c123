/** One call: role, input, deadline, cancellation, and what becomes of errors. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Failure } from "../../src/errors/failure.ts";
import { callDeadlineMs } from "../../src/limits.ts";
import { Call, callOperation, parseInput, requestIdFrom } from "../../src/operations/call.ts";
import type { CallContext, Operation, Role } from "../../src/operations/operation.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { rememberingLog } from "../control-plane/two-faces.ts";

class HeldClock implements Clock {
  #now = 1_000;
  readonly #timers = new Set<{ at: number; action: () => void }>();
  now = () => this.#now;
  monotonic = () => this.#now;
  after(delayMs: number, action: () => void): () => void {
    const timer = { at: this.#now + delayMs, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }
  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.action();
    }
  }
  get pending(): number {
    return this.#timers.size;
  }
}

function setUp(options: { role?: Role; callerDeadline?: number; watchCaller?: (call: Call) => void } = {}) {
  const clock = new HeldClock();
  const { log, lines } = rememberingLog();
  const call = new Call({
    requestId: "r-1",
    caller: { name: "someone", role: options.role ?? "operator" },
    clock,
    log,
    callerDeadline: options.callerDeadline,
    watchCaller: options.watchCaller,
  });
  return { clock, lines, call };
}

const input = z.object({ id: z.number().int().positive(), name: z.string().min(2).optional() });
type Input = z.infer<typeof input>;

function rowThat(
  run: (input: Input, context: CallContext) => Promise<unknown>,
  more: Partial<Operation<Input, unknown>> = {},
): Operation<Input, unknown> {
  return {
    name: "getThing",
    summary: "Get",
    rpcService: "ThingService",
    route: { method: "GET", path: "/things/{id}", body: "none", status: 200 },
    role: "agent",
    input,
    output: z.unknown(),
    run,
    ...more,
  };
}

const refusal = async (answer: Promise<unknown>): Promise<Failure> => {
  const error = await answer.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
};

describe("role", () => {
  it.each<[Role, Role, boolean]>([
    ["agent", "agent", true],
    ["agent", "operator", false],
    ["operator", "agent", true],
    ["operator", "operator", true],
  ])("a caller with role %s at a row for %s: allowed %s", async (role, needed, allowed) => {
    const { call } = setUp({ role });
    const answer = callOperation(
      rowThat(async () => "done", { role: needed }),
      { id: 1 },
      call,
    );
    if (allowed) expect(await answer).toBe("done");
    else expect((await refusal(answer)).kind).toBe("forbidden");
  });

  it("is looked at before the input", async () => {
    const { call } = setUp({ role: "agent" });
    expect(
      (
        await refusal(
          callOperation(
            rowThat(async () => 1, { role: "operator" }),
            { id: "x" },
            call,
          ),
        )
      ).kind,
    ).toBe("forbidden");
  });
});

describe("input", () => {
  it("fields at fault are named in the text and listed in the details", async () => {
    const { call } = setUp();
    const failure = await refusal(
      callOperation(
        rowThat(async () => 1),
        { name: "x" },
        call,
      ),
    );
    expect(failure.kind).toBe("invalid_request");
    expect(failure.message).toBe('Field "id" is not valid: required');
    expect(failure.details.fields?.map(({ field }) => field)).toEqual(["id", "name"]);
  });

  it.each([
    [
      "a nested field",
      z.object({ a: z.object({ b: z.array(z.number()) }) }),
      { a: { b: [1, "x"] } },
      'Field "a.b.1" is not valid: expected number, received string',
    ],
    ["no object", z.object({}), [], "Request is not valid: expected object, received array"],
    [
      "a union, by its deepest branch",
      z.union([z.string(), z.object({ type: z.literal("x") })]),
      { type: "y" },
      'Field "type" is not valid: expected "x"',
    ],
    [
      "a rule of the row's own",
      z.object({ a: z.string().refine(() => false, "must be lucky") }),
      { a: "" },
      'Field "a" is not valid: must be lucky',
    ],
  ])("%s", (_title, schema, raw, message) => {
    expect(() => parseInput(schema as z.ZodType, raw)).toThrow(message);
  });

  it("a refusal thrown by a row's own transform keeps its kind", async () => {
    const { call } = setUp();
    const odd = z.object({ id: z.number() }).transform((): Input => {
      throw new Failure("invalid_cursor", "The cursor is broken");
    });
    expect(
      (
        await refusal(
          callOperation(
            rowThat(async () => 1, { input: odd }),
            { id: 1 },
            call,
          ),
        )
      ).kind,
    ).toBe("invalid_cursor");
  });

  it("no value of the request is repeated", () => {
    expect(() => parseInput(z.object({ apiKey: z.number() }), { apiKey: "canary-secret" })).toThrow(/^(?!.*canary)/);
  });
});

describe("deadline", () => {
  it("is the ordinary one plus what the row adds, and the caller's when that is sooner", async () => {
    const seen: number[] = [];
    const row = rowThat(async (_input, context) => seen.push(context.deadline), { extraDeadlineMs: () => 5_000 });
    await callOperation(row, { id: 1 }, setUp().call);
    await callOperation(row, { id: 1 }, setUp({ callerDeadline: 1_500 }).call);
    await callOperation(row, { id: 1 }, setUp({ callerDeadline: 10 ** 9 }).call);
    expect(seen).toEqual([1_000 + callDeadlineMs + 5_000, 1_500, 1_000 + callDeadlineMs + 5_000]);
  });

  it("when it passes the answer is timeout and the signal says so, whatever the row does", async () => {
    const { clock, call } = setUp({ callerDeadline: 1_500 });
    const signals: AbortSignal[] = [];
    const answer = refusal(
      callOperation(
        rowThat((_input, context) => {
          signals.push(context.signal);
          return new Promise(() => undefined);
        }),
        { id: 1 },
        call,
      ),
    );
    clock.advance(499);
    expect(signals[0]?.aborted).toBe(false);
    clock.advance(1);
    expect((await answer).kind).toBe("timeout");
    expect(signals[0]?.reason).toMatchObject({ kind: "timeout" });
  });

  it("one that has passed already runs nothing", async () => {
    const { call } = setUp({ callerDeadline: 900 });
    let ran = false;
    const row = rowThat(async () => {
      ran = true;
    });
    expect((await refusal(callOperation(row, { id: 1 }, call))).kind).toBe("timeout");
    expect(ran).toBe(false);
  });

  it("a finished call leaves no timer and cannot be ended any more", async () => {
    const { clock, call } = setUp();
    let signal: AbortSignal | undefined;
    await callOperation(
      rowThat(async (_input, context) => {
        signal = context.signal;
      }),
      { id: 1 },
      call,
    );
    expect(clock.pending).toBe(0);
    call.end(new Failure("cancelled", "Too late"));
    expect(signal?.aborted).toBe(false);
  });
});

describe("a caller that goes away", () => {
  it("is only watched once somebody looks at the signal", async () => {
    let watched = 0;
    const watchCaller = () => {
      watched += 1;
    };
    await callOperation(
      rowThat(async () => 1),
      { id: 1 },
      setUp({ watchCaller }).call,
    );
    expect(watched).toBe(0);
    await callOperation(
      rowThat(async (_input, context) => [context.signal, context.signal]),
      { id: 1 },
      setUp({ watchCaller }).call,
    );
    expect(watched).toBe(1);
  });

  it("ends the wait, aborts the signal, and a later crash of the row disturbs nobody", async () => {
    const { call, lines } = setUp();
    let crash: (error: Error) => void = () => undefined;
    const answer = refusal(
      callOperation(
        rowThat(() => new Promise((_resolve, reject) => (crash = reject))),
        { id: 1 },
        call,
      ),
    );
    await Promise.resolve();
    call.end(new Failure("cancelled", "The client went away"));
    expect((await answer).kind).toBe("cancelled");
    expect(call.signal.aborted).toBe(true);
    crash(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines).toEqual([]);
  });
});

describe("errors", () => {
  it.each([
    ["an error", () => Promise.reject(new TypeError("secret detail"))],
    [
      "a throw before the promise",
      () => {
        throw new Error("secret detail");
      },
    ],
    ["a string", () => Promise.reject("secret detail")],
    ["nothing", () => Promise.reject(undefined)],
    [
      "an internal failure",
      () => Promise.reject(new Failure("internal", "secret detail", { cause: new Error("secret detail") })),
    ],
  ])("%s is internal with fixed text, and one line in the log", async (_title, run) => {
    const { call, lines } = setUp();
    const failure = await refusal(callOperation(rowThat(run as () => Promise<unknown>), { id: 1 }, call));
    expect(failure.kind).toBe("internal");
    expect(failure.message).not.toContain("secret");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "error", fields: { requestId: "r-1", operation: "getThing" } });
  });

  it("a refusal passes as it is, unlogged unless a fault stands behind it", async () => {
    const { call, lines } = setUp();
    const own = new Failure("conflict", "Not now", { cause: new Error("why") });
    expect(
      await refusal(
        callOperation(
          rowThat(() => Promise.reject(own)),
          { id: 1 },
          call,
        ),
      ),
    ).toBe(own);
    expect(lines).toEqual([]);
    const fault = new Failure("upstream_failed", "No answer", { cause: new Error("ECONNREFUSED") });
    expect(
      await refusal(
        callOperation(
          rowThat(() => Promise.reject(fault)),
          { id: 1 },
          setUp().call,
        ),
      ),
    ).toBe(fault);
    const second = setUp();
    await refusal(
      callOperation(
        rowThat(() => Promise.reject(fault)),
        { id: 1 },
        second.call,
      ),
    );
    expect(second.lines).toMatchObject([{ level: "warn", fields: { error: fault.details.cause } }]);
  });
});

describe("request ids", () => {
  it("keeps a well-formed one and makes another for the rest", () => {
    expect(requestIdFrom("abc-1")).toBe("abc-1");
    for (const odd of [undefined, "", " a", "a\nb", "ä", "x".repeat(129), ["abc-1"], []])
      expect(requestIdFrom(odd)).toMatch(/^[0-9a-f-]{36}$/);
  });
});
