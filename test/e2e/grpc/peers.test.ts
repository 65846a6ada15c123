/**
 * F15 and R-099: three gRPC stacks × twelve behaviours. None of them is ours: @grpc/grpc-js, gRPC's C core as Debian's python3-grpcio, and connect-go
 * in `buf curl`. The last behaviour ends the server.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { create, type DescMethod, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catalogue } from "../../../src/errors/catalogue.ts";
import type { FailureKind } from "../../../src/errors/failure.ts";
import { LogService } from "../../../src/gen/troupe/v1/log_service_pb.ts";
import { ProcessService } from "../../../src/gen/troupe/v1/process_service_pb.ts";
import { RegistryService } from "../../../src/gen/troupe/v1/registry_service_pb.ts";
import { ServiceService } from "../../../src/gen/troupe/v1/service_service_pb.ts";
import { ToolService } from "../../../src/gen/troupe/v1/tool_service_pb.ts";
import { removeFolder, type Server, startServer } from "../server.ts";
import { bufPeer } from "./buf-peer.ts";
import { jsPeer, pathOf } from "./js-peer.ts";
import { type Ask, detailsOf, type Peer, type Told } from "./peer.ts";
import { hasPythonPeer, pythonPeer } from "./python-peer.ts";
import {
  envelope,
  flags,
  frame,
  frameTypes,
  grpcHeaders,
  headerBlock,
  openConnection,
  openSocket,
} from "./raw-http2.ts";
import { type SlowTarget, startSlowTarget } from "./slow-target.ts";

const operator = { authorization: "Bearer operator-key" };
const agent = { authorization: "Bearer agent-key" };
const hasPython = hasPythonPeer();

let server: Server;
let target: SlowTarget;
let strangers: string;
const peers = new Map<string, Peer>();
let bufOfStrangers: Peer;

/** Printed by process 1. */
const printed = "x".repeat(1_000_000);
/** Process 2 prints so many lines, one an event. */
const linesPrinted = 500;

beforeAll(async () => {
  target = await startSlowTarget();
  server = await startServer({
    settings: { SERVICE_API_KEYS: "o:operator:operator-key,a:agent:agent-key", SERVICE_TOOL_TIMEOUT_MS: "20000" },
  });
  const post = async (path: string, body: unknown): Promise<void> => {
    const answer = await server.call("POST", path, body, operator);
    expect(answer.status, answer.text).toBeLessThan(300);
  };
  await post("/services", { id: "slow", url: `${target.url}/openapi.json` });
  await post("/services/slow/enabled", { enabled: true });
  await post("/processes", { code: `console.log("x".repeat(1_000_000)); return 1` });
  await post("/processes", {
    code: `for (let at = 0; at < ${linesPrinted}; at++) { console.log(at + "y".repeat(1_000)); await null } return 1`,
  });
  for (const id of [1, 2]) await server.call("GET", `/processes/${id}?wait=30`, undefined, operator);

  strangers = await mkdtemp(join(tmpdir(), "troupe-strangers-"));
  await mkdir(join(strangers, "troupe/v1"), { recursive: true });
  await writeFile(
    join(strangers, "troupe/v1/process_service.proto"),
    'syntax = "proto3"; package troupe.v1; message M {} service ProcessService { rpc Juggle(M) returns (M); }',
  );
  peers.set("@grpc/grpc-js", jsPeer(server.grpc));
  if (hasPython) peers.set("python3-grpcio", pythonPeer(server.grpc));
  peers.set("buf curl", bufPeer(server.grpc));
  bufOfStrangers = bufPeer(server.grpc, strangers);
});

afterAll(async () => {
  for (const peer of [...peers.values(), bufOfStrangers]) peer.close();
  await target.close();
  await server.kill();
  await removeFolder(server.folder);
  await rm(strangers, { recursive: true });
});

