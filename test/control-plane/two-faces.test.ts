/**
 * One table of requests, asked over REST and over gRPC, gRPC-Web and Connect: the same input reaches the row, the same answer
 * or the same refusal comes back.
 */
import { type DescMethodUnary, type DescService, type Message, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { messageReader, messageWriter } from "../../src/control-plane/codec.ts";
import { catalogue } from "../../src/errors/catalogue.ts";
import { type FailureKind, failureKinds } from "../../src/errors/failure.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { ServiceService } from "../../src/gen/troupe/v1/service_service_pb.ts";
import { ToolService } from "../../src/gen/troupe/v1/tool_service_pb.ts";
import { crashingId, createdAt, failingId, secretCause } from "./fake-processes.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let transports: Readonly<Record<string, Transport>>;
beforeAll(async () => {
  faces = await openTwoFaces();
  const baseUrl = faces.rpc;
  transports = {
    gRPC: createGrpcTransport({ baseUrl }),
    "gRPC-Web over HTTP/1.1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    "Connect over HTTP/1.1": createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    "Connect JSON over HTTP/2": createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
  };
});
afterAll(() => faces.close());

const protocols = ["gRPC", "gRPC-Web over HTTP/1.1", "Connect over HTTP/1.1", "Connect JSON over HTTP/2"];

async function rpc(
  protocol: string,
  service: DescService,
  rpcName: string,
  input: unknown,
  headers: Record<string, string> = {},
) {
  const method = service.methods.find((one) => one.name === rpcName) as DescMethodUnary;
  const row = faces.domain.operations.find((one) => one.name === method.localName);
  const request = messageWriter(method.input)(input);
  const transport = transports[protocol] as Transport;
  const answer = await transport.unary(method, undefined, undefined, headers, request as never);
  return {
    header: answer.header,
    output: messageReader(method.output, row?.output)(answer.message as Message),
    message: answer.message,
    method,
  };
}

async function rest(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const init: RequestInit = {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
  };
  if (body !== undefined) init.body = JSON.stringify(body);
  const answer = await fetch(`${faces.rest}${path}`, init);
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.startsWith("application/json") ?? false;
  return { status: answer.status, headers: answer.headers, body: isJson ? (JSON.parse(text) as unknown) : text };
}

interface Case {
  readonly title: string;
  readonly rest: readonly [method: string, path: string, body?: unknown];
  readonly rpc: readonly [service: DescService, name: string, input: unknown];
  /** Output of the row, and the part of it that REST sends. */
  readonly output: unknown;
  readonly body: unknown;
}

const idle = (id: number) => ({
  id,
  pid: null,
  state: "idle",
  exitState: id % 2 === 0 ? "success" : null,
  error: null,
  createdAt,
  completedAt: null,
});

const cases: readonly Case[] = [
  {
    title: "create with every field",
    rest: [
      "POST",
      "/processes",
      { code: "1", ref: " r ", timeoutMs: 1.5, envConfig: { a: [null, { b: "c" }] }, autorun: false },
    ],
    rpc: [
      ProcessService,
      "CreateProcess",
      { code: "1", ref: " r ", timeoutMs: 1.5, envConfig: { a: [null, { b: "c" }] }, autorun: false },
    ],
    output: { id: 7 },
    body: { id: 7 },
  },
  {
    title: "create without a time limit",
    rest: ["POST", "/processes", { code: "", timeoutMs: null }],
    rpc: [ProcessService, "CreateProcess", { code: "", noTimeout: true }],
    output: { id: 7 },
    body: { id: 7 },
  },
  {
    title: "get with null fields",
    rest: ["GET", "/processes/41"],
    rpc: [ProcessService, "GetProcess", { id: 41 }],
    output: { process: idle(41) },
    body: idle(41),
  },
  {
    title: "get with an exit state",
    rest: ["GET", "/processes/42?wait=3"],
    rpc: [ProcessService, "GetProcess", { id: 42, wait: 3 }],
    output: { process: idle(42) },
    body: idle(42),
  },
  {
    title: "list with an optional field present",
    rest: ["GET", "/processes?limit=2&ref=%C3%A4%26&state=idle"],
    rpc: [ProcessService, "ListProcesses", { limit: 2, ref: "ä&", state: "idle" }],
    output: { items: [{ ...idle(2), ref: "ä&" }], nextCursor: null, hasMore: false },
    body: { items: [{ ...idle(2), ref: "ä&" }], nextCursor: null, hasMore: false },
  },
  {
    title: "open JSON output",
    rest: ["GET", "/processes/9/output"],
    rpc: [ProcessService, "GetProcessOutput", { id: 9 }],
    output: { output: { id: 9, nested: [null, true, { text: "ä😀" }] } },
    body: { id: 9, nested: [null, true, { text: "ä😀" }] },
  },
  {
    title: "text output",
    rest: ["GET", "/processes/9/code"],
    rpc: [ProcessService, "GetProcessCode", { id: 9 }],
    output: { code: "return 9; // ✓" },
    body: "return 9; // ✓",
  },
  {
    title: "no output",
    rest: ["DELETE", "/services/petstore"],
    rpc: [ServiceService, "DeleteService", { serviceId: "petstore" }],
    output: {},
    body: "",
  },
  {
    title: "a whole body that is one field",
    rest: [
      "PATCH",
      "/services/petstore/config",
      [
        { op: "add", path: "/a", value: null },
        { op: "remove", path: "/b" },
      ],
    ],
    rpc: [
      ServiceService,
      "PatchServiceConfig",
      {
        serviceId: "petstore",
        patch: [
          { op: "add", path: "/a", value: null },
          { op: "remove", path: "/b" },
        ],
      },
    ],
    output: { config: { patched: 2 }, outdated: [] },
    body: { config: { patched: 2 }, outdated: [] },
  },
  ...[null, 0, "x", [1, [2]], { a: { b: null } }].map((value) => ({
    title: `any JSON in and out: ${JSON.stringify(value)}`,
    rest: ["POST", "/tools/s/t/invoke", { parameters: value }] as const,
    rpc: [ToolService, "InvokeTool", { serviceId: "s", toolId: "t", parameters: value }] as const,
    output: { result: value },
    body: value,
  })),
];

describe("the same request through both faces", () => {
  for (const one of cases) {
    it(`${one.title}: one input, one answer`, async () => {
      const answer = await rest(...one.rest);
      expect(answer.body).toEqual(one.body);
      expect(answer.status).toBeLessThan(300);
      const seenByRest = faces.domain.seen.at(-1)?.input;
      for (const protocol of protocols) {
        const { output } = await rpc(protocol, ...one.rpc);
        expect(output, protocol).toEqual(one.output);
        expect(faces.domain.seen.at(-1)?.input, protocol).toEqual(seenByRest);
      }
    });
  }
});

describe("the same refusal through both faces", () => {
  const caught = async (protocol: string, id: number): Promise<ConnectError> => {
    try {
      await rpc(protocol, ProcessService, "GetProcess", { id });
    } catch (error) {
      return ConnectError.from(error);
    }
    throw new Error("The call did not fail");
  };

  it.each(failureKinds)("%s has its REST status and its gRPC code", async (kind) => {
    const answer = await rest("GET", `/processes/${failingId(kind)}`);
    expect(answer.status).toBe(catalogue[kind].rest);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    expectEnvelope(kind, answer);
    for (const protocol of protocols) {
      const error = await caught(protocol, failingId(kind));
      expect(error.code, protocol).toBe(catalogue[kind].grpc);
      expect(error.findDetails(ErrorInfoSchema)[0], protocol).toMatchObject({ reason: kind, domain: "troupe" });
      expect(error.message, protocol).not.toContain("hunter2");
      if (kind !== "internal") expect(error.rawMessage, protocol).toBe(`Refused as ${kind}`);
    }
  });

  function expectEnvelope(kind: FailureKind, answer: Awaited<ReturnType<typeof rest>>): void {
    if (catalogue[kind].rest === 429) {
      const retryAfter = kind === "rate_limit_exceeded" ? 17 : 1;
      expect(answer.body).toEqual({ error: "rate_limit_exceeded", message: `Refused as ${kind}`, retryAfter });
      for (const name of ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]) {
        expect(answer.headers.get(name)).toMatch(/^\d+$/);
      }
      expect(answer.headers.get("retry-after")).toBe(String(retryAfter));
      return;
    }
    const message = kind === "internal" ? expect.stringContaining("Internal error") : `Refused as ${kind}`;
    expect(answer.body).toEqual({ error: message, code: kind });
    if (kind === "unauthenticated") expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    if (kind === "unavailable") expect(answer.headers.get("retry-after")).toBe("5");
  }

  it("rate limit headers are those of the exhaustion", async () => {
    const { headers } = await rest("GET", `/processes/${failingId("rate_limit_exceeded")}`);
    expect(headers.get("x-ratelimit-limit")).toBe("30");
    expect(headers.get("x-ratelimit-remaining")).toBe("0");
    expect(headers.get("x-ratelimit-reset")).toBe("1800000000");
  });

  it("waiting time and fields travel as RetryInfo and BadRequest", async () => {
    const limited = await caught("gRPC", failingId("rate_limit_exceeded"));
    expect(limited.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds).toBe(17n);
    const invalid = await caught("gRPC", failingId("invalid_request"));
    expect(invalid.findDetails(BadRequestSchema)[0]?.fieldViolations[0]).toMatchObject({
      field: "timeoutMs",
      description: "must be above 0",
    });
  });

  it("a crash is internal, without its cause, and logged once under the request id", async () => {
    const answer = await rest("GET", `/processes/${crashingId}`, undefined, { "x-request-id": "crash-1" });
    expect(answer.status).toBe(500);
    expect(answer.headers.get("x-request-id")).toBe("crash-1");
    expect(JSON.stringify(answer.body)).not.toMatch(/hunter2|TypeError|\.ts|\bat \//);
    const errors = faces.lines.filter((line) => line.level === "error" && line.fields.requestId === "crash-1");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.fields.error).toMatchObject({ message: secretCause });
    const error = await caught("gRPC", crashingId);
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe((answer.body as { error: string }).error);
  });

  it("a field that does not fit is named by both", async () => {
    const answer = await rest("POST", "/processes", { code: "1", timeoutMs: -1 });
    expect(answer.status).toBe(400);
    const message = (answer.body as { error: string }).error;
    expect(message).toContain('"timeoutMs"');
    const error = await rpc("gRPC", ProcessService, "CreateProcess", { code: "1", timeoutMs: -1 }).catch(
      ConnectError.from,
    );
    expect(error).toBeInstanceOf(ConnectError);
    expect((error as ConnectError).rawMessage).toBe(message);
    expect((error as ConnectError).code).toBe(Code.InvalidArgument);
  });
});

