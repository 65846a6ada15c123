/** The control plane as clients meet it: deadlines, cancellation, limits, odd requests, closing. */
import http2 from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rpcsWithoutRow } from "../../src/control-plane/rpc-routes.ts";
import { troupeServices } from "../../src/control-plane/services.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { CreateProcessRequestSchema, ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { ToolService } from "../../src/gen/troupe/v1/tool_service_pb.ts";
import { rawRequest, rawUntilClosed } from "../gateway/raw-http.ts";
import { hangingId, slowId } from "./fake-processes.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
beforeEach(async () => {
  faces = await openTwoFaces();
});
afterEach(() => faces.close());

const grpcClient = () => createClient(ProcessService, createGrpcTransport({ baseUrl: faces.rpc }));
const caught = (call: Promise<unknown>): Promise<ConnectError> =>
  call.then(
    () => {
      throw new Error("The call did not fail");
    },
    (reason: unknown) => ConnectError.from(reason),
  );

interface H2Answer {
  readonly status: string;
  readonly grpcStatus: string | undefined;
  readonly contentType: string | undefined;
}

/** One HTTP/2 request by hand. */
function h2Request(path: string, headers: Record<string, string>, body: Buffer): Promise<H2Answer> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(faces.rpc);
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    let answer: H2Answer = { status: "", grpcStatus: undefined, contentType: undefined };
    stream.on("response", (fields) => {
      answer = {
        status: String(fields[":status"]),
        grpcStatus: fields["grpc-status"]?.toString(),
        contentType: fields["content-type"],
      };
    });
    stream.on("trailers", (fields) => {
      answer = { ...answer, grpcStatus: fields["grpc-status"]?.toString() };
    });
    stream.on("error", () => undefined); // a reset after the answer; the answer is what counts
    stream.on("close", () => {
      session.close();
      resolve(answer);
    });
    stream.resume();
    stream.end(body);
  });
}

