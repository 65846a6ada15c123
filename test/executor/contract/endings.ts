/** How runs end: each ending once, with a reason and words that help. */
import { describe, expect, it } from "vitest";
import { codeCharactersMax } from "../../../src/limits.ts";
import type { Current } from "../contract.ts";
import { ending, errorOf, runProgram } from "../program.ts";

const thrown: readonly (readonly [code: string, error: string | RegExp])[] = [
  ["throw new Error('broken')", "broken"],
  ["throw new TypeError('wrong')", "wrong"],
  ["throw 'x'", "x"],
  ["throw null", "null"],
  ["throw undefined", "undefined"],
  ["throw 5", "5"],
  ["throw {a: 1}", '{"a":1}'],
  ["throw {message: 'not an error'}", '{"message":"not an error"}'],
  ["throw new Error('')", "Error"],
  ["await Promise.reject(new Error('rejected'))", "rejected"],
  ["null.x", /null/],
  ["missing()", /missing/],
  ["setTimeout(() => { throw new Error('late') }, 1); await new Promise(r => setTimeout(r, 1000))", "late"],
  ["queueMicrotask(() => { throw new Error('micro') }); await new Promise(r => setTimeout(r, 1000))", "micro"],
  ["Promise.reject(new Error('forgotten')); return 1", "forgotten"],
  ["async function f() { throw new Error('forgotten') }\nf();\nawait new Promise(r => setTimeout(r, 5))", "forgotten"],
  ["Promise.reject('forgotten'); await new Promise(() => {})", "forgotten"],
  ["new Promise((_, no) => no({a: 1}))", '{"a":1}'],
  ["(async () => { await 1; throw new Error('later') })(); await new Promise(r => setTimeout(r, 5))", "later"],
  ["throw {get message() { throw 1 }, toJSON() { throw 2 }, toString() { throw 3 }}", /./],
  ["const e = new Error('x'); Object.defineProperty(e, 'message', {get() { throw e }}); throw e", /./],
  ["throw new Proxy({}, {get() { throw 1 }, getPrototypeOf() { throw 2 }, ownKeys() { throw 3 }})", /./],
  ["const e = new Error('x'); e.stack = {toString() { throw 1 }}; throw e", "x"],
  ["class Own extends Error { get name() { throw 1 } }; throw new Own('x')", /./],
  ["function f() { f() }\nf()", /stack/],
  ["throw 'x'.repeat(1e6)", /^x{1000,10000}$/],
];

const success: readonly (readonly [title: string, code: string])[] = [
  ["empty code", ""],
  ["blank code", " \n\t\n"],
  ["a comment", "// nothing"],
  ["an unclosed-looking comment line", "return 1 // }"],
  ["type declarations only", "type A = { b: string };\ninterface B { c: A }"],
  [
    "a rejection that is handled later",
    "const p = Promise.reject(1); await new Promise(r => setTimeout(r, 5)); await p.catch(() => {})",
  ],
  [
    "a rejection that is handled at once",
    "Promise.reject(1).catch(() => {}); try { await Promise.all([Promise.reject(2), Promise.reject(3)]) } catch {}",
  ],
  [
    "timers and promises left behind",
    "setTimeout(() => {}, 60000); setInterval(() => {}, 60000); new Promise(() => {}); return 1",
  ],
  ["sloppy code", "x = 5; return x + 010"],
  ["carriage returns", "return 1\r\n"],
];

const syntax: readonly (readonly [code: string, place: RegExp])[] = [
  ["let x = ;", /line 1, column 9\b/],
  ["const a = 1;\n\n  let y = ;", /line 3, column 11\b/],
  ["const b: = 5", /line 1, column 10\b/],
  ["const é𝒳 = ;", /line 1, column 12\b/],
  ["return 1 +", /line 1\b/],
  ["{", /line 1\b/],
  ["}", /line 1\b/],
  ["return 'x", /line 1\b/],
  ["import fs from 'node:fs'", /line 1\b.*import/],
  ["return 1;\nexport const a = 1", /line 2\b.*export/],
];

/** Texts that leave the function they are the body of. */
const breakouts = [
  "}); output({out: 1}); (async () => {",
  "}); output({out: 1}); (async function () {",
  "} output({out: 1}); async function g() {",
  "}, async () => { output({out: 1})",
  "}, function () {",
  "} + function () {",
  "}, x() {",
  "}\nfunction g() {",
  "}; { output({out: 1})",
  "}} {{",
  "/*",
  "`${",
];

