/** What must stay out of a program's reach (R-076, R-080), and what must not pass from one run to the next. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Executor } from "../../../src/ports/executor.ts";
import type { Current, Open } from "../contract.ts";
import { ending, runProgram } from "../program.ts";

const canary = "canary-5f1d3c";

/** Ways out of other sandboxes: to a function of the host, from there to its process, files and network. */
const routes = [
  "this.constructor.constructor",
  "console.log.constructor",
  "output.constructor",
  "setTimeout.constructor",
  "services.a.b.constructor",
  "(async () => {}).constructor",
  "(function* () {}).constructor",
  "Object.getPrototypeOf(globalThis).constructor.constructor",
  "(() => { try { null.x } catch (e) { return e.constructor.constructor } })()",
  "(() => { try { output(1) } catch (e) { return e.constructor.constructor } })()",
  "await services.a.b().catch(e => e.constructor.constructor)",
  "(await services.a.c()).constructor.constructor",
  "new Proxy(Function, {})",
  "Reflect.construct(Function, ['return Function'])()",
  "(() => { Error.prepareStackTrace = (e, frames) => frames; const f = new Error().stack; return f?.[0]?.getFunction?.()?.constructor ?? Function })()",
  "(() => { const e = new Error(); e.name = {toString: new Proxy(() => '', {apply(t, self, a) { return a.constructor.constructor }})}; return Function })()",
];

const attempts = (address: string, file: string): string => `
  const got = [];
  const tries = [
    F => F('return process')().env,
    F => F('return process')().mainModule.require('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8'),
    F => F('return process')().getBuiltinModule('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8'),
    F => F('return process')().binding('fs'),
    F => F('return require')()('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8'),
    F => F('return this')().process,
    F => F('return import("node:fs")')(),
    F => F('return fetch')()(${JSON.stringify(address)}),
    F => F('return XMLHttpRequest')(),
    F => F('return WebAssembly')(),
    F => F('return globalThis.host')(),
    F => F('return arguments.callee.caller.caller')().constructor('return process')(),
  ];
  for (const attempt of tries) {
    try { const value = await attempt(F); if (typeof value === 'string') got.push(value); else if (Object.keys(value ?? {}).length > 0) got.push(Object.keys(value)) } catch {}
  }
  return {got, prototype: Object.getOwnPropertyNames(Object.prototype).length};
`;

export function isolationContract(current: Current, open: Open): void {
  describe("isolation", () => {
    let folder: string;
    let server: Server;
    let hits = 0;
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "executor-"));
      writeFileSync(join(folder, "canary"), canary);
      process.env.EXECUTOR_CANARY = canary;
      server = createServer((_request, response) => {
        hits += 1;
        response.end(canary);
      });
      server.on("connection", () => {
        hits += 1;
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    });
    afterAll(async () => {
      rmSync(folder, { recursive: true });
      delete process.env.EXECUTOR_CANARY;
      await new Promise((resolve) => server.close(resolve));
    });

    it.each(routes)("%s leads nowhere", async (route) => {
      const { port } = server.address() as AddressInfo;
      const code = `const F = ${route};\n${attempts(`http://127.0.0.1:${port}/`, join(folder, "canary"))}`;
      const result = await runProgram(current(), code, {
        tool: ({ toolId }) =>
          toolId === "c" ? { ok: true, value: {} } : { ok: false, message: "no", code: "x", status: 500 },
      });
      expect(["success", "thrown"]).toContain(ending(result));
      expect(result.output.got ?? []).toEqual([]);
      expect(JSON.stringify(result)).not.toContain(canary);
      expect(hits).toBe(0);
    });

    it("the host's prototypes are as before", async () => {
      const before = [Object, Array, Function, Promise, String, Error].map(({ prototype }) =>
        Object.getOwnPropertyNames(prototype).join(),
      );
      await runProgram(
        current(),
        "for (const K of [Object, Array, Function, Promise, String, Error]) K.prototype.stained = 1",
      );
      const after = [Object, Array, Function, Promise, String, Error].map(({ prototype }) =>
        Object.getOwnPropertyNames(prototype).join(),
      );
      expect(after).toEqual(before);
    });

    it("errors of the sandbox name no file of the server", async () => {
      const code =
        "const seen = []; for (const f of [() => output(1), () => setTimeout(1), () => new URL('x'), () => services.a.b(1n)]) { try { await f() } catch (e) { seen.push(String(e.stack)) } } return {seen}";
      const result = await runProgram(current(), code);
      expect(ending(result)).toBe("success");
      expect(JSON.stringify(result.output)).not.toMatch(/node_modules|file:|\/src\/|node:internal/);
    });

    describe("from one run to the next in the same place", () => {
      let single: Executor;
      beforeAll(async () => {
        single = await open({ memoryMbMax: 64, concurrency: 1 });
      });
      afterAll(() => single.close());

      it("globals, prototypes, timers and output do not pass", async () => {
        const stain = `globalThis.stain = 1; Object.prototype.stain = 1; Promise.prototype.stain = 1; console.log = null; Math.max = null;
          setInterval(() => console.log('late'), 1); services.a.b(); output({stain: 1}); new Promise((_, no) => setTimeout(no, 1)); return 1`;
        await runProgram(single, stain, { env: { secret: canary } });
        await runProgram(single, "globalThis.stain = 2; for (;;) {}", { stopAfterMs: 50 });
        const code =
          "await new Promise(r => setTimeout(r, 30)); console.log('clean'); return [typeof stain, {}.stain, Promise.prototype.stain, Math.max(1, 2), env.secret]";
        const result = await runProgram(single, code);
        expect([result.output, result.stdout, result.calls]).toEqual([
          { result: ["undefined", null, null, 2, null] },
          "clean\n",
          [],
        ]);
      });

      it("memory is handed out empty", async () => {
        for (let round = 0; round < 3; round += 1) {
          await runProgram(
            single,
            "globalThis.a = []; for (let i = 0; i < 9; i++) a.push(new Uint8Array(1e6).fill(167)); return 1",
          );
          const code =
            "let dirty = 0; for (let i = 0; i < 9; i++) { const a = new Uint8Array(1e6); if (a.indexOf(167) >= 0) dirty++ } return dirty";
          expect((await runProgram(single, code)).output).toEqual({ result: 0 });
        }
      });

      it("250 runs one after another, more than one child serves, all succeed", async () => {
        for (let run = 0; run < 250; run += 1) {
          expect((await runProgram(single, "return env.run", { env: { run } })).output).toEqual({ result: run });
        }
      });
    });
  });
}
