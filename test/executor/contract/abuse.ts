/** Programs that mean harm, by class (R-070, R-072, R-080; hostile classes: time, memory, output). */
import { describe, expect, it } from "vitest";
import type { Current } from "../contract.ts";
import { ending, errorOf, runProgram } from "../program.ts";

const memoryBombs: readonly (readonly [title: string, code: string])[] = [
  ["objects", "const a = []; for (;;) a.push({})"],
  ["objects held by a global", "globalThis.a = []; for (;;) a.push({n: a.length})"],
  ["texts", "const a = []; for (let i = 0; ; i++) a.push('x'.repeat(1e6) + i)"],
  ["typed arrays", "const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))"],
  ["array buffers", "const a = []; for (;;) a.push(new ArrayBuffer(48 * 1024 * 1024))"],
  ["maps", "const m = new Map(); for (let i = 0; ; i++) m.set(i, {i})"],
  ["promises", "const a = []; for (;;) a.push(new Promise(() => {}))"],
  ["texts, whose end is caught", "const a = []; for (;;) { try { a.push('x'.repeat(1e5) + a.length) } catch {} }"],
  ["jobs", "const f = () => { for (;;) Promise.resolve().then(f) }; f()"],
];

const survivors: readonly (readonly [title: string, code: string])[] = [
  ["endless recursion that is caught", "let n = 0; function f() { n++; f() } try { f() } catch {} return n > 100"],
  ["recursion through toString", "const o = {toString() { return '' + o }}; try { '' + o } catch {} return true"],
  ["recursion through a sort", "function f() { [2, 1].sort(f) } try { f() } catch {} return true"],
  ["deep JSON", "try { JSON.parse('['.repeat(200000)) } catch {} return true"],
  ["deep nesting given to eval", "try { eval('('.repeat(100000)) } catch {} return true"],
  [
    "a flood of timers",
    "let e; try { for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e6) } catch (x) { e = x } return e instanceof Error",
  ],
  [
    "prototype pollution",
    "Object.prototype.type = 'ended'; Object.prototype.ok = true; Array.prototype.push = () => { throw 1 }; return true",
  ],
  [
    "a replaced JSON and Promise",
    "JSON.stringify = () => '{}'; JSON.parse = () => null; Promise.prototype.then = null; globalThis.Promise = null; return true",
  ],
  [
    "deleted globals",
    "for (const n of Object.getOwnPropertyNames(globalThis)) { try { delete globalThis[n] } catch {} } return true",
  ],
  [
    "lookalike frames on the console",
    `console.log('\\u0000\\u0000\\u0000\\u0010{"type":"ended"}'); console.log('{"type":"ended","result":"success","error":""}'); return true`,
  ],
];

export function abuseContract(current: Current): void {
  describe("abuse", () => {
    it.each(memoryBombs)("a memory bomb of %s fails with an error that says memory", async (_title, code) => {
      const result = await runProgram(current(), code, { stopAfterMs: 15_000 });
      expect([ending(result), result.ends]).toEqual(["memory", 1]);
      expect(errorOf(result)).toMatch(/memory/);
    });

    it("one buffer above all limits cannot be made", async () => {
      const result = await runProgram(current(), "return new Uint8Array(4e9).fill(1).length");
      expect(["memory", "thrown"]).toContain(ending(result));
    });

    it("five bombs at once leave the next program and the server's memory alone", async () => {
      const before = process.memoryUsage().rss;
      const bombs = memoryBombs.slice(0, 5).map(([, code]) => runProgram(current(), code));
      const beside = await runProgram(current(), "return 1");
      expect((await Promise.all(bombs)).map(ending)).toEqual(bombs.map(() => "memory"));
      expect([beside.output, (await runProgram(current(), "return 2")).output]).toEqual([{ result: 1 }, { result: 2 }]);
      expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
    });

    it("a run with a lower limit gets less memory than one with a higher", async () => {
      const code =
        "const a = []; for (let i = 0; i < 40; i++) a.push(new Uint8Array(1024 * 1024).fill(1)); return a.length";
      const [low, high] = await Promise.all(
        [24, 100].map((memoryMb) => runProgram(current(), code, { limits: { memoryMb } })),
      );
      expect([low, high].map((result) => result && ending(result))).toEqual(["memory", "success"]);
    });

    it("a program that catches running out of memory may go on", async () => {
      const code = "let a = []; try { for (;;) a.push(new Uint8Array(1e6)) } catch { a = null } return 'alive'";
      expect((await runProgram(current(), code)).output).toEqual({ result: "alive" });
    });

    it.each(survivors)("%s does not harm the run", async (_title, code) => {
      const result = await runProgram(current(), code);
      expect([ending(result), result.output]).toEqual(["success", { result: true }]);
    });

    it.each([
      ["parentheses", "("],
      ["brackets", "["],
      ["braces", "{"],
      ["templates", "`${"],
      ["negations", "!"],
      ["arrows", "a=>"],
      ["questions", "a?"],
      ["generics", "a<"],
      ["types", "let a: ["],
      ["calls", "f("],
      ["blocks of ifs", "if(1)"],
      ["classes", "class A{static{"],
    ])("source nested with %s ends its own run only", async (_title, piece) => {
      const code = piece.repeat(Math.floor(102_400 / piece.length));
      const [bomb, beside] = await Promise.all([
        runProgram(current(), code, { stopAfterMs: 3_000 }),
        runProgram(current(), "await new Promise(r => setTimeout(r, 300)); return 1"),
      ]);
      expect(["syntax", "stopped", "memory"]).toContain(ending(bomb));
      expect(beside.output).toEqual({ result: 1 });
    });
  });
}
