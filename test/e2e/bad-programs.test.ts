/** Programs that go wrong in every way we know: each ends in a defined exit state and reason, and the server stays up. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ForeignClient, openForeignClient } from "./foreign-client.ts";
import { removeFolder, type Server, startServer } from "./server.ts";

let server: Server;
let client: ForeignClient;

beforeAll(async () => {
  server = await startServer({
    settings: {
      SERVICE_PROCESS_OUTPUT_BYTES: "65536",
      SERVICE_PROCESS_MEMORY_MB: "64",
      SERVICE_PROCESS_CONCURRENCY: "12",
    },
  });
  client = await openForeignClient(server.grpc);
});

afterAll(async () => {
  client.close();
  await server.kill("SIGTERM");
  await removeFolder(server.folder);
});

interface Ending {
  readonly code: string;
  readonly exitState: string;
  readonly reason?: string;
  readonly error?: RegExp;
  readonly output?: unknown;
  readonly timeoutMs?: number;
}

const programs: Record<string, Ending> = {
  "no code at all": { code: "", exitState: "success", output: {} },
  "only blanks": { code: " \n\t", exitState: "success", output: {} },
  "only a comment": { code: "// nothing", exitState: "success", output: {} },
  "only a type declaration": { code: "interface A { x: number }\ntype B = A", exitState: "success", output: {} },
  "a syntax error": {
    code: "const a = 1;\nconst b: = 5;\nreturn a",
    exitState: "failed",
    reason: "syntax",
    error: /\b2:10\b|line 2,? column 10/i,
  },
  "a brace that closes the wrapper": {
    code: "}\noutput({ escaped: true });\n{",
    exitState: "failed",
    reason: "syntax",
  },
  "an import": { code: "import fs from 'node:fs'", exitState: "failed", reason: "syntax" },
  "a thrown error": { code: "throw new Error('boom')", exitState: "failed", reason: "thrown", error: /^boom$/ },
  "a thrown text": { code: "throw 'as is'", exitState: "failed", reason: "thrown", error: /^as is$/ },
  "a thrown null": { code: "throw null", exitState: "failed", reason: "thrown", error: /null/ },
  "a thrown object": { code: "throw { a: 1 }", exitState: "failed", reason: "thrown", error: /"a":\s*1/ },
  "an unhandled rejection": {
    code: "Promise.reject(new Error('nobody looked')); await new Promise((r) => setTimeout(r, 20))",
    exitState: "failed",
    reason: "thrown",
    error: /nobody looked/,
  },
  "an endless loop": { code: "for (;;) {}", timeoutMs: 400, exitState: "timeout", reason: "timeout", error: /400 ms/ },
  "an endless chain of microtasks": {
    code: "const f = () => Promise.resolve().then(f); await f()",
    timeoutMs: 400,
    exitState: "timeout",
    reason: "timeout",
  },
  "an endless wait for nulls": {
    code: "while (true) await null",
    timeoutMs: 400,
    exitState: "timeout",
    reason: "timeout",
  },
  "a catastrophic pattern": {
    code: "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
    timeoutMs: 400,
    exitState: "timeout",
    reason: "timeout",
  },
  "a promise that never settles": { code: "await new Promise(() => {})", exitState: "failed", reason: "deadlocked" },
  "an array without end": {
    code: "const a = []; for (;;) a.push(new Array(1000).fill(a.length))",
    exitState: "failed",
    reason: "memory",
    error: /memory/i,
  },
  "typed arrays without end": {
    code: "const a = []; for (;;) a.push(new Uint8Array(8_000_000).fill(1))",
    exitState: "failed",
    reason: "memory",
    error: /memory/i,
  },
  "a text without end": {
    code: "let s = 'x'; for (;;) s += s",
    exitState: "failed",
    error: /./,
  },
  "a cyclic output": { code: "const a = {}; a.a = a; output(a)", exitState: "failed", reason: "thrown", error: /./ },
  "a cyclic return value": {
    code: "const a = {}; a.a = a; return a",
    exitState: "failed",
    reason: "thrown",
    error: /./,
  },
  "a BigInt output": { code: "output({ n: 1n })", exitState: "failed", reason: "thrown", error: /BigInt/ },
  "a BigInt return value": { code: "return 10n", exitState: "failed", reason: "thrown", error: /BigInt/ },
  "an output that is no object": { code: "output(5)", exitState: "failed", reason: "thrown" },
  "an output with an endless toJSON": {
    code: "return { toJSON() { for (;;) {} } }",
    timeoutMs: 400,
    exitState: "timeout",
    reason: "timeout",
  },
  "an output over the limit": {
    code: "output({ kept: 1 }); return { big: 'x'.repeat(70000) }",
    exitState: "failed",
    reason: "output_too_large",
    output: { kept: 1 },
  },
  "a flood of stdout": {
    code: "for (;;) console.log('x'.repeat(1000))",
    exitState: "failed",
    reason: "output_too_large",
  },
  "a flood of stderr": {
    code: "for (;;) console.error('x'.repeat(1000))",
    exitState: "failed",
    reason: "output_too_large",
  },
  "parser-breaking nesting": { code: "(".repeat(100_000), exitState: "failed" },
  "a call of a service that is not there": {
    code: "await services.nowhere.nothing({})",
    exitState: "failed",
    reason: "thrown",
    error: /no service "nowhere"/,
  },
  "deep recursion": { code: "const f = () => f() + 1; f()", exitState: "failed", reason: "thrown" },
};

describe("a program with", () => {
  for (const [what, ending] of Object.entries(programs)) {
    it(`${what} ends ${ending.exitState}${ending.reason === undefined ? "" : `, ${ending.reason}`}`, async () => {
      const process = await server.run(ending.code, { timeoutMs: ending.timeoutMs ?? 20_000 });
      const told = JSON.stringify(process);
      expect(process.exitState, told).toBe(ending.exitState);
      expect(process.state).toBe("idle");
      expect(process.completedAt).not.toBeNull();
      const { reason } = (await client.call("ProcessService", "GetProcess", { id: String(process.id) })) as {
        reason?: string;
      };
      if (ending.reason !== undefined) expect(reason, told).toBe(ending.reason);
      if (ending.error !== undefined) expect(process.error).toMatch(ending.error);
      if (ending.exitState === "success") expect(process.error).toBeNull();
      else expect(process.error).toMatch(/./);
      const output = await server.get(`/processes/${process.id}/output`);
      expect(output.status).toBe(200);
      if (ending.output !== undefined) expect(output.body).toEqual(ending.output);
    });
  }
});

describe("while programs misbehave", () => {
  it("ten endless loops at once end at their limit, and reading stays quick", async () => {
    const started = Date.now();
    const runs = Array.from({ length: 10 }, () => server.run("for (;;) {}", { timeoutMs: 500 }));
    const waits: number[] = [];
    for (let look = 0; look < 40; look++) {
      const before = performance.now();
      expect((await server.get("/processes?limit=5")).status).toBe(200);
      waits.push(performance.now() - before);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const ended = await Promise.all(runs);
    expect(ended.map(({ exitState }) => exitState)).toEqual(Array(10).fill("timeout"));
    expect(Date.now() - started).toBeLessThan(20_000);
    expect(waits.sort((a, b) => a - b)[20]).toBeLessThan(500);
  });

  it("a killed executor child ends only its own run", async () => {
    const { body: victim } = await server.post("/processes", { code: "for (;;) {}", timeoutMs: 20_000 });
    const bystander = server.run("await new Promise((r) => setTimeout(r, 1500)); return 'unharmed'");
    const busiest = await busiestChild(server.child.pid ?? 0);
    process.kill(busiest, "SIGKILL");
    const ended = (await server.get(`/processes/${victim.id}?wait=30`)).body;
    expect(ended).toMatchObject({ state: "idle", exitState: "failed" });
    expect(ended.error).toMatch(/./);
    const { reason } = (await client.call("ProcessService", "GetProcess", { id: String(victim.id) })) as {
      reason?: string;
    };
    expect(reason).toBe("executor_crashed");
    expect((await bystander).exitState).toBe("success");
  });

  it("and after all that the server is well and a good program succeeds", async () => {
    expect((await server.get("/readyz")).status).toBe(200);
    const good = await server.run("return { ok: true }");
    expect(await server.output(good.id)).toEqual({ ok: true });
  });
});

/** The descendant of a process that burns most CPU over a moment. */
async function busiestChild(pid: number): Promise<number> {
  const ticks = (): Map<number, number> => {
    const found = new Map<number, number>();
    for (const entry of readdirSync("/proc")) {
      if (!/^[0-9]+$/.test(entry)) continue;
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        if (Number(fields[1]) === pid) found.set(Number(entry), Number(fields[11]) + Number(fields[12]));
      } catch {
        // It ended while we looked.
      }
    }
    return found;
  };
  for (let look = 0; look < 50; look++) {
    const before = ticks();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const [busiest] = [...ticks()]
      .map(([child, after]) => ({ child, spent: after - (before.get(child) ?? 0) }))
      .sort((a, b) => b.spent - a.spent);
    if (busiest !== undefined && busiest.spent >= 10) return busiest.child;
  }
  throw new Error("No child of the server is busy");
}
