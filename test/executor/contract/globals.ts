/** Every global a program has, and those it must not have. */
import { describe, expect, it } from "vitest";
import type { Current } from "../contract.ts";
import { ending, runProgram } from "../program.ts";

/** Title, code, and what `return` must give. */
const cases: readonly (readonly [title: string, code: string, expected: unknown])[] = [
  ["top-level await works", "return await Promise.resolve(5)", 5],
  ["env holds the configuration", "return env.deep.list[1]", "b"],
  ["env is frozen at every depth", "try { env.deep.list.push(1) } catch (e) { return e instanceof TypeError }", true],
  ["setTimeout passes its arguments", "return await new Promise(r => setTimeout(r, 1, 'late'))", "late"],
  [
    "timers fire in order of time, then of setting",
    "const seen=[]; setTimeout(()=>seen.push(1),1); setTimeout(()=>seen.push(2),1); setTimeout(()=>seen.push(3),30); await new Promise(r=>setTimeout(r,60)); return seen",
    [1, 2, 3],
  ],
  [
    "clearTimeout keeps a timer from firing",
    "let fired=false; clearTimeout(setTimeout(()=>{fired=true},1)); await new Promise(r=>setTimeout(r,20)); return fired",
    false,
  ],
  [
    "setInterval repeats until cleared",
    "let n=0; await new Promise(r=>{ const id=setInterval(()=>{ if(++n===3){ clearInterval(id); r() } },1) }); await new Promise(r=>setTimeout(r,15)); return n",
    3,
  ],
  ["clearing an unknown timer is nothing", "clearTimeout(99); clearInterval(undefined); clearTimeout({}); return 1", 1],
  [
    "a delay beyond the timer range does not fire at once",
    "let fired=false; const id=setTimeout(()=>{fired=true}, 1e12); await new Promise(r=>setTimeout(r,20)); clearTimeout(id); return fired",
    false,
  ],
  [
    "queueMicrotask runs before a timer",
    "const s=[]; setTimeout(()=>s.push(2),0); queueMicrotask(()=>s.push(1)); await new Promise(r=>setTimeout(r,10)); return s",
    [1, 2],
  ],
  ["TextEncoder gives UTF-8", "return [...new TextEncoder().encode('é𝒳')]", [0xc3, 0xa9, 0xf0, 0x9d, 0x92, 0xb3]],
  ["TextEncoder replaces a lone surrogate", "return [...new TextEncoder().encode('\\ud800')]", [0xef, 0xbf, 0xbd]],
  ["TextDecoder reads UTF-8", "return new TextDecoder().decode(new Uint8Array([0xf0,0x9d,0x92,0xb3]))", "𝒳"],
  [
    "TextDecoder keeps a character that comes in pieces",
    "const d=new TextDecoder(); let s=''; for (const b of [0xf0,0x9f,0x98,0x80]) s+=d.decode(new Uint8Array([b]),{stream:true}); return s + d.decode()",
    "😀",
  ],
  [
    "TextDecoder flushes half a character as one replacement",
    "return new TextDecoder().decode(new Uint8Array([0x61,0xf0,0x9f]))",
    "a\ufffd",
  ],
  [
    "TextDecoder follows the standard on broken input",
    "return new TextDecoder().decode(new Uint8Array([0xc0,0x80,0xe0,0x9f,0xed,0xa0,0x80,0x41]))",
    "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA",
  ],
  [
    "a fatal TextDecoder throws",
    "try { new TextDecoder('utf-8',{fatal:true}).decode(new Uint8Array([255])) } catch (e) { return e instanceof TypeError }",
    true,
  ],
  [
    "TextDecoder drops a byte order mark",
    "return new TextDecoder().decode(new Uint8Array([0xef,0xbb,0xbf,0x41]))",
    "A",
  ],
  [
    "URL takes an address apart",
    "const u=new URL('/p?q=1#h','https://a:b@x.test:8443/z'); return [u.href,u.origin,u.username,u.port,u.pathname,u.hash]",
    ["https://a:b@x.test:8443/p?q=1#h", "https://x.test:8443", "a", "8443", "/p", "#h"],
  ],
  [
    "URL parts can be set",
    "const u=new URL('http://x.test/'); u.pathname='/a b'; u.searchParams.append('k','v&'); u.hash='z'; return String(u)",
    "http://x.test/a%20b?k=v%26#z",
  ],
  [
    "setting the search of a URL changes its searchParams",
    "const u=new URL('http://x.test/?a=1'); const p=u.searchParams; u.search='?b=2'; return [...p]",
    [["b", "2"]],
  ],
  [
    "URL refuses what is no address",
    "try { new URL('nope') } catch (e) { return [e instanceof TypeError, URL.canParse('nope')] }",
    [true, false],
  ],
  ["a URL is its href as JSON", "return {u: new URL('http://x.test')}", undefined],
  [
    "URLSearchParams reads and writes forms",
    "const p=new URLSearchParams('a=1&b=%20+&a=2'); p.set('c','é'); p.delete('b'); return [p.getAll('a'), p.get('none'), p.has('c'), String(p), p.size]",
    [["1", "2"], null, true, "a=1&a=2&c=%C3%A9", 3],
  ],
  [
    "URLSearchParams takes objects and pairs",
    "return [String(new URLSearchParams({a:1})), String(new URLSearchParams([['b','2']]))]",
    ["a=1", "b=2"],
  ],
  ["btoa and atob are inverse", "return [btoa('h\\xe9!'), atob('aOkh'), atob(' YQ = =')]", ["aOkh", "h\xe9!", "a"]],
  ["atob refuses what is no base64", "try { atob('*') } catch (e) { return e.name }", "InvalidCharacterError"],
  ["btoa refuses characters above one byte", "try { btoa('€') } catch (e) { return e.name }", "InvalidCharacterError"],
  [
    "structuredClone copies values and cycles",
    "const o={d:new Date(0),m:new Map([[1,{a:1}]]),s:new Set([2]),r:/x/gi,b:new Uint8Array([1,2])}; o.self=o; const c=structuredClone(o); return [c!==o, c.self===c, c.d.getTime(), c.m.get(1).a, c.s.has(2), String(c.r), [...c.b]]",
    [true, true, 0, 1, true, "/x/gi", [1, 2]],
  ],
  [
    "structuredClone refuses functions",
    "try { structuredClone({f(){}}) } catch (e) { return e.name }",
    "DataCloneError",
  ],
  [
    "crypto.randomUUID gives version 4",
    "return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
    true,
  ],
  [
    "crypto.getRandomValues fills the array it is given",
    "const a=new Uint32Array(8); return [crypto.getRandomValues(a)===a, a.some(n=>n>0)]",
    [true, true],
  ],
  [
    "crypto.getRandomValues refuses more than 65536 bytes",
    "try { crypto.getRandomValues(new Uint8Array(65537)) } catch (e) { return e instanceof Error }",
    true,
  ],
  [
    "AbortController aborts once, with its reason",
    "const c=new AbortController(); const seen=[]; c.signal.addEventListener('abort',e=>seen.push(e.type)); c.abort('why'); c.abort('again'); return [c.signal.aborted,c.signal.reason,seen]",
    [true, "why", ["abort"]],
  ],
  [
    "AbortSignal.timeout aborts after its time",
    "const s=AbortSignal.timeout(5); await new Promise(r=>s.addEventListener('abort',r)); return s.reason.name",
    "TimeoutError",
  ],
  [
    "AbortSignal.any follows the first",
    "const c=new AbortController(); const s=AbortSignal.any([c.signal,new AbortController().signal]); c.abort(1); return [s.aborted,s.reason]",
    [true, 1],
  ],
  [
    "performance.now grows",
    "const a=performance.now(); await new Promise(r=>setTimeout(r,5)); return performance.now()>a",
    true,
  ],
  ["eval and Function stay inside", "return [eval('1+1'), new Function('return 3')()]", [2, 3]],
  [
    "nothing of a host is there",
    "return ['process','require','module','exports','fetch','XMLHttpRequest','WebSocket','Buffer','Deno','Bun','std','os','print','scriptArgs','__dirname','host'].filter(n => n in globalThis)",
    [],
  ],
  [
    "import() has nothing to load",
    "const r=[]; for (const n of ['node:fs','fs','./x.js','data:text/javascript,1','/etc/passwd']) { try { await import(n); r.push(n) } catch {} } return r",
    [],
  ],
  [
    "TypeScript is stripped",
    "interface A { b: string }\nconst f = <T,>(x: T): T => x;\nreturn f<A>({ b: 'c' } as A)",
    undefined,
  ],
  ["a call with type arguments is a call", "function id<T>(x: T) { return x }\nreturn id<number>(7)", 7],
  [
    "enums and parameter properties work",
    "enum E { A = 3 }\nclass P { constructor(readonly x: number) {} }\nreturn [E.A, new P(4).x]",
    [3, 4],
  ],
  ["type arguments that are comparisons in JavaScript still run", "const a = 1, b = 2, c = 3; return a < b, c", 3],
];

