/** What is captured, how it is coerced and where it ends. */
import { describe, expect, it } from "vitest";
import type { Current } from "../contract.ts";
import { ending, errorOf, megabyte, runProgram } from "../program.ts";

const kept: readonly (readonly [title: string, code: string, output: Record<string, unknown>])[] = [
  ["nothing gives an empty object", "", {}],
  ["undefined gives what was captured", "output({a: 1}); return undefined", { a: 1 }],
  [
    "later keys win",
    "output({a: 1, b: 1}); output({b: 2, c: {d: 1}}); output({c: {e: 2}})",
    { a: 1, b: 2, c: { e: 2 } },
  ],
  ["a returned object is merged last", "output({a: 1, b: 1}); return {b: 2}", { a: 1, b: 2 }],
  ["a text is stored as result", "return 'x'", { result: "x" }],
  ["a number is stored as result", "return 1.5", { result: 1.5 }],
  ["null is stored as result", "return null", { result: null }],
  ["false is stored as result", "return false", { result: false }],
  ["an array is stored as result", "return [1, undefined]", { result: [1, null] }],
  ["a date is stored as ISO text", "return new Date(0)", { result: "1970-01-01T00:00:00.000Z" }],
  ["undefined and functions in objects are dropped", "return {a: undefined, f() {}, s: Symbol('x'), b: 1}", { b: 1 }],
  ["NaN and infinities are null", "return {a: NaN, b: Infinity}", { a: null, b: null }],
  ["a map is an empty object", "return {m: new Map([[1, 2]])}", { m: {} }],
  ["a date inside is ISO text", "output({d: new Date(0)})", { d: "1970-01-01T00:00:00.000Z" }],
  ["toJSON is honoured", "return {toJSON() { return {a: 1} }}", { a: 1 }],
  ["a function returned is nothing", "return () => 1", {}],
  [
    "a lone surrogate becomes a replacement character",
    "return {a: '\\udfff', '\\ud800': 1}",
    { a: "\ufffd", "\ufffd": 1 },
  ],
  ["an escaped surrogate in text stays text", "return {a: '\\\\udfff', b: '😀'}", { a: "\\udfff", b: "😀" }],
  ["NUL survives", "return {a: 'x\\0y'}", { a: "x\0y" }],
  ["a thenable is awaited", "return {then(done) { done({a: 1}) }}", { a: 1 }],
];

const refused: readonly (readonly [title: string, code: string])[] = [
  ["BigInt", "return 1n"],
  ["BigInt inside", "output({a: 1, b: {c: 1n}})"],
  ["a cycle", "const o = {}; o.o = o; return o"],
  ["a getter that throws", "return {get a() { throw new Error('getter') }}"],
  ["toJSON that throws", "output({a: {toJSON() { throw new Error('toJSON') }}})"],
  ["a text given to output", "output('x')"],
  ["an array given to output", "output([1])"],
  ["null given to output", "output(null)"],
  ["nothing given to output", "output()"],
  ["nesting without end", "let o = {}; for (let i = 0; i < 100000; i++) o = {o}; return o"],
];