const { createProcess, getProcess, getProcessStdout, killProcess, runProcess, watchProcess } = ProcessService.method;
const { watchLogs } = LogService.method;
const { invokeTool } = ToolService.method;
const { createService, patchServiceConfig } = ServiceService.method;
const { listRegistries, addRegistry } = RegistryService.method;

/** A call has reached the target; one made at the same time has reached the server as well. */
const begunMs = 400;
const logsGoOn = { method: watchLogs, request: {} };

interface Refused {
  readonly kind: FailureKind;
  readonly method: DescMethod;
  readonly request: JsonValue;
  readonly metadata?: Record<string, string>;
  readonly rest: readonly [method: string, path: string, body?: unknown, headers?: Record<string, string>];
}

const patch = [{ op: "add", path: "/timeoutMs", value: 5 }];
/** One for each code that a caller can bring about. */
const refusals: readonly Refused[] = [
  { kind: "invalid_request", method: getProcess, request: { id: 0 }, rest: ["GET", "/processes/0"] },
  { kind: "not_found", method: getProcess, request: { id: 999 }, rest: ["GET", "/processes/999"] },
  { kind: "refused", method: runProcess, request: { id: 1 }, rest: ["POST", "/processes/1/signals/run", {}] },
  { kind: "conflict", method: killProcess, request: { id: 1 }, rest: ["POST", "/processes/1/signals/kill", {}] },
  {
    kind: "already_exists",
    method: createService,
    request: { id: "slow", definition: "{}", adapter: "openapi" },
    rest: ["POST", "/services", { id: "slow", definition: "{}", adapter: "openapi" }],
  },
  {
    kind: "etag_mismatch",
    method: patchServiceConfig,
    request: { serviceId: "slow", patch, ifMatch: "another" },
    rest: ["PATCH", "/services/slow/config", patch, { "if-match": '"another"' }],
  },
  {
    kind: "unauthenticated",
    method: getProcess,
    request: { id: 1 },
    metadata: { authorization: "Bearer nobody" },
    rest: ["GET", "/processes/1", undefined, { authorization: "Bearer nobody" }],
  },
  {
    kind: "forbidden",
    method: addRegistry,
    request: { baseUrl: "http://127.0.0.1:1" },
    metadata: agent,
    rest: ["POST", "/registries", { baseUrl: "http://127.0.0.1:1" }, agent],
  },
  {
    kind: "upstream_failed",
    method: addRegistry,
    request: { baseUrl: "http://127.0.0.1:1" },
    rest: ["POST", "/registries", { baseUrl: "http://127.0.0.1:1" }],
  },
];

const unknownMethod = { ...getProcess, name: "Juggle" } as DescMethod;

const stacks = [
  { name: "@grpc/grpc-js", title: "@grpc/grpc-js", isHere: true },
  { name: "buf curl", title: "buf curl", isHere: true },
  {
    name: "python3-grpcio",
    title: hasPython ? "python3-grpcio" : "python3-grpcio, left out because /usr/bin/python3 has no module grpc,",
    isHere: hasPython,
  },
];

