/**
 * Every rpc of troupe.v1, by walking the descriptors, from @grpc/grpc-js: whatever is asked, the answer is a message or a refusal of the catalogue, and
 * never "not implemented", "internal" or "unknown". Then who may call, by the bytes of metadata, and what refusals carry.
 */
import http2 from "node:http2";
import { type DescField, type DescMessage, type DescMethod, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { troupeServices } from "../../../src/control-plane/services.ts";
import { catalogue } from "../../../src/errors/catalogue.ts";
import type { FailureKind } from "../../../src/errors/failure.ts";
import { MaintenanceService } from "../../../src/gen/troupe/v1/maintenance_service_pb.ts";
import { ProcessService } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { RegistryService } from "../../../src/gen/troupe/v1/registry_service_pb.ts";
import { openForeignClient } from "../foreign-client.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { jsPeer, pathOf } from "./js-peer.ts";
import { detailsOf, type Peer, type Told } from "./peer.ts";
import { envelope, flags, frame, frameTypes, grpcHeaders, headerBlock, openConnection } from "./raw-http2.ts";

let server: Server;
let peer: Peer;
let session: http2.ClientHttp2Session;

beforeAll(async () => {
  server = await startServer({
    settings: {
      SERVICE_API_KEYS: "o:operator:operator-key,a:agent:agent-key",
      SERVICE_RATE_LIMITS: "GET /registries=3/60s; *=100000/60s",
    },
  });
  // Pings every 100 ms, also without calls: the server has to answer them all.
  peer = jsPeer(server.grpc, {
    "grpc.keepalive_time_ms": 100,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.keepalive_permit_without_calls": 1,
  });
  session = http2.connect(`http://${server.grpc}`);
  await server.call("POST", "/processes", { code: "return 1" }, operator);
  // A key that came from here before is listened to, however many wrong ones come.
  await peer.ask({ method: ProcessService.method.getProcess, metadata: { authorization: "Bearer agent-key" } });
});

afterAll(async () => {
  peer.close();
  session.destroy();
  await server.kill();
  await removeFolder(server.folder);
});

const operator = { authorization: "Bearer operator-key" };
const methods = troupeServices.flatMap((service) => service.methods);
/** Ends the server: it has its own place at the end of this file. */
const { drain } = MaintenanceService.method;

/** A value for every field, all the way down. */
function filled(message: DescMessage, scalars: Scalars, depth = 0): JsonValue {
  return Object.fromEntries(
    message.fields.flatMap((field) => {
      const value = sample(field, scalars, depth);
      return value === undefined ? [] : [[field.jsonName, field.fieldKind === "list" ? [value] : value]];
    }),
  );
}

function sample(field: DescField, scalars: Scalars, depth: number): JsonValue | undefined {
  if (field.enum !== undefined) return scalars.enumeration(field.enum.values.map(({ name }) => name));
  if (field.message !== undefined) {
    if (field.message.typeName === "google.protobuf.Timestamp") return "2026-01-01T00:00:00Z";
    if (field.message.typeName === "google.protobuf.Value") return scalars.text;
    if (field.message.typeName === "google.protobuf.Struct") return { [scalars.text]: null };
    return depth > 2 || field.fieldKind === "map" ? undefined : filled(field.message, scalars, depth + 1);
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return true;
    case ScalarType.STRING:
      return scalars.text;
    case ScalarType.BYTES:
      return "AAEC";
    case ScalarType.UINT32:
    case ScalarType.UINT64:
    case ScalarType.FIXED32:
    case ScalarType.FIXED64:
      return Math.abs(scalars.number);
    default:
      return scalars.number;
  }
}

interface Scalars {
  readonly text: string;
  readonly number: number;
  enumeration(names: readonly string[]): string | number;
}

const requests: Readonly<Record<string, (input: DescMessage) => JsonValue>> = {
  "an empty request": () => ({}),
  "a full one about what is not there": (input) =>
    filled(input, { text: "nothing-here", number: 1_999, enumeration: (names) => names.at(-1) ?? 0 }),
  "a full one that makes no sense": (input) =>
    filled(input, { text: "\u0000\ud83d\ude00\r\n", number: -2_147_483_648, enumeration: () => 99 }),
};

const kinds = Object.keys(catalogue) as FailureKind[];

/** A stream that has nothing against the request goes on: its caller ends it. */
const streamMs = 700;

function expectCatalogued(method: DescMethod, told: Told): void {
  if (told.code === 0) return;
  // grpc-js ends its own stream at the deadline, without a word of the server's.
  if (told.code === 4 && method.methodKind !== "unary") return;
  const { ErrorInfo } = detailsOf(told) as { ErrorInfo?: { reason: FailureKind; domain: string } };
  const refusal = { rpc: pathOf(method), message: told.message, ErrorInfo };
  expect(refusal, JSON.stringify(told)).toMatchObject({ ErrorInfo: { domain: "troupe" } });
  const kind = ErrorInfo?.reason as FailureKind;
  expect(kinds).toContain(kind);
  expect({ ...refusal, code: told.code }).toEqual({ ...refusal, code: catalogue[kind].grpc });
  expect([2, 12, 13], JSON.stringify(refusal)).not.toContain(told.code);
}

interface Seen {
  readonly status: string;
  readonly headers: http2.IncomingHttpHeaders;
}

function getProcess(headers: http2.OutgoingHttpHeaders | readonly string[]): Promise<Seen> {
  const path = pathOf(ProcessService.method.getProcess);
  return exchange(path, "application/grpc", envelope(Buffer.from([0x08, 1])), headers);
}

function exchange(
  path: string,
  contentType: string,
  body: Buffer,
  headers: http2.OutgoingHttpHeaders | readonly string[] = operator,
): Promise<Seen> {
  const given = Array.isArray(headers) ? pairs(headers) : headers;
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": contentType, ...given });
  stream.end(body);
  return new Promise((resolve, reject) => {
    let all: http2.IncomingHttpHeaders = {};
    for (const event of ["response", "trailers"] as const) {
      stream.on(event, (more: http2.IncomingHttpHeaders) => {
        all = { ...all, ...more };
      });
    }
    stream.on("error", reject);
    stream.resume();
    stream.on("close", () => resolve({ status: String(all["grpc-status"]), headers: all }));
  });
}

function pairs(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ""]] : [])));
}

