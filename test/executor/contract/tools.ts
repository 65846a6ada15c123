/** Tool calls from inside a program. */
import { describe, expect, it } from "vitest";
import { toolCallsInFlightMax } from "../../../src/limits.ts";
import type { RunHandle, ToolAnswer, ToolCall } from "../../../src/ports/executor.ts";
import type { Current } from "../contract.ts";
import { ending, errorOf, runProgram } from "../program.ts";

const echo = ({ serviceId, toolId, parameters }: ToolCall): ToolAnswer => ({
  ok: true,
  value: { serviceId, toolId, parameters: parameters === undefined ? "none" : parameters },
});

const addressed: readonly (readonly [code: string, serviceId: string, toolId: string])[] = [
  ["services.petstore.getPet", "petstore", "getPet"],
  ["services['pet_$1']['get-pet']", "pet_$1", "get-pet"],
  ["services.petstore.tools.getPet.invoke", "petstore", "getPet"],
  ["services.petstore.tools['then'].invoke", "petstore", "then"],
  ["services.petstore.tools['tools'].invoke", "petstore", "tools"],
  ["services.petstore.tools['constructor'].invoke", "petstore", "constructor"],
  ["services.petstore.tools['__proto__'].invoke", "petstore", "__proto__"],
  ["services.petstore.tools['hasOwnProperty'].invoke", "petstore", "hasOwnProperty"],
  ["services.petstore.tools['a b\\n😀'].invoke", "petstore", "a b\n😀"],
];

export function toolsContract(current: Current): void {
  describe("tool calls", () => {
    it.each(addressed)("%s reaches its tool", async (code, serviceId, toolId) => {
      const result = await runProgram(current(), `return ${code}({a: [1, 'é']})`, { tool: echo });
      expect(result.output).toEqual({ serviceId, toolId, parameters: { a: [1, "é"] } });
    });

    it("a call without an argument has no parameters", async () => {
      const result = await runProgram(current(), "return services.a.b()", { tool: echo });
      expect([result.output.parameters, result.calls[0]?.parameters]).toEqual(["none", undefined]);
    });

    it.each([
      ["null", null],
      ["text", "x\0y\u2028"],
      ["a number", -1.5e300],
      ["nothing", undefined],
      ["an object with odd keys", JSON.parse('{"__proto__": 1, "": 2, "then": 3}')],
      ["1 MB", "x".repeat(1_000_000)],
    ])("an answer of %s arrives as it is", async (_title, value) => {
      const code = "const v = await services.a.b(); console.log(v === undefined ? 'undefined' : JSON.stringify(v))";
      const result = await runProgram(current(), code, {
        tool: () => ({ ok: true, value }),
        limits: { outputBytes: 2_000_000 },
      });
      expect(result.stdout).toBe(`${value === undefined ? "undefined" : JSON.stringify(value)}\n`);
    });

    it("a failed call is a thrown Error with code and status", async () => {
      const code =
        "try { await services.a.b() } catch (e) { return [e instanceof Error, e.message, e.code, e.status] }";
      const tool = (): ToolAnswer => ({ ok: false, message: 'No "x"', code: "not_found", status: 404 });
      const result = await runProgram(current(), code, { tool });
      expect(result.output).toEqual({ result: [true, 'No "x"', "not_found", 404] });
      const uncaught = await runProgram(current(), "await services.a.b()", { tool });
      expect([ending(uncaught), errorOf(uncaught)]).toEqual(["thrown", 'No "x"']);
    });

    it("calls run concurrently and may be answered in any order", async () => {
      const waiting: (() => void)[] = [];
      const tool = (call: ToolCall, handle: RunHandle): undefined => {
        waiting.push(() => handle.answer(call.callId, { ok: true, value: call.toolId }));
        if (waiting.length === 3) for (const answer of waiting.reverse()) answer();
      };
      const result = await runProgram(
        current(),
        "return Promise.all([services.s.a(), services.s.b(), services.s.c()])",
        { tool },
      );
      expect(result.output).toEqual({ result: ["a", "b", "c"] });
    });

    it("more calls than may be in flight are rejected with a code, the others go through", async () => {
      const waiting: (() => void)[] = [];
      const tool = (call: ToolCall, handle: RunHandle): undefined => {
        waiting.push(() => handle.answer(call.callId, { ok: true, value: 1 }));
        if (waiting.length === toolCallsInFlightMax) setTimeout(() => waiting.forEach((answer) => void answer()), 20);
      };
      const code = `const all = await Promise.allSettled(Array.from({length: 100000}, () => services.s.t()));
        const codes = new Set(all.filter(r => r.status === 'rejected').map(r => r.reason.code));
        return [all.filter(r => r.status === 'fulfilled').length, [...codes]]`;
      const result = await runProgram(current(), code, { tool, limits: { memoryMb: 128 } });
      expect(result.output).toEqual({ result: [toolCallsInFlightMax, [expect.any(String)]] });
      expect(result.calls.length).toBe(toolCallsInFlightMax);
    });

    it("services and a service are no promises and take no change", async () => {
      const code = `const s = await services; const p = await s.petstore;
        try { services.x = 1 } catch {} try { s.petstore.y = 1 } catch {}
        return [s === services, p === services.petstore, typeof services.then, typeof p.then, typeof p.then === 'function', JSON.stringify(services), JSON.stringify(p)]`;
      const result = await runProgram(current(), code, { tool: echo });
      expect(result.output).toEqual({ result: [true, true, "undefined", "undefined", false, "{}", "{}"] });
      expect(result.calls).toEqual([]);
    });

    it.each([
      ["a cycle", "const o = {}; o.o = o; await services.a.b(o)"],
      ["BigInt", "await services.a.b({a: 1n})"],
      ["30 MB", "await services.a.b({a: 'x'.repeat(3e7)})"],
      ["nesting without end", "let o = {}; for (let i = 0; i < 3000; i++) o = {o}; await services.a.b(o)"],
    ])("parameters with %s are refused in the program", async (_title, code) => {
      const result = await runProgram(current(), code, { tool: echo, limits: { memoryMb: 128 } });
      expect([ending(result), result.calls.length]).toEqual(["thrown", 0]);
    });

    it("an answer nobody waits for is nothing", async () => {
      const tool = (call: ToolCall, handle: RunHandle): ToolAnswer => {
        handle.answer(call.callId + 1000, { ok: true, value: "wrong" });
        handle.answer(call.callId, { ok: true, value: "right" });
        return { ok: true, value: "again" };
      };
      expect((await runProgram(current(), "return services.a.b()", { tool })).output).toEqual({ result: "right" });
    });

    it("a run may end with calls in flight, and late answers do no harm", async () => {
      let late: (() => void) | undefined;
      const tool = (call: ToolCall, handle: RunHandle): undefined => {
        late = () => handle.answer(call.callId, { ok: true, value: 1 });
      };
      const result = await runProgram(current(), "services.a.b(); return 1", { tool });
      late?.();
      expect(ending(result)).toBe("success");
      expect(ending(await runProgram(current(), "return 2"))).toBe("success");
    });

    it("1,000 calls one after another all come back", async () => {
      const code = "let n = 0; for (let i = 0; i < 1000; i++) n += (await services.a.b({i})).parameters.i; return n";
      expect((await runProgram(current(), code, { tool: echo })).output).toEqual({ result: 499_500 });
    });
  });
}
