/** GET /metrics of a real server: what is counted, who may read it, and that nothing callers make up becomes a series. */
import { request } from "node:http";
import { afterAll, describe, expect, it } from "vitest";
import { openRecordingServer } from "../adapters/recording-server.ts";
import { type Exposition, readExposition } from "../observability/exposition.ts";
import { installShop } from "../observability/shop.ts";
import { type Server, type ServerOptions, startServer } from "./server.ts";

const servers: Server[] = [];
const target = await openRecordingServer();
afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await target.close();
});

async function start(settings: ServerOptions["settings"] = {}): Promise<Server> {
  const server = await startServer({ settings });
  servers.push(server);
  return server;
}

async function scrape(server: Server): Promise<Exposition> {
  const { status, text } = await server.get("/metrics");
  expect(status).toBe(200);
  return readExposition(text);
}

const own = ({ values }: Exposition): string[] => [...values.keys()].filter((series) => series.startsWith("troupe_"));

async function rpc(server: Server, name: string, message: unknown): Promise<number> {
  const response = await fetch(`http://${server.grpc}/troupe.v1.${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(message),
  });
  await response.arrayBuffer();
  return response.status;
}

describe("the metrics", () => {
  it("count requests, refusals, runs, tool calls, outbound requests, turns and commits of both faces", async () => {
    const server = await start();
    await installShop(server, target.origin, { secret: "key" });
    await server.run('return { pet: await services.shop.getPet({ path: { petId: "1" } }) }');
    await server.run('throw new Error("on purpose")');
    expect((await server.get("/processes/999")).status).toBe(404);
    expect((await server.call("DELETE", "/nowhere/1")).status).toBe(404);
    expect((await server.post("/tools/shop/getPet/invoke", { parameters: {} })).status).toBe(400);
    expect((await server.post("/tools/nobody/nothing/invoke", { parameters: {} })).status).toBe(404);
    expect(await rpc(server, "ProcessService/GetProcess", { id: "1" })).toBe(200);
    expect(await rpc(server, "ProcessService/GetProcess", { id: "999" })).toBe(404);
    expect(await rpc(server, "ProcessService/NoSuchRpc", {})).toBe(404);

    const seen = await scrape(server);
    const sums = (name: string, labels: Record<string, string> = {}) => seen.sum(`troupe_${name}`, labels);
    expect(sums("http_requests_total", { method: "POST", route: "/processes", status: "200" })).toBe(2);
    expect(sums("http_requests_total", { method: "GET", route: "/processes/{id}", status: "404" })).toBe(1);
    expect(sums("http_requests_total", { method: "DELETE", route: "unmatched", status: "404" })).toBe(1);
    expect(sums("http_request_duration_seconds_count", { method: "POST", route: "/processes" })).toBe(2);
    expect(sums("rpc_requests_total", { rpc: "troupe.v1.ProcessService/GetProcess", code: "OK" })).toBe(1);
    expect(sums("rpc_requests_total", { rpc: "troupe.v1.ProcessService/GetProcess", code: "NOT_FOUND" })).toBe(1);
    expect(sums("rpc_requests_total", { rpc: "unmatched", code: "UNIMPLEMENTED" })).toBe(1);
    expect(sums("refusals_total", { face: "rest", kind: "not_found" })).toBe(3);
    expect(sums("refusals_total", { face: "rpc", kind: "not_found" })).toBe(1);
    expect(sums("runs_ended_total", { exit_state: "success", reason: "none" })).toBe(1);
    expect(sums("runs_ended_total", { exit_state: "failed", reason: "thrown" })).toBe(1);
    expect(sums("run_duration_seconds_count")).toBe(2);
    expect(sums("run_queue_wait_seconds_count")).toBe(2);
    expect(sums("processes")).toBe(0);
    expect(sums("tool_calls_total", { adapter: "openapi", outcome: "ok" })).toBe(1);
    expect(sums("tool_calls_total", { adapter: "openapi", outcome: "invalid_request" })).toBe(1);
    expect(sums("tool_calls_total", { adapter: "none", outcome: "not_found" })).toBe(1);
    expect(sums("outbound_requests_total", { purpose: "tool", outcome: "2xx" })).toBe(1);
    expect(sums("actors_resident", { kind: "process" })).toBe(2);
    expect(sums("actor_turns_total", { kind: "process" })).toBeGreaterThanOrEqual(6);
    expect(sums("actors_parked")).toBe(0);
    expect(sums("store_commits_total")).toBeGreaterThanOrEqual(8);
    expect(sums("store_batch_commits_sum")).toBe(sums("store_commits_total"));
    expect(sums("store_sync_duration_seconds_count")).toBe(sums("store_batch_commits_count"));
    expect(sums("log_records_total", { level: "info" })).toBeGreaterThan(0);
    expect(sums("build_info")).toBe(1);
    for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total", "nodejs_eventloop_lag_seconds"]) {
      expect(seen.values.has(name), name).toBe(true);
    }
    expect(await server.get("/metrics").then(({ headers }) => headers.get("content-type"))).toBe(
      "text/plain; version=0.0.4; charset=utf-8",
    );
  });

  it("have names and units as Prometheus wants them, and none of the labels that grow", async () => {
    const { types, values } = await scrape(await start());
    const names = [...types].filter(([name]) => name.startsWith("troupe_"));
    expect(names.length).toBeGreaterThan(25);
    for (const [name, type] of names) {
      if (type === "counter") expect(name).toMatch(/_total$/);
      else expect(name).not.toMatch(/_total$/);
      if (name.includes("duration") || name.includes("wait")) expect(name).toMatch(/_seconds$/);
    }
    const labels = new Set(
      [...values.keys()].flatMap((series) => [...series.matchAll(/(\w+)="/g)].map(([, label]) => label)),
    );
    for (const label of ["id", "service", "tool", "module", "path", "caller", "key", "host"]) {
      expect(labels.has(label), label).toBe(false);
    }
  });

  it("gain no series by 1,500 different ids, tools and unknown paths", async () => {
    const server = await start();
    const ways: readonly ((n: number | string) => Promise<unknown>)[] = [
      (n) => server.get(`/processes/${n}`),
      (n) => server.get(`/nowhere-${n}/x${n}?q=${n}`),
      (n) => server.post(`/tools/service${n}/tool${n}/invoke`, { parameters: {} }),
      (n) => server.get(`/services/service${n}`),
      (n) => server.call("PATCH", `/modules/module${n}/config`, []),
      (n) => rpc(server, "ProcessService/GetProcess", { id: String(n) }),
      (n) => rpc(server, `Service${n}/Method${n}`, {}),
      (n) => server.call(["OPTIONS", "PUT", "PATCH", "DELETE"][Number(n) % 4] as string, `/elsewhere/${n}`),
    ];
    for (const way of ways) for (let n = 0; n < 4; n += 1) await way(1_000_000 + n);
    await scrape(server); // the scrape itself is a request as well
    const before = own(await scrape(server));
    const total = 1_500;
    for (let from = 0; from < total; from += 40) {
      await Promise.all(
        Array.from({ length: 40 }, (_, place) => ways[place % ways.length]?.(2_000_000 + from + place)),
      );
    }
    const after = await scrape(server);
    expect(own(after)).toEqual(before);
    expect(after.sum("troupe_http_requests_total")).toBeGreaterThanOrEqual((total * 6) / 8);
  }, 60_000);
});

describe("GET /metrics", () => {
  it("asks for no key on this machine, and for an operator's key as soon as the request came by way of a proxy", async () => {
    const server = await start({ SERVICE_API_KEYS: "boss:operator:kb,robot:agent:kr" });
    const get = async (headers: Record<string, string>): Promise<number> =>
      (await server.call("GET", "/metrics", undefined, headers)).status;
    expect(await get({})).toBe(200);
    expect((await server.get("/processes")).status).toBe(401);
    for (const proxy of ["x-forwarded-for", "forwarded", "via", "x-real-ip"]) {
      expect(await get({ [proxy]: "192.0.2.1" }), proxy).toBe(401);
    }
    const proxied = { "x-forwarded-for": "192.0.2.1" };
    expect(await get({ ...proxied, authorization: "Bearer wrong" })).toBe(401);
    expect(await get({ ...proxied, authorization: "Bearer kr" })).toBe(403);
    expect(await get({ ...proxied, authorization: "Bearer kb" })).toBe(200);
  });

  it("is never limited, answers HEAD, and refuses other methods and foreign Hosts", async () => {
    const server = await start({ SERVICE_RATE_LIMITS: "*=2/60s" });
    for (let n = 0; n < 10; n += 1) {
      const { status, headers } = await server.get("/metrics");
      expect([status, headers.get("x-ratelimit-limit")]).toEqual([200, null]);
    }
    const head = await server.call("HEAD", "/metrics");
    expect([head.status, head.text, head.headers.get("content-type")]).toEqual([
      200,
      "",
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    const post = await server.post("/metrics");
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    const status = await new Promise((resolve, reject) => {
      request(`${server.http}/metrics`, { headers: { host: "evil.example" } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
  });
});
