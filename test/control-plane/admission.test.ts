/** Keys, roles, Host and Origin: the same table through both faces. */
import http from "node:http";
import http2 from "node:http2";
import { ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catalogue } from "../../src/errors/catalogue.ts";
import type { FailureKind } from "../../src/errors/failure.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
beforeAll(async () => {
  faces = await openTwoFaces({
    keys: "reader:agent:agent-key-1\nadmin:operator:operator-key-1,bare-operator-key",
    allowedHosts: ["troupe.example.com", "10.1.2.3"],
    corsOrigins: ["https://console.example.com"],
  });
});
afterAll(() => faces.close());

type Outcome = "ok" | FailureKind;

async function overRest(
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${faces.rest}${path}`, { method, headers, agent: false }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
    });
    request.on("error", reject).end();
  });
}

const withHeaders =
  (headers: Record<string, string>): Interceptor =>
  (next) =>
  (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };

function client(headers: Record<string, string>) {
  const transport = createGrpcTransport({ baseUrl: faces.rpc, interceptors: [withHeaders(headers)] });
  return { processes: createClient(ProcessService, transport), health: createClient(Health, transport) };
}

async function codeOf(call: Promise<unknown>): Promise<number | "ok"> {
  try {
    await call;
    return "ok";
  } catch (error) {
    return ConnectError.from(error).code;
  }
}

describe("keys and roles", () => {
  const table: readonly [title: string, authorization: string | undefined, read: Outcome, remove: Outcome][] = [
    ["no key", undefined, "unauthenticated", "unauthenticated"],
    ["an agent key", "Bearer agent-key-1", "ok", "forbidden"],
    ["an operator key", "Bearer operator-key-1", "ok", "ok"],
    ["a bare operator key", "Bearer bare-operator-key", "ok", "ok"],
    ["the scheme in lower case", "bearer agent-key-1", "ok", "forbidden"],
    ["the scheme in capitals", "BEARER operator-key-1", "ok", "ok"],
    ["two spaces before the key", "Bearer  agent-key-1", "ok", "forbidden"],
    ["an unknown key", "Bearer agent-key-2", "unauthenticated", "unauthenticated"],
    ["a prefix of a key", "Bearer agent-key", "unauthenticated", "unauthenticated"],
    ["a key and another word", "Bearer agent-key-1 extra", "unauthenticated", "unauthenticated"],
    ["two keys", "Bearer agent-key-1, Bearer operator-key-1", "unauthenticated", "unauthenticated"],
    ["a key without a scheme", "agent-key-1", "unauthenticated", "unauthenticated"],
    ["the scheme alone", "Bearer", "unauthenticated", "unauthenticated"],
    ["another scheme", "Basic YWdlbnQta2V5LTE6", "unauthenticated", "unauthenticated"],
    ["the name instead of the key", "Bearer reader", "unauthenticated", "unauthenticated"],
    ["the whole entry", "Bearer reader:agent:agent-key-1", "unauthenticated", "unauthenticated"],
    ["nothing", "", "unauthenticated", "unauthenticated"],
  ];

  it.each(table)("%s", async (_title, authorization, read, remove) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const expected = { read: outcomeOf(read), remove: outcomeOf(remove) };
    const reading = await overRest("GET", "/processes/1", headers);
    expect(reading.status).toBe(expected.read.rest);
    if (read === "unauthenticated") expect(reading.headers["www-authenticate"]).toBe("Bearer");
    expect((await overRest("DELETE", "/processes/1", headers)).status).toBe(expected.remove.rest);
    const { processes } = client(headers);
    expect(await codeOf(processes.getProcess({ id: 1n }))).toBe(expected.read.grpc);
    expect(await codeOf(processes.deleteProcess({ id: 1n }))).toBe(expected.remove.grpc);
  });

  it("the caller of a row is the key's name and role", async () => {
    await overRest("GET", "/processes/1", { authorization: "Bearer agent-key-1" });
    expect(faces.domain.seen.at(-1)?.context.caller).toEqual({ name: "reader", role: "agent" });
    await client({ authorization: "Bearer bare-operator-key" }).processes.getProcess({ id: 1n });
    expect(faces.domain.seen.at(-1)?.context.caller).toEqual({ name: "key-3", role: "operator" });
  });

  it("health needs no key on either face, an unknown path does", async () => {
    expect((await overRest("GET", "/healthz", {})).status).toBe(200);
    expect((await overRest("GET", "/readyz", {})).status).toBe(200);
    expect((await overRest("HEAD", "/readyz", {})).status).toBe(200);
    expect(await codeOf(client({}).health.check({}))).toBe("ok");
    expect((await overRest("GET", "/nothing", {})).status).toBe(401);
  });

  it("no key is ever written to the log or an answer", async () => {
    const answer = await overRest("GET", "/processes/1", { authorization: "Bearer canary-key-9" });
    expect(JSON.stringify(answer)).not.toContain("canary-key-9");
    expect(JSON.stringify(faces.lines)).not.toMatch(/canary-key-9|agent-key-1|operator-key-1/);
  });
});

function outcomeOf(outcome: Outcome): { rest: number; grpc: number | "ok" } {
  return outcome === "ok" ? { rest: 200, grpc: "ok" } : catalogue[outcome];
}

describe("Host and Origin", () => {
  const key = { authorization: "Bearer operator-key-1" };

  const hosts: readonly [host: string, allowed: boolean][] = [
    ["localhost", true],
    ["LOCALHOST:1", true],
    ["app.localhost", true],
    ["127.0.0.1", true],
    ["127.9.8.7:80", true],
    ["[::1]:8080", true],
    ["troupe.example.com", true],
    ["Troupe.Example.Com:443", true],
    ["10.1.2.3:8080", true],
    ["evil.example.com", false],
    ["troupe.example.com.evil.org", false],
    ["localhost.evil.org", false],
    ["127.0.0.1.evil.org", false],
    ["127.0.0.1.nip.io:8080", false],
    ["127.0.0.999", false],
    ["10.1.2.4", false],
    ["[::2]", false],
    ["0.0.0.0", false],
    ["::1:x", false],
    ["evil@localhost", false],
  ];

  it.each(hosts)("Host %s: allowed %s", async (host, allowed) => {
    expect((await overRest("GET", "/processes/1", { ...key, host })).status).toBe(allowed ? 200 : 403);
    // Of what is no authority at all HTTP/2 itself or Connect's URL parser says so first.
    const status = await h2Unary(host, {}).catch(() => "reset");
    expect(allowed ? ["0"] : ["7", "3", "reset"]).toContain(status);
    expect((await overRest("GET", "/healthz", { host })).status).toBe(200);
  });

  const origins: readonly [origin: string, host: string, allowed: boolean][] = [
    ["https://console.example.com", "localhost", true],
    ["http://localhost:8080", "localhost:8080", true],
    ["https://troupe.example.com", "troupe.example.com", true],
    ["http://localhost:8081", "localhost:8080", false],
    ["http://console.example.com", "localhost", false],
    ["https://console.example.com:444", "localhost", false],
    ["https://console.example.com.evil.org", "localhost", false],
    ["null", "localhost", false],
    ["file://", "localhost", false],
    ["https://evil.org", "localhost", false],
  ];

  it.each(origins)("Origin %s at Host %s: allowed %s", async (origin, host, allowed) => {
    const answer = await overRest("GET", "/processes/1", { ...key, host, origin });
    expect(answer.status).toBe(allowed ? 200 : 403);
    const isListed = origin === "https://console.example.com";
    expect(answer.headers["access-control-allow-origin"]).toBe(isListed ? origin : undefined);
    expect(await h2Unary(host, { origin })).toBe(allowed ? "0" : "7");
  });

  it("a listed origin may ask before it sends, a stranger may not", async () => {
    const ask = { "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
    const listed = await overRest("OPTIONS", "/processes", { origin: "https://console.example.com", ...ask });
    expect(listed.status).toBe(204);
    expect(listed.headers["access-control-allow-methods"]).toContain("POST");
    expect(listed.headers["access-control-allow-headers"]).toContain("authorization");
    const stranger = await overRest("OPTIONS", "/processes", { origin: "https://evil.org", ...ask });
    expect(stranger.status).toBe(403);
    expect(stranger.headers["access-control-allow-origin"]).toBeUndefined();
    const rpc = await fetch(`${faces.rpc}/troupe.v1.ProcessService/GetProcess`, {
      method: "OPTIONS",
      headers: { origin: "https://console.example.com", ...ask },
    });
    expect(rpc.status).toBe(204);
    expect(rpc.headers.get("access-control-allow-origin")).toBe("https://console.example.com");
    expect(rpc.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("authorization");
  });

  /** grpc-status of GetProcess with an authority of our choice, or the HTTP status when there is none. */
  function h2Unary(authority: string, headers: Record<string, string>): Promise<string> {
    return new Promise((resolve, reject) => {
      const session = http2.connect(faces.rpc);
      session.on("error", reject);
      const stream = session.request({
        ":method": "POST",
        ":path": "/troupe.v1.ProcessService/GetProcess",
        ":authority": authority,
        "content-type": "application/grpc",
        te: "trailers",
        ...key,
        ...headers,
      });
      let status = "";
      stream.on("response", (answer) => {
        status = String(answer["grpc-status"] ?? answer[":status"]);
      });
      stream.on("trailers", (trailers) => {
        status = String(trailers["grpc-status"] ?? status);
      });
      stream.on("error", reject);
      stream.on("close", () => {
        session.close();
        resolve(status);
      });
      stream.resume();
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
    });
  }
});