export function endingsContract(current: Current): void {
  describe("endings", () => {
    it.each(success)("%s succeeds", async (_title, code) => {
      const result = await runProgram(current(), code);
      expect([ending(result), result.started, result.ends]).toEqual(["success", 1, 1]);
    });

    it.each(thrown)("%j fails as thrown", async (code, error) => {
      const result = await runProgram(current(), code);
      expect([ending(result), result.started, result.ends]).toEqual(["thrown", 1, 1]);
      if (typeof error === "string") expect(errorOf(result)).toBe(error);
      else expect(errorOf(result)).toMatch(error);
    });

    it.each(syntax)("%j fails as syntax, naming the place", async (code, place) => {
      const result = await runProgram(current(), code);
      expect(ending(result)).toBe("syntax");
      expect(errorOf(result)).toMatch(place);
    });

    it.each(breakouts)("%j cannot leave the function it is the body of", async (code) => {
      const result = await runProgram(current(), code);
      expect([ending(result), result.output]).toEqual(["syntax", {}]);
    });

    it.each([
      ["a promise nobody settles", "await new Promise(() => {})"],
      [
        "promises that wait for each other",
        "let p; const q = new Promise(r => { p = r }).then(() => q2); const q2 = q.then(() => 1); await q2",
      ],
      [
        "an async iterator nobody feeds",
        "for await (const x of {[Symbol.asyncIterator]: () => ({next: () => new Promise(() => {})})}) {}",
      ],
      ["a promise left after the last timer", "await new Promise(r => setTimeout(r, 5)); await new Promise(() => {})"],
    ])("%s is a deadlock, found at once", async (_title, code) => {
      const result = await runProgram(current(), code);
      expect(ending(result)).toBe("deadlocked");
      expect(errorOf(result)).not.toBe("");
    });

    it("a stack names the submitter's own lines, in JavaScript and in TypeScript", async () => {
      const plain = "\n\nfunction inner() {\n  throw new Error('deep')\n}\ninner()";
      const typed =
        "interface A {\n  b: string\n}\nfunction inner(a?: A): void {\n  throw new Error('deep')\n}\ninner()";
      const [first, second] = await Promise.all([plain, typed].map((code) => runProgram(current(), code)));
      expect(first?.stderr).toMatch(/^Error: deep\n.*inner.*:4:\d+\)?\n.*:6:\d+\)?\n$/);
      expect(second?.stderr).toMatch(/^Error: deep\n.*inner.*:5:\d+\)?\n.*:7:\d+\)?\n$/);
      expect(`${first?.stderr}${second?.stderr}`).not.toMatch(/node_modules|\/src\/|file:/);
    });

    it("code of the largest size runs, whatever its characters", async () => {
      const fill = (character: string): string => `return [...'${character.repeat(codeCharactersMax - 20)}'].length`;
      for (const character of ["a", "é", "𝒳"]) {
        const result = await runProgram(current(), fill(character));
        expect(result.output).toEqual({ result: codeCharactersMax - 20 });
      }
    });

    it("ten endless loops at once all end when stopped", async () => {
      const loops = [
        "for (;;) {}",
        "while (true) await null",
        "const f = () => Promise.resolve().then(f); await f()",
        "/(a+)+b/.test('a'.repeat(60)); for (;;) {}",
        "for (;;) { try { for (;;) {} } finally { continue } }",
      ];
      const results = await Promise.all(
        [...loops, ...loops].map((code) => runProgram(current(), code, { stopAfterMs: 500 })),
      );
      expect(results.map(ending)).toEqual(Array.from({ length: 10 }, () => "stopped"));
      const next = await runProgram(current(), "return 1");
      expect(next.output).toEqual({ result: 1 });
    }, 40_000);

    it.each([
      ["a program that waits for a timer", "await new Promise(r => setTimeout(r, 60000))"],
      ["a program that waits for a tool", "await services.a.b()"],
      ["a program that computes", "for (;;) {}"],
      ["a program in an endless getter", "return {get a() { for (;;) {} }}"],
      ["a program with an endless toJSON", "await services.a.b({toJSON() { for (;;) {} }})"],
      ["a program that throws endlessly", "throw {toJSON() { for (;;) {} }}"],
    ])("%s ends soon after it is stopped, once", async (_title, code) => {
      const result = await runProgram(current(), code, { stopAfterMs: 50 });
      expect([ending(result), result.ends]).toEqual(["stopped", 1]);
    });

    it("a run stopped before it started ends stopped and never starts", async () => {
      const events: string[] = [];
      const output = await new Promise<string>((resolve) => {
        const handle = current().start(
          {
            runId: "early",
            code: "return 1",
            env: {},
            limits: { memoryMb: 64, outputBytes: 1000, cpuMs: null },
            seed: 1,
          },
          {
            started: () => events.push("started"),
            stdout: () => undefined,
            stderr: () => undefined,
            toolCall: () => undefined,
            ended(end) {
              events.push(end.kind);
              resolve(end.output);
            },
          },
        );
        handle.stop();
        handle.stop();
      });
      expect([events, output]).toEqual([["stopped"], "{}"]);
    });

    it("a limit of CPU time ends a program that computes, not one that waits", async () => {
      const limits = { cpuMs: 300 };
      const busy = await runProgram(current(), "for (;;) {}", { limits, stopAfterMs: 15_000 });
      expect([ending(busy), errorOf(busy)]).toEqual(["thrown", expect.stringContaining("CPU")]);
      const idle = await runProgram(current(), "await new Promise(r => setTimeout(r, 600)); return 1", { limits });
      expect(ending(idle)).toBe("success");
    });
  });
}
