/** Rate limits as callers of both faces meet them. */
import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, it } from "vitest";
import { ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { Health, HealthCheckResponse_ServingStatus } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { openTwoFaces, type TwoFaces, type TwoFacesOptions } from "../control-plane/two-faces.ts";

const opened: TwoFaces[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((faces) => faces.close()));
});

async function open(options: TwoFacesOptions): Promise<TwoFaces> {
  const faces = await openTwoFaces(options);
  opened.push(faces);
  return faces;
}

function processesOf(faces: TwoFaces, headers: Readonly<Record<string, string>> = {}): Client<typeof ProcessService> {
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  return createClient(ProcessService, createGrpcTransport({ baseUrl: faces.rpc, interceptors: [withHeaders] }));
}

const quotaOf = (headers: Headers) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));

async function refusalOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => expect.unreachable("it was admitted"),
    (error: unknown) => ConnectError.from(error),
  );
}

describe("a limit", () => {
  it("is told on every answer, good or bad, and reached is a 429 of the documented form", async () => {
    const { rest } = await open({ rateLimits: "GET /processes/{id}=3/60s" });
    const statuses = [];
    for (const id of ["1", "2", "nonsense"]) {
      const answer = await fetch(`${rest}/processes/${id}`);
      statuses.push([answer.status, quotaOf(answer.headers)[1]]);
    }
    expect(statuses).toEqual([
      [200, 2],
      [200, 1],
      [400, 0],
    ]);
    const refused = await fetch(`${rest}/processes/1`);
    const [limit, remaining, reset = 0] = quotaOf(refused.headers);
    const body = (await refused.json()) as { retryAfter: number };
    expect([refused.status, limit, remaining]).toEqual([429, 3, 0]);
    expect(body).toEqual({ error: "rate_limit_exceeded", message: expect.any(String), retryAfter: body.retryAfter });
    expect(refused.headers.get("retry-after")).toBe(String(body.retryAfter));
    expect(Number.isInteger(body.retryAfter) && body.retryAfter >= 1).toBe(true);
    expect(Math.abs(Date.now() / 1_000 + body.retryAfter - reset)).toBeLessThanOrEqual(1.5);
  });

  it("is over when its wait is over", async () => {
    const { rest } = await open({ rateLimits: "*=1/1s" });
    await fetch(`${rest}/processes/1`);
    const refused = await fetch(`${rest}/processes/1`);
    const { retryAfter } = (await refused.json()) as { retryAfter: number };
    await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
    expect((await fetch(`${rest}/processes/1`)).status).toBe(200);
  });

  it("counts an operation once for both faces, and says the same over gRPC", async () => {
    const faces = await open({ rateLimits: "GET /processes/{id}=2/60s" });
    const processes = processesOf(faces);
    let headers = new Headers();
    await processes.getProcess({ id: 1n }, { onHeader: (received) => (headers = received) });
    expect(quotaOf(headers).slice(0, 2)).toEqual([2, 1]);
    await fetch(`${faces.rest}/processes/1`);
    expect((await fetch(`${faces.rest}/processes/1`)).status).toBe(429);
    const error = await refusalOf(processes.getProcess({ id: 1n }));
    expect(error.code).toBe(8);
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({ reason: "rate_limit_exceeded", domain: "troupe" });
    const wait = Number(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds);
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(60);
    expect(quotaOf(error.metadata).slice(0, 2)).toEqual([2, 0]);
  });

  it("R-069 holds for every route and rpc, for paths and Hosts that do not exist, and never for probes", async () => {
    const faces = await open({ rateLimits: "*=1/60s" });
    const processes = processesOf(faces);
    await fetch(`${faces.rest}/nothing`);
    const bad = { headers: { "content-type": "text/plain" }, method: "POST", body: "x" };
    for (const [path, init] of [
      ["/nothing", {}],
      ["/elsewhere", {}],
      ["/nothing", { method: "OPTIONS" }],
      ["/processes/1", { method: "PUT" }],
      ["/processes/1", { headers: { origin: "https://evil.example" } }],
    ] as const) {
      expect((await fetch(faces.rest + path, init)).status, path).toBe(429);
    }
    await fetch(`${faces.rest}/processes`, bad);
    expect((await fetch(`${faces.rest}/processes`, bad)).status).toBe(429);
    expect((await refusalOf(processes.createProcess({ code: "" }))).code).toBe(8);
    await processes.deleteProcess({ id: 1n }).catch(() => undefined);
    expect((await refusalOf(processes.deleteProcess({ id: 1n }))).code).toBe(8);
    const health = createClient(Health, createGrpcTransport({ baseUrl: faces.rpc }));
    for (let at = 0; at < 3; at++) {
      const answer = await fetch(`${faces.rest}/healthz`);
      expect([answer.status, answer.headers.get("x-ratelimit-limit")]).toEqual([200, null]);
      expect((await health.check({})).status).toBe(HealthCheckResponse_ServingStatus.SERVING);
    }
  });
});

describe("callers", () => {
  it("with keys are told apart by the key's name, over both faces", async () => {
    const faces = await open({ rateLimits: "*=1/60s", keys: "a:agent:ka,b:agent:kb" });
    const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
    expect((await fetch(`${faces.rest}/processes/1`, as("ka"))).status).toBe(200);
    expect((await fetch(`${faces.rest}/processes/1`, as("ka"))).status).toBe(429);
    expect((await fetch(`${faces.rest}/processes/1`, as("kb"))).status).toBe(200);
    expect((await refusalOf(processesOf(faces, { authorization: "Bearer kb" }).getProcess({ id: 1n }))).code).toBe(8);
  });

  it("who fails to authenticate 30 times is told to wait, on either face", async () => {
    const faces = await open({ rateLimits: "", keys: "a:agent:ka" });
    const wrong = { headers: { authorization: "Bearer wrong" } };
    for (let at = 0; at < 30; at++) expect((await fetch(`${faces.rest}/processes/1`, wrong)).status).toBe(401);
    const refused = await fetch(`${faces.rest}/processes/1`, wrong);
    expect([refused.status, quotaOf(refused.headers)[0]]).toEqual([429, 30]);
    expect((await refusalOf(processesOf(faces).getProcess({ id: 1n }))).code).toBe(8);
  });

  it("R-068 another forwarded address for each request is still one caller, unless a trusted proxy says it", async () => {
    const each = async (faces: TwoFaces) => {
      const statuses = [];
      for (let at = 0; at < 300; at++) {
        const address = `198.51.${at >> 8}.${at & 255}`;
        const headers = { "x-forwarded-for": address, "x-real-ip": address, forwarded: `for=${address}` };
        const answer = await fetch(`${faces.rest}/processes/1`, { headers });
        await answer.arrayBuffer();
        statuses.push(answer.status);
      }
      return statuses.filter((status) => status === 200).length;
    };
    expect(await each(await open({ rateLimits: "*=100/600s" }))).toBe(100);
    expect(await each(await open({ rateLimits: "*=1/600s", trustedProxies: ["127.0.0.1"] }))).toBe(300);
  });
});