describe.each(stacks)("$title", ({ name, isHere }) => {
  const ask = (one: Ask): Promise<Told> => {
    const peer = peers.get(name) ?? expect.unreachable(name);
    return peer.ask({ ...one, metadata: { ...operator, ...one.metadata } });
  };

  it.runIf(isHere)("sends an empty message and reads the answer", async () => {
    expect(await ask({ method: listRegistries })).toMatchObject({ code: 0, messages: [{ hasMore: false }] });
  });

  it.runIf(isHere)("sends a large message", async () => {
    const code = `//${"𝒳".repeat(102_398)}`;
    const told = await ask({ method: createProcess, request: { code, autorun: false } });
    expect(told.code, told.message).toBe(0);
  });

  it.runIf(isHere)("is told that a message is too large, and goes on", async () => {
    const told = await ask({ method: createProcess, request: { code: "x".repeat(2_500_000), autorun: false } });
    expect(told.code, told.message).toBe(8);
    expect((await ask({ method: listRegistries })).code).toBe(0);
  });

  it.runIf(isHere)("reads a large answer", async () => {
    const told = await ask({ method: getProcessStdout, request: { id: 1 } });
    expect(told.code, told.message).toBe(0);
    expect((told.messages[0] as { stdout: string }).stdout).toBe(`${printed}\n`);
  });

  it.runIf(isHere)("sends or reads compressed messages", async () => {
    const code = `/*${" ".repeat(50_000)}*/`;
    const told = await ask({ method: createProcess, request: { code, autorun: false }, compressed: true });
    expect(told.code, told.message).toBe(0);
    const watched = await ask({ method: watchProcess, request: { id: 2 }, compressed: true });
    expect(watched.code, watched.message).toBe(0);
    if (name === "buf curl") expect(watched.metadata["grpc-encoding"]).toBe("gzip");
  });

  it.runIf(isHere)("reads a stream to its end", async () => {
    const { code, messages } = await ask({ method: watchProcess, request: { id: 2 } });
    expect(code).toBe(0);
    expect(messages.map((one) => (one as { kind: string }).kind)).toEqual(
      expect.arrayContaining(["PROCESS_EVENT_KIND_SNAPSHOT", "PROCESS_EVENT_KIND_STDOUT", "PROCESS_EVENT_KIND_OUTPUT"]),
    );
    expect(textOf(messages).split("\n")).toHaveLength(linesPrinted + 1);
  });

  it.runIf(isHere)("reads a stream slowly and misses nothing", async () => {
    const [slow, quick] = await Promise.all([
      ask({ method: watchProcess, request: { id: 2 }, readAfterMs: 500 }),
      ask({ method: watchProcess, request: { id: 2 } }),
    ]);
    expect(slow.code).toBe(0);
    expect(slow.messages).toEqual(quick.messages);
  });

  it.runIf(isHere)("gives up at its deadline", async () => {
    const told = await Promise.all([
      ask({ ...logsGoOn, deadlineMs: 800 }),
      ask({ method: invokeTool, request: { serviceId: "slow", toolId: "hang" }, deadlineMs: 800 }),
    ]);
    expect(told.map(({ code }) => code)).toEqual([4, 4]);
  });

  it.runIf(isHere)("cancels a stream, and a call whose request to its target then ends", async () => {
    expect(await target.until(() => target.waiting.size === 0)).toBe(true);
    const before = target.left();
    const cancel = target.until(() => target.waiting.size === 1).then(() => pause(begunMs));
    const told = await Promise.all([
      ask({ ...logsGoOn, cancel }),
      ask({ method: invokeTool, request: { serviceId: "slow", toolId: "hang" }, cancel }),
    ]);
    expect(told.map(({ code }) => code)).toEqual([1, 1]);
    expect(await target.until(() => target.left() > before)).toBe(true);
  });

  it.runIf(isHere)("is told every refusal as REST is: the code, the words, the reason", async () => {
    const told = await Promise.all(
      refusals.map(({ method, request, metadata = {} }) => ask({ method, request, metadata })),
    );
    for (const [at, { kind, rest }] of refusals.entries()) {
      const [method, path, body, headers = {}] = rest;
      const answer = await server.call(method, path, body, { ...operator, ...headers });
      const { code, message } = told[at] as Told;
      expect({ kind, code, message }).toEqual({ kind, code: catalogue[kind].grpc, message: answer.body.error });
      expect(answer.status).toBe(catalogue[kind].rest);
      expect(detailsOf(told[at] as Told)).toMatchObject({ ErrorInfo: { reason: kind, domain: "troupe" } });
    }
    const [invalid] = told as [Told];
    expect(detailsOf(invalid)).toMatchObject({ BadRequest: { fieldViolations: [{ field: "id" }] } });
  });

  it.runIf(isHere)("is told that a method is not there", async () => {
    const told =
      name === "buf curl"
        ? await bufOfStrangers.ask({ method: unknownMethod, metadata: operator })
        : await ask({ method: unknownMethod });
    expect(told.code).toBe(12);
  });

  it.runIf(isHere)("sends metadata and reads it", async () => {
    for (const method of [getProcess, watchProcess]) {
      const told = await ask({ method, request: { id: 1 }, metadata: { "x-request-id": `asked-by-${name.length}` } });
      expect(told.code, told.message).toBe(0);
      expect(told.metadata["x-request-id"]).toBe(`asked-by-${name.length}`);
    }
  });
});

