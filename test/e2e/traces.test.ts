/**
 * Traces of a real server, received by an OTLP receiver of the test: one request is one trace down to the target's own headers, nothing
 * secret is in it, and neither the lack of a collector nor a dead one is noticed by anybody.
 */

import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { openRecordingServer } from "../adapters/recording-server.ts";
import { openCollector, type ReceivedSpan } from "../observability/collector.ts";
import { installShop } from "../observability/shop.ts";
import { type Server, type ServerOptions, startRefused, startServer } from "./server.ts";

const servers: Server[] = [];
const target = await openRecordingServer();
const collector = await openCollector();
const dead = await openSilentServer();
afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await Promise.all([target.close(), collector.close(), dead.close()]);
});

async function start(settings: ServerOptions["settings"] = {}): Promise<Server> {
  const server = await startServer({ settings });
  servers.push(server);
  return server;
}

const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_BSP_SCHEDULE_DELAY: "50" };
let ids = 0;
/** A trace of a caller: what it makes of it is found by its id, whatever else the server does. */
function callersTrace(): { traceId: string; spanId: string; traceparent: string } {
  ids += 1;
  const traceId = `abcdef${String(ids).padStart(26, "0")}`;
  const spanId = `beef${String(ids).padStart(12, "0")}`;
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

const inTrace = (traceId: string): readonly ReceivedSpan[] =>
  collector.spans().filter((span) => span.traceId === traceId);

const call = (code: string) => ({ code });
const askPet = 'return { pet: await services.shop.getPet({ path: { petId: "7" } }) }';

describe("a request that has a program call a tool", () => {
  it("is one trace: request, turns, run, tool call and outbound request, each under the one that had it done", async () => {
    const server = await start({
      ...traced,
      OTEL_SERVICE_NAME: "troupe-under-test",
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=blue",
    });
    await installShop(server, target.origin, { secret: "canary-query-key" });
    const { traceId, spanId, traceparent } = callersTrace();
    const created = await server.call("POST", "/processes", call(`const note = "canary-in-code"; ${askPet}`), {
      traceparent,
      "x-request-id": "the-request",
      baggage: "user=canary-baggage",
    });
    expect(created.status).toBe(200);
    await server.get(`/processes/${created.body.id}?wait=30`);
    const ended = await collector.waitFor(
      (span) => span.traceId === traceId && span.attributes["troupe.message.type"] === "ended",
    );
    await collector.waitFor((span) => span.traceId === traceId && span.name === "POST /processes");

    const spans = inTrace(traceId);
    const one = (name: string, more: (span: ReceivedSpan) => boolean = () => true): ReceivedSpan => {
      const found = spans.filter((span) => span.name === name && more(span));
      expect(found.length, name).toBe(1);
      return found[0] as ReceivedSpan;
    };
    const turn = (type: string) => one("turn process", ({ attributes }) => attributes["troupe.message.type"] === type);
    const request = one("POST /processes");
    const run = one("run");
    const toolCall = one("tool call");
    const outbound = one("GET");
    expect([request.kind, run.kind, toolCall.kind, outbound.kind]).toEqual([2, 1, 1, 3]);
    expect(request.parentSpanId).toBe(spanId);
    expect(turn("create").parentSpanId).toBe(request.spanId);
    expect(run.parentSpanId).toBe(turn("create").spanId);
    expect(turn("admitted").parentSpanId).toBe(turn("create").spanId);
    expect(toolCall.parentSpanId).toBe(run.spanId);
    expect(outbound.parentSpanId).toBe(toolCall.spanId);
    expect(ended.parentSpanId).toBe(run.spanId);
    expect(spans.length).toBe(7);
    expect(spans.some(({ isError }) => isError)).toBe(false);

    expect(request.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/processes",
      "http.response.status_code": 200,
      "troupe.request.id": "the-request",
    });
    expect(run.attributes).toMatchObject({ "troupe.process.id": created.body.id, "troupe.run.exit_state": "success" });
    expect(toolCall.attributes).toEqual({
      "troupe.service.id": "shop",
      "troupe.tool.id": "getPet",
      "troupe.adapter.id": "openapi",
    });
    const { port } = new URL(target.origin);
    expect(outbound.attributes).toEqual({
      "http.request.method": "GET",
      "server.address": "127.0.0.1",
      "server.port": Number(port),
      "url.scheme": "http",
      "http.response.status_code": 200,
      "troupe.outbound.purpose": "tool",
    });

    const { headers, query } = target.last();
    expect(headers.traceparent).toBe(`00-${traceId}-${outbound.spanId}-01`);
    expect([headers.tracestate, headers.baggage]).toEqual([undefined, undefined]);
    expect(query).toBe("api_key=canary-query-key");
    expect(collector.text()).not.toContain("canary");
    expect(collector.resource()).toMatchObject({ "service.name": "troupe-under-test", "service.version": "0.1.0" });
    expect(collector.headers()[0]).toMatchObject({ "x-tenant": "blue", "content-type": "application/json" });
  });

  it("records what failed by its kind, and calls only this server's own faults errors", async () => {
    const server = await start(traced);
    await installShop(server, "http://127.0.0.1:1", { secret: "s" });
    const wrong = callersTrace();
    const headers = { traceparent: wrong.traceparent };
    expect((await server.call("GET", "/processes/999?wait=0&api_key=canary", undefined, headers)).status).toBe(404);
    const refused = await collector.waitFor(({ traceId }) => traceId === wrong.traceId);
    expect([refused.name, refused.isError]).toEqual(["GET /processes/{id}", false]);
    expect(refused.attributes).toMatchObject({ "troupe.refused": "not_found", "url.path": "/processes/999" });

    const failing = callersTrace();
    const invoke = await server.call(
      "POST",
      "/tools/shop/getPet/invoke",
      { parameters: { path: { petId: "1" } } },
      { traceparent: failing.traceparent },
    );
    expect(invoke.status).toBe(502);
    await collector.waitFor(({ traceId, kind }) => traceId === failing.traceId && kind === 2);
    const errors = inTrace(failing.traceId).map(({ name, isError, attributes }) => [
      name,
      isError,
      attributes["error.type"],
    ]);
    expect(errors.sort()).toEqual([
      ["GET", true, "upstream_failed"],
      ["POST /tools/{serviceId}/{toolId}/invoke", true, "upstream_failed"],
      ["tool call", true, "upstream_failed"],
    ]);

    const thrown = callersTrace();
    await server.call("POST", "/processes", call('throw new Error("canary")'), { traceparent: thrown.traceparent });
    const run = await collector.waitFor(({ traceId, name }) => traceId === thrown.traceId && name === "run");
    expect([run.isError, run.attributes["error.type"], run.attributes["troupe.run.exit_state"]]).toEqual([
      true,
      "thrown",
      "failed",
    ]);
    expect(collector.text()).not.toContain("canary");
  });

  it("continues a caller's trace over gRPC as well", async () => {
    const server = await start(traced);
    const { traceId, spanId, traceparent } = callersTrace();
    const response = await fetch(`http://${server.grpc}/troupe.v1.ProcessService/CreateProcess`, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent },
      body: JSON.stringify({ code: "return 1" }),
    });
    expect(response.status).toBe(200);
    await collector.waitFor((span) => span.traceId === traceId && span.attributes["troupe.message.type"] === "ended");
    const rpc = inTrace(traceId).find(({ kind }) => kind === 2);
    expect([rpc?.name, rpc?.parentSpanId]).toEqual(["troupe.v1.ProcessService/CreateProcess", spanId]);
    expect(rpc?.attributes).toMatchObject({ "rpc.system": "connect_rpc", "rpc.grpc.status_code": 0 });
    const create = inTrace(traceId).find(({ attributes }) => attributes["troupe.message.type"] === "create");
    expect(create?.parentSpanId).toBe(rpc?.spanId);
  });

  it("keeps the traces of 40 callers apart that are served at once", async () => {
    const server = await start({ ...traced, SERVICE_PROCESS_CONCURRENCY: "4" });
    await installShop(server, target.origin, { secret: "s" });
    const callers = Array.from({ length: 40 }, callersTrace);
    target.requests.length = 0;
    await Promise.all(
      callers.map(async ({ traceparent }, place) => {
        const code = askPet.replace('"7"', `"${place}"`);
        const { body } = await server.call("POST", "/processes", call(code), { traceparent });
        await server.get(`/processes/${body.id}?wait=60`);
      }),
    );
    for (const { traceId } of callers) {
      await collector.waitFor((span) => span.traceId === traceId && span.attributes["troupe.message.type"] === "ended");
      expect(
        inTrace(traceId)
          .map(({ name }) => name)
          .sort(),
        traceId,
      ).toEqual(["GET", "POST /processes", "run", "tool call", "turn process", "turn process", "turn process"].sort());
    }
    const sent = target.requests.map(({ path, headers }) => [path, headers.traceparent?.split("-")[1]]);
    expect(sent.sort()).toEqual(callers.map(({ traceId }, place) => [`/pets/${place}`, traceId]).sort());
  }, 40_000);

  it("begins a trace of its own where the caller's header is not well-formed", async () => {
    const server = await start(traced);
    const { traceId, spanId } = callersTrace();
    const malformed = [
      `00-${traceId}-${spanId}-01-more`,
      `ff-${traceId}-${spanId}-01`,
      `00-${"0".repeat(32)}-${spanId}-01`,
      `00-${traceId}-${"0".repeat(16)}-01`,
      `00-${traceId.toUpperCase()}-${spanId}-01`,
      `00-${traceId}-${spanId}`,
      `${traceId}`,
      `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    ];
    for (const [place, traceparent] of malformed.entries()) {
      await server.call("GET", "/processes", undefined, { traceparent, "x-request-id": `malformed-${place}` });
      const span = await collector.waitFor(
        ({ attributes }) => attributes["troupe.request.id"] === `malformed-${place}`,
      );
      expect([span.traceId === traceId, span.parentSpanId], traceparent).toEqual([false, undefined]);
    }
    const later = callersTrace();
    const traceparent = `cc-${later.traceId}-${later.spanId}-01-what-the-future-will-be-like`;
    await server.call("GET", "/processes", undefined, { traceparent });
    expect((await collector.waitFor((span) => span.traceId === later.traceId)).parentSpanId).toBe(later.spanId);
  });

  it("follows the caller's decision not to sample, and the sampler that is set", async () => {
    const server = await start({ ...traced, OTEL_TRACES_SAMPLER: "parentbased_always_off" });
    const not = callersTrace();
    await server.call("GET", "/processes", undefined, { traceparent: not.traceparent.replace(/01$/, "00") });
    await server.call("GET", "/processes", undefined, { "x-request-id": "off-by-sampler" });
    const yes = callersTrace();
    await server.call("GET", "/processes", undefined, { traceparent: yes.traceparent });
    await collector.waitFor((span) => span.traceId === yes.traceId);
    expect(inTrace(not.traceId)).toEqual([]);
    expect(collector.spans().filter(({ attributes }) => attributes["troupe.request.id"] === "off-by-sampler")).toEqual(
      [],
    );
  });
});

describe("the collector", () => {
  it("gets what is left when the server stops", async () => {
    const server = await start({ ...traced, OTEL_BSP_SCHEDULE_DELAY: "60000" });
    const { traceId, traceparent } = callersTrace();
    await server.call("GET", "/processes", undefined, { traceparent });
    expect(inTrace(traceId)).toEqual([]);
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(inTrace(traceId).map(({ name }) => name)).toEqual(["GET /processes"]);
  });

  it.each([
    ["answers nothing", () => dead.origin],
    ["is not there", () => "http://127.0.0.1:1"],
  ])("harms nobody when it %s: requests are served, runs end, and the stop is in time", async (_, origin) => {
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: origin(),
      OTEL_BSP_SCHEDULE_DELAY: "10",
      OTEL_BSP_EXPORT_TIMEOUT: "500",
      OTEL_BSP_MAX_QUEUE_SIZE: "64",
    });
    for (let n = 0; n < 300; n += 1) expect((await server.get("/processes")).status).toBe(200);
    expect((await server.run("return 1")).exitState).toBe("success");
    const begun = performance.now();
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(performance.now() - begun).toBeLessThan(9_000);
    const complaints = server.lines.filter((line) => line.includes('"event":"traces-not-sent"'));
    expect(complaints.length).toBeLessThanOrEqual(1);
  });

  it("is refused at the start when its address is no URL, without repeating it", async () => {
    const { code, said } = await startRefused({ settings: { OTEL_EXPORTER_OTLP_ENDPOINT: "canary:4318" } });
    expect(code).toBe(78);
    expect(said).toContain("OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL");
    expect(said).not.toContain("canary");
  });

  it.each<[string, Readonly<Record<string, string>>, boolean]>([
    ["not loaded when no endpoint is set", {}, false],
    ["loaded when one is", traced, true],
  ])("and the packages for it are %s", async (_, settings, isLoaded) => {
    const server = await start({ ...settings, NODE_OPTIONS: `--import=${tellLoaded}` });
    const told = server.lines.join("\n");
    expect(told).toContain("loaded file:///");
    for (const name of ["sdk-trace", "exporter-trace-otlp-http", "otlp-transformer", "resources", "core"]) {
      expect(told.includes(`/@opentelemetry/${name}/`), name).toBe(isLoaded);
    }
  });
});

/** Says on stderr which files of packages are loaded. */
const tellLoaded = `data:text/javascript,${encodeURIComponent(
  [
    'import { writeSync } from "node:fs"',
    'import { registerHooks } from "node:module"',
    'const tell = (url) => url.includes("/node_modules/") && writeSync(2, "loaded " + url + "\\n")',
    "registerHooks({ load(url, context, next) { tell(url); return next(url, context); } })",
  ].join(";"),
)}`;

interface SilentServer {
  readonly origin: string;
  close(): Promise<void>;
}

/** Takes connections and says nothing. */
async function openSilentServer(): Promise<SilentServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
