import { z } from "zod";
import { System } from "../../src/runtime/system.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { openMemoryStore } from "../store/memory-store.ts";
const log = { debug() {}, info() {}, warn() {}, error() {} };
const kind = { name: "counter", version: 1, schema: z.object({ count: z.number() }),
  decide: (state: any, message: any) => message.type === "create" || state === null ? { state: { count: 0 } } : { state, reply: state.count },
  index: () => [], owed: () => [], perform: async () => undefined };
const store = await openMemoryStore({ clock: systemClock, log });
const system = new System({ store, clock: systemClock, log });
system.register(kind as any, undefined);
const addresses = Array.from({ length: 256 }, (_, key) => ({ kind: "counter", key: String(key) }));
await Promise.all(addresses.map((a) => system.ask(a, { type: "create" })));
const read = { type: "read" };
const n = Number(process.argv[2]);
await Promise.all(addresses.map(async (a) => { for (let i = 0; i < n; i++) await system.ask(a, read); }));
const before = process.cpuUsage(); 
await Promise.all(addresses.map(async (a) => { for (let i = 0; i < n; i++) await system.ask(a, read); }));
const u = process.cpuUsage(before); console.log("ns/ask", (u.user + u.system) * 1000 / (n * 256));
await system.stop(0);