export function outputsContract(current: Current): void {
  describe("outputs", () => {
    it.each(kept)("%s", async (_title, code, output) => {
      const result = await runProgram(current(), code);
      expect([ending(result), result.output]).toEqual(["success", output]);
    });

    it("a key named __proto__ is a key", async () => {
      const { end } = await runProgram(
        current(),
        `output({["__proto__"]: 1}); return JSON.parse('{"__proto__": {"a": 2}}')`,
      );
      expect(end).toEqual({ kind: "success", output: '{"__proto__":{"a":2}}' });
    });

    it.each(refused)("%s fails with a reason, and what was captured before stays", async (_title, code) => {
      const result = await runProgram(current(), `output({before: 1});\n${code}`);
      expect([ending(result), result.output]).toEqual(["thrown", { before: 1 }]);
      expect(errorOf(result)).not.toBe("");
    });

    it("a million keys end in output or in a failed run, never in a lost one", async () => {
      const code = "const o = {}; for (let i = 0; i < 1e6; i++) o[i] = i; return o";
      const result = await runProgram(current(), code, { limits: { memoryMb: 128 } });
      expect(["output_too_large", "memory"]).toContain(ending(result));
    });

    it("stdout over its limit is cut between characters and ends the run", async () => {
      const result = await runProgram(current(), "console.log('é'.repeat(600))", { limits: { outputBytes: 1001 } });
      expect(ending(result)).toBe("output_too_large");
      expect(result.stdout).toBe("é".repeat(500));
    });

    it("stderr and output have the same limit, each of its own", async () => {
      const limits = { outputBytes: 1000 };
      const fits = "console.log('x'.repeat(900)); console.error('y'.repeat(900)); return {z: 'z'.repeat(900)}";
      expect(ending(await runProgram(current(), fits, { limits }))).toBe("success");
      const error = await runProgram(current(), "console.error('y'.repeat(1001))", { limits });
      expect([ending(error), error.stderr.length]).toEqual(["output_too_large", 1000]);
      const output = await runProgram(current(), "output({a: 1}); output({b: 'x'.repeat(1000)})", { limits });
      expect([ending(output), output.output]).toEqual(["output_too_large", { a: 1 }]);
    });

    it("overwriting the same key does not add up", async () => {
      const code = "for (let i = 0; i < 100; i++) output({a: 'x'.repeat(900)})";
      expect(ending(await runProgram(current(), code, { limits: { outputBytes: 1000 } }))).toBe("success");
    });

    it.each(["console.log", "console.error"])(
      "%s without end is capped, and the server does not grow with it",
      async (print) => {
        const before = process.memoryUsage().rss;
        const result = await runProgram(
          current(),
          `const x = 'x'.repeat(1e6); for (let i = 0; i < 2000; i++) ${print}(x)`,
        );
        expect(ending(result)).toBe("output_too_large");
        expect(result.stdout.length + result.stderr.length).toBe(megabyte);
        expect(process.memoryUsage().rss - before).toBeLessThan(100 * megabyte);
      },
    );

    it("a structured output of 200 MB is refused", async () => {
      const code = "return {a: 'x'.repeat(2e8)}";
      const result = await runProgram(current(), code, { limits: { memoryMb: 128 } });
      expect(["output_too_large", "memory"]).toContain(ending(result));
    });

    it("a million small prints arrive in order", async () => {
      const code = "for (let i = 0; i < 100000; i++) console.log(i)";
      const result = await runProgram(current(), code, { limits: { outputBytes: 2 * megabyte } });
      expect(result.stdout).toBe(Array.from({ length: 100_000 }, (_, line) => `${line}\n`).join(""));
    });

    it("a character is never split over two pieces", async () => {
      const code = "for (let i = 0; i < 8; i++) console.log('a'.repeat(65530 + i) + '😀'.repeat(70000))";
      const result = await runProgram(current(), code, { limits: { outputBytes: 4 * megabyte } });
      expect(result.pieces.every((piece) => piece.isWellFormed() && !piece.includes("\ufffd"))).toBe(true);
      expect([...result.stdout].filter((character) => character === "😀").length).toBe(8 * 70_000);
    });

    it("what a stopped program gave so far is kept", async () => {
      const result = await runProgram(current(), "output({a: 1}); console.log('x'); console.error('y'); for (;;) {}", {
        stopAfterMs: 100,
      });
      expect([ending(result), result.output, result.stdout, result.stderr]).toEqual([
        "stopped",
        { a: 1 },
        "x\n",
        "y\n",
      ]);
    });

    it("200 runs that print 1 MB and end at once lose nothing", async () => {
      const code = "output({n: env.n}); console.log('x'.repeat(1e6)); return {done: true}";
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, n) =>
          runProgram(current(), code, { env: { n }, limits: { outputBytes: 2 * megabyte } }),
        ),
      );
      const wrong = results.filter(
        (result, n) => result.stdout.length !== 1e6 + 1 || result.output.n !== n || result.output.done !== true,
      );
      expect(wrong).toEqual([]);
    }, 60_000);
  });
}
