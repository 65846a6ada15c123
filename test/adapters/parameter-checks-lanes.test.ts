/** What a tool that hangs, a schema that takes long and a worker that dies cost the checks of others: real workers, and the log tells which ended. */
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openParameterChecks } from "../../src/adapters/parameter-checks/parameter-checks.ts";
import type { JsonSchema } from "../../src/ports/adapter.ts";
import type { ParameterChecks } from "../../src/ports/parameter-checks.ts";
import { realClock, recordingLog } from "./adapter-bench.ts";

const hanging: JsonSchema = { type: "string", pattern: "^(?=(a+)+$)b" };
const poison = `${"a".repeat(40)}!`;

let log: ReturnType<typeof recordingLog>;
let checks: ParameterChecks;

beforeEach(() => {
  log = recordingLog();
  checks = openParameterChecks({ clock: realClock, log });
});

afterEach(() => checks.close());

/** "checked", or the kind of the failure. */
function check(key: string, schema: JsonSchema, parameters: unknown, signal?: AbortSignal): Promise<string> {
  const subject = `Parameters of tool "${key}"`;
  return checks.check({ key, schema, parameters, subject, signal }).then(
    () => "checked",
    (error) => error.kind,
  );
}

function many(count: number, each: (at: number) => Promise<string>): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => each(at)));
}

/** How often the worker of this name was ended because a request took too long. */
function hung(worker: string): number {
  return log.lines.filter(
    ({ event, message }) => event === "worker-hung" && message.startsWith(`The ${worker} was ended`),
  ).length;
}

const quick = "parameter worker";
const suspect = "parameter worker for schemas that hung";

describe("a tool that hangs", () => {
  test("ends the worker of the others once, however often it is called, and they are all checked", async () => {
    const hangs = many(10, () => check("hang", hanging, poison));
    expect(new Set(await many(60, (at) => check(`fine ${at % 30}`, { const: at % 30 }, at % 30)))).toEqual(
      new Set(["checked"]),
    );
    expect(new Set(await many(60, (at) => check(`more ${at}`, { const: at }, -1)))).toEqual(
      new Set(["invalid_request"]),
    );
    expect(hung(quick)).toBe(1);
    await checks.close();
    expect((await hangs)[0]).toBe("timeout");
  });

  test("is found out though its callers do not wait for the end", async () => {
    for (let round = 0; round < 2; round += 1) {
      const leaving = new AbortController();
      const left = check("hang", hanging, poison, leaving.signal);
      setTimeout(() => leaving.abort(), 50);
      expect(await left).toBe("cancelled");
      expect(await check("fine", true, 1)).toBe("checked");
    }
    expect(hung(quick)).toBe(1);
  });

  test("is waited for once by each call of another that hung before", async () => {
    expect(await Promise.all([check("a", hanging, poison), check("b", hanging, poison)])).toEqual([
      "timeout",
      "timeout",
    ]);
    const before = hung(suspect);
    void many(10, () => check("a", hanging, poison));
    expect(await check("b", hanging, "x")).toBe("invalid_request");
    expect(hung(suspect) - before).toBeLessThanOrEqual(2);
  });
});

describe("a schema that takes long to compile", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 6_000 }, (_, at) => [`p${at}`, { type: "string", minLength: 1, maxLength: 9 }]),
  );
  const patterns = [1, 2].map((at) => ({ pattern: `${"(a{0,1000}b)".repeat(300)}${at}` }));

  test.each<[string, JsonSchema, unknown]>([
    ["because it is large", { type: "object", properties }, {}],
    ["because of its patterns", { anyOf: [...patterns, true] }, "x"],
  ])("%s is waited for by its own callers only", async (_, schema, fitting) => {
    const answered: string[] = [];
    const long = many(3, () => check("long", schema, fitting).finally(() => answered.push("long")));
    await many(20, (at) => check(`short ${at}`, { const: at }, at).finally(() => answered.push("short")));
    expect(answered.slice(0, 20)).toEqual(Array(20).fill("short"));
    // On a machine that is busy with other things it may take longer than any schema gets.
    expect([["checked"], ["timeout"]]).toContainEqual([...new Set(await long)]);
  });
});

describe("many at once", () => {
  test("1,400 schemas are all checked against", async () => {
    expect(new Set(await many(1_400, (at) => check(`fits ${at}`, { const: at }, at)))).toEqual(new Set(["checked"]));
    expect(new Set(await many(1_400, (at) => check(`fits ${at}`, { const: at }, -1)))).toEqual(
      new Set(["invalid_request"]),
    );
  });

  test("fifty schemas of which each is asked for ten times are compiled by a fresh worker", async () => {
    expect(new Set(await many(500, (at) => check(`k${at % 50}`, { const: at % 50 }, at % 50)))).toEqual(
      new Set(["checked"]),
    );
  });
});

describe("a worker that is killed", () => {
  /** Of this process, which has one worker for checks in these tests. */
  function kill(): void {
    const [pid] = execFileSync("pgrep", ["-P", String(process.pid), "-f", "check-worker"], { encoding: "utf8" }).split(
      "\n",
    );
    process.kill(Number(pid), "SIGKILL");
  }

  test("between checks is not noticed by anybody", async () => {
    expect(await check("k", { const: 1 }, 1)).toBe("checked");
    kill();
    expect(await many(20, (at) => check("k", { const: 1 }, at % 2))).toEqual(
      Array.from({ length: 20 }, (_, at) => (at % 2 === 1 ? "checked" : "invalid_request")),
    );
  });

  test("during a check tries it again, and those who wait are checked", async () => {
    expect(await check("hang", hanging, "x")).toBe("invalid_request");
    const held = check("hang", hanging, poison);
    const waiting = many(50, (at) => check(`k${at}`, { const: at }, at));
    await new Promise((resolve) => setTimeout(resolve, 200));
    kill();
    expect(new Set(await waiting)).toEqual(new Set(["checked"]));
    // In the next worker, which lacked its schema, it hung as before.
    expect(await held).toBe("timeout");
    expect(log.lines.filter(({ event }) => event === "worker-died")).toHaveLength(1);
  });
});