function framed(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const getProcessPath = "/troupe.v1.ProcessService/GetProcess";
const createPath = "/troupe.v1.ProcessService/CreateProcess";
const grpcHeaders = { "content-type": "application/grpc", te: "trailers" };

describe("rpcs and rows", () => {
  it("an rpc without a row answers UNIMPLEMENTED, and such rpcs can be listed", async () => {
    const missing = rpcsWithoutRow(troupeServices, faces.domain.operations);
    expect(missing).toContain("ProcessService.KillProcess");
    expect(missing).not.toContain("ProcessService.GetProcess");
    expect((await caught(grpcClient().killProcess({ id: 1n }))).code).toBe(Code.Unimplemented);
  });

  it("an unknown rpc or service is UNIMPLEMENTED in the caller's protocol", async () => {
    for (const path of ["/troupe.v1.ProcessService/Nothing", "/troupe.v9.Nothing/GetProcess", "/"]) {
      expect(await h2Request(path, grpcHeaders, framed(new Uint8Array()))).toMatchObject({
        status: "200",
        grpcStatus: "12",
      });
      const connect = await fetch(`${faces.rpc}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      expect(connect.status).toBe(404);
      expect(await connect.json()).toMatchObject({ code: "unimplemented" });
    }
  });

  it("Connect answers a GET of an rpc without side effects, and no other", async () => {
    const query = `?connect=v1&encoding=json&message=${encodeURIComponent('{"id":"42"}')}`;
    const answer = await fetch(`${faces.rpc}${getProcessPath}${query}`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ process: { id: "42" } });
    expect((await fetch(`${faces.rpc}/troupe.v1.ProcessService/DeleteProcess${query}`)).status).toBe(405);
  });
});

describe("R-095: deadlines and cancellation", () => {
  it.each([
    ["gRPC", () => createGrpcTransport({ baseUrl: faces.rpc })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: faces.rpc, httpVersion: "1.1" })],
    ["Connect over HTTP/1.1", () => createConnectTransport({ baseUrl: faces.rpc, httpVersion: "1.1" })],
    ["Connect over HTTP/2", () => createConnectTransport({ baseUrl: faces.rpc, httpVersion: "2" })],
  ])("a deadline ends the answer and the work: %s", async (_title, transport) => {
    const client = createClient(ProcessService, transport());
    const started = performance.now();
    const error = await caught(client.getProcess({ id: BigInt(hangingId) }, { timeoutMs: 100 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(performance.now() - started).toBeLessThan(2_000);
    await expect.poll(() => faces.domain.aborted.length).toBe(1);
    expect(["timeout", "cancelled"]).toContain((faces.domain.aborted[0] as { kind: string }).kind);
  });

  it("the deadline is the server's to keep: a client that only announces it gets DEADLINE_EXCEEDED", async () => {
    const body = framed(Buffer.from([8, ...varint(hangingId)]));
    const answer = await h2Request(getProcessPath, { ...grpcHeaders, "grpc-timeout": "100m" }, body);
    expect(answer.grpcStatus).toBe("4");
    expect(faces.domain.aborted).toMatchObject([{ kind: "timeout" }]);
  });

  it.each(["99999999H", "99999999M", "99999999S", "99999999m", "1H"])(
    "a timeout longer than timers run is no timeout at once: %s",
    async (timeout) => {
      const answer = await h2Request(
        getProcessPath,
        { ...grpcHeaders, "grpc-timeout": timeout },
        framed(Buffer.from([8, 1])),
      );
      expect(answer.grpcStatus).toBe("0");
    },
  );

  it("Connect's timeout header likewise", async () => {
    const answer = await fetch(`${faces.rpc}${getProcessPath}`, {
      method: "POST",
      headers: { "content-type": "application/json", "connect-timeout-ms": "9999999999" },
      body: '{"id":"1"}',
    });
    expect(answer.status).toBe(200);
  });

  it("a caller that goes away aborts the signal", async () => {
    const stop = new AbortController();
    const calling = caught(grpcClient().getProcess({ id: BigInt(hangingId) }, { signal: stop.signal }));
    await expect.poll(() => faces.domain.seen.length).toBe(1);
    stop.abort();
    expect((await calling).code).toBe(Code.Canceled);
    await expect.poll(() => faces.domain.aborted).toMatchObject([{ kind: "cancelled" }]);
  });

  it("a finished call's signal stays quiet", async () => {
    await grpcClient().getProcess({ id: 1n });
    const context = faces.domain.seen.at(-1)?.context;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(context?.signal.aborted).toBe(false);
  });
});

describe("R-096 and R-107: sizes and depths", () => {
  it("a message larger than the limit is RESOURCE_EXHAUSTED, also when only announced", async () => {
    const error = await caught(grpcClient().createProcess({ code: "x".repeat(5 * 1024 * 1024) }));
    expect(error.code).toBe(Code.ResourceExhausted);
    const announced = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3]);
    expect((await h2Request(createPath, grpcHeaders, announced)).grpcStatus).toBe("8");
    expect((await grpcClient().getProcess({ id: 1n })).process?.id).toBe(1n);
  });

  it("a small message that unfolds beyond the limit is RESOURCE_EXHAUSTED", async () => {
    const { gzipSync } = await import("node:zlib");
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024));
    const before = process.memoryUsage().rss;
    const answer = await h2Request(createPath, { ...grpcHeaders, "grpc-encoding": "gzip" }, framed(bomb, 1));
    expect(answer.grpcStatus).toBe("8");
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  const nested = (levels: number) => `{"code":"1","envConfig":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
  const postJson = (body: string) =>
    fetch(`${faces.rpc}${createPath}`, { method: "POST", headers: { "content-type": "application/json" }, body });

  it("nesting is held to the same depth as on the REST face", async () => {
    const rest = (body: string) =>
      fetch(`${faces.rest}/processes`, { method: "POST", headers: { "content-type": "application/json" }, body });
    for (const levels of [1, 61, 62, 63, 64, 65, 100]) {
      const statuses = [(await rest(nested(levels))).ok, (await postJson(nested(levels))).ok];
      // The REST body adds one level, the body itself, which in a message is no JSON.
      if (levels !== 63) expect(statuses[0], String(levels)).toBe(statuses[1]);
    }
    expect((await postJson(nested(100_000))).status).toBe(400);
    const deep = JSON.parse(nested(60)) as { envConfig: object };
    const message = create(CreateProcessRequestSchema, { code: "1", envConfig: deep.envConfig as never });
    expect(
      (await h2Request(createPath, grpcHeaders, framed(toBinary(CreateProcessRequestSchema, message)))).grpcStatus,
    ).toBe("0");
  });

  it("R-109: prototype keys are refused with the same words as on the REST face", async () => {
    const body = '{"code":"1","envConfig":{"__proto__":{"x":1}}}';
    const answer = await postJson(body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining('forbidden key "__proto__"'),
    });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe("R-100: odd requests", () => {
  it("another content type is 415", async () => {
    expect((await h2Request(getProcessPath, { "content-type": "text/plain" }, Buffer.from("x"))).status).toBe("415");
  });

  it("bytes that are no message, or no UTF-8, are INVALID_ARGUMENT", async () => {
    expect((await h2Request(getProcessPath, grpcHeaders, framed(Buffer.from([0xff, 0xff, 0xff])))).grpcStatus).toBe(
      "3",
    );
    const badText = Buffer.from([0x0a, 2, 0xc3, 0x28]); // field 1, two bytes that are not UTF-8
    expect((await h2Request(createPath, grpcHeaders, framed(badText))).grpcStatus).toBe("3");
  });

  it("JSON that is not the message is INVALID_ARGUMENT; unknown fields are ignored", async () => {
    const post = async (body: string) =>
      (
        await fetch(`${faces.rpc}${getProcessPath}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body,
        })
      ).status;
    for (const body of ["", "{", "[]", "null", '{"id":"x"}', '{"id":1.5}', '{"id":{}}'])
      expect(await post(body), body).toBe(400);
    expect(await post('{"id":1,"unknown":true}')).toBe(200);
  });

  it("an id of nothing is INVALID_ARGUMENT with the field", async () => {
    const error = await caught(grpcClient().getProcess({}));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.rawMessage).toContain('"id"');
    expect(error.findDetails(ErrorInfoSchema)[0]?.reason).toBe("invalid_request");
  });

  it.each([
    ["no Host", "POST /troupe.v1.ProcessService/GetProcess HTTP/1.0\r\ncontent-length: 0\r\n\r\n", 400],
    ["a malformed Host", "POST /x HTTP/1.1\r\nHost: a b\r\ncontent-length: 0\r\n\r\n", 400],
    ["not HTTP", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", 400],
  ])("HTTP/1.1 with %s is refused and the server lives", async (_title, text, status) => {
    expect((await rawRequest(faces.controlPlane.address.port, text)).status).toBe(status);
    expect((await grpcClient().getProcess({ id: 1n })).process?.id).toBe(1n);
  });

  it("bytes that trickle in are told apart all the same", async () => {
    const body = '{"id":"42"}';
    const text = `POST ${getProcessPath} HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const net = await import("node:net");
    const socket = net.connect(faces.controlPlane.address.port, "127.0.0.1").setNoDelay();
    let received = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      received += chunk;
    });
    for (const byte of text.slice(0, 6)) {
      socket.write(byte);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    socket.write(text.slice(6));
    await new Promise((resolve) => socket.on("close", resolve));
    expect(received).toContain("200 OK");
  });

  it("many connections that say nothing, or reset, harm nobody", async () => {
    const net = await import("node:net");
    const sockets = Array.from({ length: 50 }, () => net.connect(faces.controlPlane.address.port, "127.0.0.1"));
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    for (const [at, socket] of sockets.entries()) {
      socket.on("error", () => undefined);
      if (at % 2 === 0) socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n garbage that is no frame at all");
      if (at % 3 === 0) socket.resetAndDestroy();
    }
    expect((await grpcClient().getProcess({ id: 1n })).process?.id).toBe(1n);
    for (const socket of sockets) socket.destroy();
  });
});

describe("R-099: closing", () => {
  it("lets calls in flight finish, says GOAWAY, and refuses new ones", async () => {
    const transport = createGrpcTransport({ baseUrl: faces.rpc });
    const client = createClient(ProcessService, transport);
    const session = http2.connect(faces.rpc);
    session.on("error", () => undefined);
    await new Promise((resolve) => session.once("connect", resolve));
    const goneAway = new Promise((resolve) => session.once("goaway", resolve));
    const slow = Array.from({ length: 5 }, () => client.getProcess({ id: BigInt(slowId) }));
    const slowH1 = createClient(
      ToolService,
      createConnectTransport({ baseUrl: faces.rpc, httpVersion: "1.1" }),
    ).invokeTool({ serviceId: "s", toolId: "t" });
    await slowH1;
    await expect.poll(() => faces.domain.seen.length).toBe(6);
    const started = performance.now();
    const closed = faces.controlPlane.close(8_000);
    await goneAway;
    expect((await Promise.all(slow)).map((answer) => answer.process?.id)).toEqual(Array(5).fill(BigInt(slowId)));
    await closed;
    expect(performance.now() - started).toBeLessThan(6_000);
    expect((await caught(client.getProcess({ id: 1n }))).code).toBe(Code.Unavailable);
  });

  it("cuts what does not end at the limit, idle HTTP/1.1 and silent connections at once", async () => {
    const port = faces.controlPlane.address.port;
    const silent = rawUntilClosed(port, []);
    const idle = rawUntilClosed(port, [`GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n`]);
    const hanging = caught(grpcClient().getProcess({ id: BigInt(hangingId) }));
    await expect.poll(() => faces.domain.seen.length).toBe(1);
    const started = performance.now();
    const closed = faces.controlPlane.close(1_000);
    await Promise.all([silent, idle]);
    expect(performance.now() - started).toBeLessThan(900);
    await closed;
    expect((await hanging).code).not.toBe(undefined);
    expect(performance.now() - started).toBeLessThan(5_000);
    await expect.poll(() => faces.domain.aborted.length).toBe(1);
  });
});

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 128);
  }
}