export function globalsContract(current: Current): void {
  describe("globals", () => {
    it.each(cases)("%s", async (_title, code, expected) => {
      const result = await runProgram(current(), code, { env: { deep: { list: ["a", "b"] } } });
      expect([ending(result), result.end]).toEqual(["success", expect.anything()]);
      if (expected !== undefined) expect(result.output).toEqual({ result: expected });
    });

    it("console sends each line to its stream, texts as they are and the rest as JSON", async () => {
      const code = `console.log("a", {b: [1]}, null, undefined, 2); console.info("i"); console.debug("d"); console.warn("w"); console.error("e", 5n);
        const o = {}; o.o = o; console.log(o); console.log({ get x() { throw 1 } }); console.log(Symbol("s"), function f() {});`;
      const result = await runProgram(current(), code);
      expect(ending(result)).toBe("success");
      expect(result.stdout).toMatch(/^a \{\n {2}"b": \[\n {4}1\n {2}\]\n\} null undefined 2\ni\nd\n/);
      expect(result.stdout).toContain("Symbol(s) [Function: f]\n");
      expect(result.stdout.split("\n").length).toBe(10 + 1);
      expect(result.stderr).toBe("w\ne 5n\n");
    });

    it("Math.random repeats with the seed and differs without", async () => {
      const code = "return [Math.random(), Math.random()]";
      const [first, again, other] = await Promise.all([7, 7, 8].map((seed) => runProgram(current(), code, { seed })));
      expect(first?.output).toEqual(again?.output);
      expect(first?.output).not.toEqual(other?.output);
    });
  });
}