describe("a key in metadata", () => {
  const key = "operator-key";
  const cases: readonly (readonly [title: string, headers: readonly string[], status: string])[] = [
    ["none", [], "16"],
    ["Bearer and a key", ["authorization", `Bearer ${key}`], "0"],
    ["another scheme", ["authorization", `Basic ${Buffer.from(`o:${key}`).toString("base64")}`], "16"],
    ["no scheme", ["authorization", key], "16"],
    ["Bearer and nothing", ["authorization", "Bearer"], "16"],
    ["an empty value", ["authorization", ""], "16"],
    ["a key and more", ["authorization", `Bearer ${key} x`], "16"],
    ["two keys in one", ["authorization", `Bearer ${key}, Bearer ${key}`], "16"],
    ["a right key under another name", ["authorization-bin", Buffer.from(`Bearer ${key}`).toString("base64")], "16"],
    ["a key that is no ASCII", ["authorization", "Bearer sch\u00fcssel"], "16"],
    ["a key of 8 KB", ["authorization", `Bearer ${"k".repeat(8_000)}`], "16"],
    ["a right key, and binary metadata", ["authorization", `Bearer ${key}`, "x-trace-bin", "AAEC"], "0"],
    ["a right key, and binary metadata that is none", ["authorization", `Bearer ${key}`, "x-trace-bin", "%%%"], "0"],
    ["a right key, and metadata that is no ASCII", ["authorization", `Bearer ${key}`, "x-name", "J\u00fcrgen"], "0"],
    ["a right key, and an empty name of a caller", ["authorization", `Bearer ${key}`, "x-request-id", ""], "0"],
  ];

  it.each(cases)("as %s", async (_title, headers, status) => {
    const seen = await getProcess(headers);
    expect(seen.status).toBe(status);
    expect(JSON.stringify(seen.headers)).not.toContain(key);
    // REST says the same of the same header.
    const [name, value, again] = headers;
    if (name !== "authorization" || again !== undefined) return;
    const rest = await server.call("GET", "/processes/1", undefined, { authorization: value ?? "" });
    expect(rest.status).toBe(status === "0" ? 200 : 401);
  });

  it.each([
    ["the right key before a wrong one is the one that counts", [key, "wrong"], true],
    ["a wrong key before the right one is the one that counts", ["wrong", key], false],
  ])("%s", async (_title, keys, isServed) => {
    const connection = await openConnection(server.grpc);
    const twice = keys.map((one) => ["authorization", `Bearer ${one}`] as const);
    const path = pathOf(ProcessService.method.getProcess);
    await connection.send(
      frame(frameTypes.headers, flags.endHeaders, 1, headerBlock(grpcHeaders(server.grpc, path, twice))),
      frame(frameTypes.data, flags.endStream, 1, envelope(Buffer.from([0x08, 1]))),
    );
    expect(await connection.until(() => connection.has(frameTypes.headers, 1, flags.endStream))).toBe(true);
    // A refusal is headers alone.
    expect(connection.has(frameTypes.data, 1)).toBe(isServed);
    connection.close();
  });

  it("is not asked for by probes and reflection", async () => {
    const client = await openForeignClient(server.grpc);
    expect(client.services).toContain("grpc.health.v1.Health");
    client.close();
  });
});

