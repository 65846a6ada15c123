/** What the log says of refused callers, alike for REST, gRPC (the short way) and Connect: who, why, whose limit; and never a key. */
import http from "node:http";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let withoutKeys: TwoFaces;
beforeAll(async () => {
  const rateLimits = "POST /processes/{id}/signals/run=1/60s; *=1000/60s";
  [faces, withoutKeys] = await Promise.all([
    openTwoFaces({
      keys: "reader:agent:canary-key-1\nslow:agent:canary-key-2",
      trustedProxies: ["127.0.0.1"],
      rateLimits,
    }),
    openTwoFaces({ rateLimits }),
  ]);
});
afterAll(() => Promise.all([faces.close(), withoutKeys.close()]));

type Headers = Readonly<Record<string, string>>;
type Operation = "getProcess" | "deleteProcess" | "runProcess";

const routes = {
  getProcess: ["GET", "/processes/{id}"],
  deleteProcess: ["DELETE", "/processes/{id}"],
  runProcess: ["POST", "/processes/{id}/signals/run"],
} as const satisfies Record<Operation, readonly [string, string]>;

const ways = ["REST", "gRPC", "Connect"] as const;
type Way = (typeof ways)[number];

/** Resolves however it is answered. */
async function ask(to: TwoFaces, way: Way, operation: Operation, headers: Headers): Promise<void> {
  if (way === "REST") return overRest(to, operation, headers);
  const given: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  const options = { baseUrl: to.rpc, interceptors: [given] };
  const transport =
    way === "gRPC" ? createGrpcTransport(options) : createConnectTransport({ ...options, httpVersion: "2" });
  await createClient(ProcessService, transport)
    [operation]({ id: 1n })
    .catch(() => undefined);
}

function overRest(to: TwoFaces, operation: Operation, headers: Headers): Promise<void> {
  const [method, path] = routes[operation];
  const type = method === "POST" ? { "content-type": "application/json" } : {};
  const options = { method, headers: { ...type, ...headers }, agent: false };
  return new Promise((resolve, reject) => {
    http
      .request(`${to.rest}${path.replace("{id}", "1")}`, options, (answer) => answer.resume().on("end", resolve))
      .on("error", reject)
      .end(method === "POST" ? "{}" : undefined);
  });
}

function requestOf(way: Way, operation: Operation): string {
  return way === "REST"
    ? routes[operation].join(" ")
    : `troupe.v1.ProcessService/${operation.charAt(0).toUpperCase()}${operation.slice(1)}`;
}

async function told(to: TwoFaces, way: Way, operation: Operation, headers: Headers) {
  const { lines } = to;
  const from = lines.length;
  await ask(to, way, operation, headers);
  // The line of a request over REST is written after its answer.
  await expect
    .poll(() => lines.slice(from).some(({ event }) => ["http-request", "rpc", "rpc-refused"].includes(event)))
    .toBe(true);
  return lines.slice(from).filter(({ event }) => event === "request-refused");
}

describe.each(ways)("a caller refused over %s", (way) => {
  it.each<[string, Operation, Headers, { caller: string; code: string; message: string }]>([
    [
      "without a key, by its address",
      "getProcess",
      {},
      { caller: "ip 127.0.0.1", code: "unauthenticated", message: "A bearer key is required" },
    ],
    [
      "with a wrong key, by its address",
      "getProcess",
      { authorization: "Bearer canary-key-3" },
      { caller: "ip 127.0.0.1", code: "unauthenticated", message: "The bearer key is not known" },
    ],
    [
      "with a key where none belongs, by its address",
      "getProcess",
      { authorization: "canary-key-1" },
      { caller: "ip 127.0.0.1", code: "unauthenticated", message: "The Authorization header must be" },
    ],
    [
      "behind a proxy, by the address the proxy saw",
      "getProcess",
      { "x-forwarded-for": "192.0.2.7", authorization: "Bearer canary-key-3" },
      { caller: "ip 192.0.2.7", code: "unauthenticated", message: "The bearer key is not known" },
    ],
    [
      "for its role, by the name of its key",
      "deleteProcess",
      { authorization: "Bearer canary-key-1" },
      { caller: "reader", code: "forbidden", message: 'Key "reader" has role "agent"' },
    ],
    [
      "for its Origin, by its address",
      "getProcess",
      { origin: "https://evil.example", authorization: "Bearer canary-key-1" },
      { caller: "ip 127.0.0.1", code: "forbidden", message: "The Origin of this request is not allowed" },
    ],
  ])("is told of %s", async (_, operation, headers, { caller, code, message }) => {
    const requestId = `request of ${way}`.replaceAll(" ", "-");
    const lines = await told(faces, way, operation, { "x-request-id": requestId, ...headers });
    expect(lines).toEqual([
      {
        level: "warn",
        event: "request-refused",
        message: expect.stringContaining(`"${caller}" was refused: ${message}`),
        fields: expect.objectContaining({ requestId, caller, code, request: requestOf(way, operation) }),
      },
    ]);
  });

  it("is not told of when it was answered", async () => {
    const headers = { authorization: "Bearer canary-key-1" };
    expect(await told(faces, way, "getProcess", headers)).toEqual([]);
  });
});

describe("the line of a caller that asks too often", () => {
  it.each(ways)("has the name of its key and the limit that was reached, over %s", async (way) => {
    const headers = { authorization: "Bearer canary-key-2" };
    // One is let in, over whichever face.
    await ask(faces, "REST", "runProcess", headers);
    const [line, ...rest] = await told(faces, way, "runProcess", headers);
    expect(line?.fields).toMatchObject({
      caller: "slow",
      code: "rate_limit_exceeded",
      request: requestOf(way, "runProcess"),
      limit: "POST /processes/{id}/signals/run",
    });
    expect(line?.message).toMatch(/^"slow" was refused: Too many requests: try again in \d+ s$/);
    expect(rest).toEqual([]);
  });

  it.each(ways)("has its address where there are no keys, over %s", async (way) => {
    await ask(withoutKeys, "REST", "runProcess", {});
    const [line] = await told(withoutKeys, way, "runProcess", {});
    expect(line?.fields).toMatchObject({ caller: "ip 127.0.0.1", limit: "POST /processes/{id}/signals/run" });
  });
});

it("no line has a key in it", () => {
  expect(faces.lines.filter(({ event }) => event === "request-refused").length).toBeGreaterThan(15);
  expect(JSON.stringify(faces.lines)).not.toMatch(/canary-key/);
});