describe("a server that is told to end", () => {
  it("lets every peer finish what it has begun, ends their streams, takes nothing new, and exits in time", async () => {
    const all = [...peers.values()];
    const asked = target.asked();
    const idle = await Promise.all(Array.from({ length: 20 }, () => openConnection(server.grpc)));
    const idleHttp1 = await Promise.all(Array.from({ length: 20 }, () => openSocket(server.grpc)));
    for (const one of idleHttp1) await one.send(Buffer.from(`GET /nothing HTTP/1.1\r\nhost: ${server.grpc}\r\n\r\n`));
    const byHand = await openConnection(server.grpc);
    const head = grpcHeaders(server.grpc, pathOf(invokeTool), [["authorization", operator.authorization]]);
    const call = create(invokeTool.input, { serviceId: "slow", toolId: "slow" });
    const inFlight = Array.from({ length: 20 }, (_, at) => 1 + 2 * at);
    for (const id of inFlight) {
      await byHand.send(
        frame(frameTypes.headers, flags.endHeaders, id, headerBlock(head)),
        frame(frameTypes.data, flags.endStream, id, envelope(toBinary(invokeTool.input, call))),
      );
    }
    const calls = all.map((peer) =>
      peer.ask({ method: invokeTool, request: { serviceId: "slow", toolId: "slow" }, metadata: operator }),
    );
    const streams = all.map((peer) => peer.ask({ ...logsGoOn, metadata: operator }));
    expect(await target.until(() => target.asked() === asked + all.length + inFlight.length)).toBe(true);
    await pause(begunMs);
    const started = performance.now();
    const ended = server.kill("SIGTERM");
    expect(await byHand.until(() => byHand.has(frameTypes.goaway, 0))).toBe(true);
    await byHand.send(frame(frameTypes.headers, flags.endHeaders | flags.endStream, 99, headerBlock(head)));
    for (const one of [...idle, ...idleHttp1]) expect(await one.until(() => one.isClosed)).toBe(true);
    for (const one of idle) expect(one.has(frameTypes.goaway, 0)).toBe(true);
    for (const told of await Promise.all(calls)) {
      expect(told).toMatchObject({ code: 0, messages: [{ result: { body: { late: true } } }] });
    }
    expect(await byHand.until(() => inFlight.every((id) => byHand.has(frameTypes.headers, id, flags.endStream)))).toBe(
      true,
    );
    // Each had a message besides its headers and trailers; what was asked after GOAWAY had nothing.
    expect(inFlight.filter((id) => !byHand.has(frameTypes.data, id))).toEqual([]);
    expect(byHand.has(frameTypes.data, 99)).toBe(false);
    for (const told of await Promise.all(streams)) expect(told.code).toBe(14);
    const late = await Promise.all(
      all.map((peer) => peer.ask({ method: getProcess, request: { id: 1 }, metadata: operator })),
    );
    for (const [at, told] of late.entries()) {
      // buf curl says so with an exit code of its own: it does not come as far as a call.
      if (all[at]?.name === "buf curl") expect(told.code).not.toBe(0);
      else expect(told.code).toBe(14);
    }
    expect(await ended).toBe(0);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});

function textOf(messages: readonly JsonValue[]): string {
  return messages.map((one) => (one as { kind: string; text?: string }).text ?? "").join("");
}
