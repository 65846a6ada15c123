/** The peer of create.bench.ts: fastify with one route that puts what it was sent into LevelDB, synced, and answers with a number. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fastify from "fastify";
import { Level } from "level";

const folder = await mkdtemp(join(tmpdir(), "troupe-bench-"));
const level = new Level<string, string>(folder);
await level.open();
const app = fastify();
let id = 0;
app.post("/processes", async (request) => {
  id += 1;
  await level.put(`process/${id}`, JSON.stringify(request.body), { sync: true });
  return { id };
});
const http = await app.listen({ host: "127.0.0.1", port: 0 });
console.log(JSON.stringify({ event: "listening", http }));
process.once("SIGTERM", async () => {
  await app.close();
  await level.close();
  await rm(folder, { recursive: true });
});