describe("every rpc of troupe.v1", () => {
  it("is among those that reflection tells of", async () => {
    const client = await openForeignClient(server.grpc);
    const served = client.services.filter((name) => name.startsWith("troupe."));
    client.close();
    expect(served).toEqual(troupeServices.map(({ typeName }) => typeName).sort());
  });

  it.each(Object.keys(requests))("answers %s by a message or a refusal of the catalogue", async (title) => {
    const asked = methods.filter((method) => method !== drain);
    const told = await Promise.all(
      asked.map((method) =>
        peer.ask({
          method,
          request: requests[title]?.(method.input) ?? {},
          metadata: operator,
          deadlineMs: method.methodKind === "unary" ? 30_000 : streamMs,
        }),
      ),
    );
    for (const [at, method] of asked.entries()) expectCatalogued(method, told[at] as Told);
    expect(server.lines.filter((line) => /"level":"error","event":"(?:operation|rpc)-/.test(line))).toEqual([]);
  });

  it("is for those with a key, and maintenance for operators alone", async () => {
    for (const method of methods) {
      const unknown = await peer.ask({ method });
      // After thirty tries without a key, whoever comes from there is told to wait.
      expect([16, 8], pathOf(method)).toContain(unknown.code);
      expectCatalogued(method, unknown);
      if (method.parent !== MaintenanceService) continue;
      const agents = await peer.ask({ method, metadata: { authorization: "Bearer agent-key" } });
      expect({ rpc: pathOf(method), code: agents.code }).toEqual({ rpc: pathOf(method), code: 7 });
    }
  });
});

describe("R-100: what is no request", () => {
  const { createProcess, listProcesses } = ProcessService.method;
  const cases: readonly (readonly [title: string, method: DescMethod, message: string])[] = [
    ["text that is no UTF-8", createProcess, "0a00" + "1202c328" + "3000"],
    ["text that ends within a character", createProcess, "0a02f09f" + "3000"],
    ["a text of half a surrogate pair", createProcess, "0a00" + "1203eda080" + "3000"],
    ["a required field that is not there", ProcessService.method.getProcess, ""],
    ["a field of another wire type", ProcessService.method.getProcess, "0a0131"],
    ["an enum of a value that nobody knows", listProcesses, "1063"],
  ];

  it.each(
    cases.flatMap(([title, method, message]) =>
      ["application/grpc", "application/gRPC"].map((type) => ({ title, method, message, type })),
    ),
  )("$title, as $type, is INVALID_ARGUMENT", async ({ method, message, type }) => {
    const seen = await exchange(pathOf(method), type, envelope(Buffer.from(message, "hex")));
    expect(seen.status, JSON.stringify(seen.headers)).toBe("3");
  });

  it.each(["text/plain", "application/json+grpc", "application/xml"])("a body of %s is 415", async (type) => {
    const seen = await exchange(pathOf(createProcess), type, Buffer.from("{}"));
    expect(seen.headers[":status"]).toBe(415);
  });
});

describe("what a refusal carries", () => {
  it("names the fields at fault", async () => {
    const told = await peer.ask({
      method: ProcessService.method.createProcess,
      request: { code: "", ref: " ", timeoutMs: 0 },
      metadata: operator,
    });
    expect(told.code).toBe(3);
    const { BadRequest } = detailsOf(told) as {
      BadRequest: { fieldViolations: { field: string; description: string }[] };
    };
    expect(BadRequest.fieldViolations.map(({ field }) => field).sort()).toEqual(["ref", "timeout_ms"]);
    for (const { description } of BadRequest.fieldViolations) expect(description.length).toBeGreaterThan(3);
  });

  it("says when to try again once the quota is used up", async () => {
    const ask = (): Promise<Told> => peer.ask({ method: RegistryService.method.listRegistries, metadata: operator });
    let told = await ask();
    for (let tries = 0; told.code === 0 && tries < 5; tries += 1) told = await ask();
    expect(told.code).toBe(8);
    const { RetryInfo, ErrorInfo } = detailsOf(told) as { RetryInfo: { retryDelay: string }; ErrorInfo: JsonValue };
    expect(ErrorInfo).toMatchObject({ reason: "rate_limit_exceeded", domain: "troupe" });
    expect(Number.parseInt(RetryInfo.retryDelay, 10)).toBeGreaterThan(0);
    expect(Number.parseInt(RetryInfo.retryDelay, 10)).toBeLessThanOrEqual(60);
    expect(told.metadata).toMatchObject({ "x-ratelimit-limit": "3", "x-ratelimit-remaining": "0" });
  });

  it("has the request id of the caller", async () => {
    const seen = await getProcess({ "x-request-id": "asked-once" });
    expect(seen.headers["x-request-id"]).toBe("asked-once");
  });
});

it("pings are answered while nothing is asked for a second and a half", async () => {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(
    (await peer.ask({ method: ProcessService.method.getProcess, request: { id: 1 }, metadata: operator })).code,
  ).toBe(0);
});

it("drain is an rpc as well, and the last: what is asked after it is told UNAVAILABLE", async () => {
  const told = await peer.ask({ method: drain, metadata: operator });
  expect([0, 14]).toContain(told.code);
  const late = await peer.ask({
    method: ProcessService.method.createProcess,
    request: { code: "" },
    metadata: operator,
  });
  expect(late.code).toBe(14);
});
