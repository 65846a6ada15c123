/** The peer of rest.bench.ts: fastify with one route and nothing else. The snapshot it answers with is in BENCH_SNAPSHOT. */
import fastify from "fastify";

const snapshot: unknown = JSON.parse(process.env.BENCH_SNAPSHOT ?? "{}");
const app = fastify();
app.get("/processes/:id", async () => snapshot);
const http = await app.listen({ host: "127.0.0.1", port: 0 });
console.log(JSON.stringify({ event: "listening", http }));
