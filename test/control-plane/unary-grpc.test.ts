/**
 * The same bytes answered on the short way and by Connect, which gets them because of a capital letter in the Content-Type: whatever a
 * client sends, it must not be able to tell which of the two it met.
 */
import { once } from "node:events";
import http2 from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureKinds } from "../../src/errors/failure.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { GetProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { bodyBytesMax } from "../../src/limits.ts";
import { envelope } from "../e2e/grpc/raw-http2.ts";
import { crashingId, failingId } from "./fake-processes.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let session: http2.ClientHttp2Session;
beforeAll(async () => {
  faces = await openTwoFaces();
  session = http2.connect(faces.rpc);
});
afterAll(async () => {
  session.close();
  await faces.close();
});

const shortWay = "application/grpc";
const byConnect = "application/gRPC";

interface Seen {
  readonly httpStatus: unknown;
  readonly status: unknown;
  readonly message: unknown;
  readonly details: unknown;
  readonly requestId: unknown;
  readonly body: string;
}

function exchange(contentType: string, body: Buffer, headers: http2.OutgoingHttpHeaders = {}): Promise<Seen> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/troupe.v1.ProcessService/GetProcess",
    "content-type": contentType,
    te: "trailers",
    "x-request-id": "same",
    ...headers,
  });
  stream.end(body);
  return new Promise((resolve, reject) => {
    let head: http2.IncomingHttpHeaders = {};
    let trailers: http2.IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on("response", (given) => {
      head = given;
    });
    stream.on("trailers", (given) => {
      trailers = given;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => {
      const all = { ...head, ...trailers };
      resolve({
        httpStatus: head[":status"],
        status: all["grpc-status"],
        message: all["grpc-message"],
        details: all["grpc-status-details-bin"],
        requestId: all["x-request-id"],
        body: Buffer.concat(chunks).toString("hex"),
      });
    });
  });
}

const get = (id: number): Buffer =>
  envelope(toBinary(GetProcessRequestSchema, create(GetProcessRequestSchema, { id: BigInt(id) })));

const bodies: readonly (readonly [title: string, body: Buffer])[] = [
  ["one message", get(1)],
  ["a message with a field that nobody knows", envelope(Buffer.from([0x08, 0x01, 0xfa, 0x3e, 0x01, 0x61]))],
  ["no message", Buffer.alloc(0)],
  ["an empty message", envelope(Buffer.alloc(0))],
  ["a prefix cut short", Buffer.from([0, 0, 0])],
  ["a prefix and nothing", Buffer.from([0, 0, 0, 0, 5])],
  ["a message cut short", envelope(Buffer.from([0x08]), { declared: 2 })],
  ["two messages", Buffer.concat([get(1), get(2)])],
  ["a compressed flag without a compression", envelope(Buffer.from([0x08, 0x01]), { flag: 1 })],
  ["a field cut short", envelope(Buffer.from([0x08]))],
  ["a wire type that does not exist", envelope(Buffer.from([0x0f, 0x01]))],
  ["noise", envelope(Buffer.from("ffffffffffffffffffff", "hex"))],
  ["a length beyond the limit", envelope(Buffer.alloc(0), { declared: bodyBytesMax + 1 })],
  ["the greatest length there is", envelope(Buffer.alloc(0), { declared: 0xffff_ffff })],
  ["a process that is not there", get(999_999)],
  ["an id that is none", envelope(toBinary(GetProcessRequestSchema, create(GetProcessRequestSchema, { id: -1n })))],
  ["a crash", get(crashingId)],
  ...failureKinds.map((kind) => [`the failure ${kind}`, get(failingId(kind))] as const),
];

const headerSets: readonly (readonly [title: string, headers: http2.OutgoingHttpHeaders])[] = [
  ["a deadline that has passed", { "grpc-timeout": "0n" }],
  ["a deadline of a year", { "grpc-timeout": "8760H" }],
  ["a deadline that cannot be read", { "grpc-timeout": "soon" }],
  ["a deadline with nine digits", { "grpc-timeout": "123456789m" }],
  ["no compression, said", { "grpc-encoding": "identity" }],
  ["a compression that nobody knows", { "grpc-encoding": "zebra" }],
  ["two request ids", { "x-request-id": ["one", "two"] }],
  ["a foreign Origin", { origin: "https://evil.example" }],
  ["a Host that is not ours", { ":authority": "evil.example" }],
];

describe("a unary gRPC call is answered the same on both ways", () => {
  it.each(bodies)("with %s", async (_title, body) => {
    const [short, connect] = await Promise.all([exchange(shortWay, body), exchange(byConnect, body)]);
    expect(short.status).toBeDefined();
    for (const seen of [short, connect]) expectExplained(seen);
    if (short.status === "8" && connect.status === "8") {
      // How much was read when it became too much is not the same.
      expect(short.httpStatus).toBe(connect.httpStatus);
    } else expect(short).toEqual(connect);
  });

  it.each(headerSets)("with %s", async (_title, headers) => {
    const [short, connect] = await Promise.all([
      exchange(shortWay, get(1), headers),
      exchange(byConnect, get(1), headers),
    ]);
    for (const seen of [short, connect]) expectExplained(seen);
    if (Array.isArray(headers["x-request-id"])) {
      expect(short.status).toBe("0");
      expect({ ...short, requestId: "" }).toEqual({ ...connect, requestId: "" });
    } else expect(short).toEqual(connect);
  });
});

/** Whatever was wrong, and whoever found it: the reason is there for programs. */
function expectExplained({ status, details }: Seen): void {
  if (status === "0") return;
  const explained = fromBinary(StatusSchema, Buffer.from(String(details), "base64"));
  expect(explained.code).toBe(Number(status));
  const infos = explained.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).filter((info) => info);
  expect(infos).toMatchObject([{ domain: "troupe", reason: expect.stringMatching(/^[a-z_]+$/) }]);
  expect(failureKinds).toContain(infos[0]?.reason);
}

describe("a deadline counts while the message is still arriving", () => {
  const halfSent = (contentType: string): http2.ClientHttp2Stream => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/troupe.v1.ProcessService/GetProcess",
      "content-type": contentType,
      "grpc-timeout": "50m",
    });
    stream.write(get(1).subarray(0, 3));
    return stream;
  };

  it("and is answered on the short way", async () => {
    const stream = halfSent(shortWay);
    const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
    expect(head["grpc-status"]).toBe("4");
    stream.close();
  });

  it("and ends the stream that Connect has", async () => {
    const stream = halfSent(byConnect);
    await once(stream, "close");
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
  });
});

it("a client that sends its message byte by byte is answered", async () => {
  const stream = session.request({
    ":method": "POST",
    ":path": "/troupe.v1.ProcessService/GetProcess",
    "content-type": shortWay,
  });
  const trailers = new Promise<http2.IncomingHttpHeaders>((resolve) => stream.on("trailers", resolve));
  for (const byte of get(1)) {
    stream.write(Buffer.from([byte]));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  stream.end();
  stream.resume();
  expect((await trailers)["grpc-status"]).toBe("0");
});

it("a client that leaves in the middle of its message leaves nothing in the log", async () => {
  const stream = session.request({
    ":method": "POST",
    ":path": "/troupe.v1.ProcessService/GetProcess",
    "content-type": shortWay,
  });
  stream.on("error", () => undefined);
  const before = faces.lines.length;
  stream.write(get(1).subarray(0, 3));
  await new Promise((resolve) => setTimeout(resolve, 50));
  stream.close(http2.constants.NGHTTP2_CANCEL);
  expect((await exchange(shortWay, get(1))).status).toBe("0");
  expect(faces.lines.slice(before).filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});
