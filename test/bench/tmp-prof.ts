import { Pool } from "undici";
import { cpuMs } from "/work/main/test/bench/cpu-time.ts";
import { startTroupe } from "/work/main/test/bench/server-process.ts";
import { readFileSync } from "node:fs";
const s = await startTroupe(["--cpu-prof", "--cpu-prof-interval", "250", `--cpu-prof-dir=/tmp/bp/proc`]);
const pool = new Pool(s.http, { connections: 8 });
const own = () => { const t = readFileSync(`/proc/${s.pid}/stat`, "utf8"); const f = t.slice(t.lastIndexOf(")") + 2).split(" "); return (Number(f[11]) + Number(f[12])) * 10; };
const ctx = () => { const t = readFileSync(`/proc/${s.pid}/status`, "utf8"); return Number(/\nvoluntary_ctxt_switches:\s+(\d+)/.exec(t)![1]); };
async function one() { const a = await pool.request({ method: "POST", path: "/processes", headers: { "content-type": "application/json" }, body: '{"code":"return 1"}' }); const { id } = await a.body.json() as any; const b = await pool.request({ method: "GET", path: `/processes/${id}/output?wait=30` }); await b.body.text(); }
for (let step = 0; step < 4; step++) { const o = own(), all = cpuMs(s.pid), t = performance.now(); await Promise.all(Array.from({ length: 8 }, async () => { for (let i = 0; i < 100; i++) await one(); })); console.log("server itself", (own() - o) / 800, "with children", (cpuMs(s.pid) - all) / 800, "wall", (performance.now() - t) / 800); }
await pool.close(); await s.stop();