describe("request ids", () => {
  it.each(["abc", "A.b-c_d~1:2/3+4=@5", "x".repeat(128)])(
    "a well-formed one comes back from both faces: %s",
    async (id) => {
      const headers = { "x-request-id": id };
      expect((await rest("GET", "/processes/1", undefined, headers)).headers.get("x-request-id")).toBe(id);
      expect((await rpc("gRPC", ProcessService, "GetProcess", { id: 1 }, headers)).header.get("x-request-id")).toBe(id);
      expect(faces.domain.seen.at(-1)?.context.requestId).toBe(id);
    },
  );

  it.each(["", "a b", "x".repeat(129), '"quoted"', "a,b", "{json}"])("another is replaced: %j", async (id) => {
    const headers = { "x-request-id": id };
    const made = (await rest("GET", "/processes/1", undefined, headers)).headers.get("x-request-id");
    expect(made).toMatch(/^[0-9a-f-]{36}$/);
    const other = (await rpc("gRPC", ProcessService, "GetProcess", { id: 1 }, headers)).header.get("x-request-id");
    expect(other).toMatch(/^[0-9a-f-]{36}$/);
  });
});

it("proto3 JSON of an answer has the REST names", async () => {
  const { message, method } = await rpc("gRPC", ProcessService, "GetProcess", { id: 2 });
  expect(toJson(method.output, message as never)).toEqual({
    process: { id: "2", state: "PROCESS_STATE_IDLE", exitState: "PROCESS_EXIT_STATE_SUCCESS", createdAt },
  });
});
