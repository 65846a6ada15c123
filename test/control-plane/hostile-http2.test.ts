/** HTTP/2 used against the server. What matters is that other clients do not notice. */
import http2 from "node:http2";
import net from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let other: ReturnType<typeof createClient<typeof ProcessService>>;
beforeEach(async () => {
  faces = await openTwoFaces();
  other = createClient(ProcessService, createGrpcTransport({ baseUrl: faces.rpc }));
  await other.getProcess({ id: 1n });
});
afterEach(() => faces.close());

const megabytes = () => process.memoryUsage().rss / 1024 / 1024;

it("R-097: streams opened and reset by the thousand are cut off, and others are served", async () => {
  const before = megabytes();
  const session = http2.connect(faces.rpc);
  let isClosed = false;
  session.on("error", () => undefined);
  session.on("close", () => {
    isClosed = true;
  });
  for (let at = 0; at < 20_000 && !isClosed; at += 1) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/troupe.v1.ProcessService/GetProcess",
      "content-type": "application/grpc",
    });
    stream.on("error", () => undefined);
    stream.close(http2.constants.NGHTTP2_CANCEL);
    if (at % 500 === 0) {
      const started = performance.now();
      expect((await other.getProcess({ id: 1n })).process?.id).toBe(1n);
      expect(performance.now() - started).toBeLessThan(10_000);
    }
  }
  expect(isClosed).toBe(true);
  expect((await other.getProcess({ id: 1n })).process?.id).toBe(1n);
  expect(megabytes() - before).toBeLessThan(256); // client and server share this process
  expect(faces.lines.filter((line) => line.level === "error")).toEqual([]);
});

function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

it.each([
  ["goes on", false],
  ["is cut in the middle", true],
])("R-098: a header block that never ends and %s is closed early", async (_title, cut) => {
  const before = megabytes();
  const socket = net.connect(faces.controlPlane.address.port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.on("error", () => undefined);
  socket.resume();
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(4, 0, 0, Buffer.alloc(0)));
  socket.write(frame(1, 0, 1, Buffer.from([0x82, 0x86])));
  const literal = Buffer.concat([
    Buffer.from([0x00, 5]),
    Buffer.from("x-abc"),
    Buffer.from([100]),
    Buffer.alloc(100, 0x61),
  ]);
  const continuation = frame(9, 0, 1, Buffer.concat(Array(100).fill(literal)));
  for (let sent = 0; sent < 2_000 && !socket.destroyed; sent += 1) {
    if (cut && sent === 3) socket.resetAndDestroy();
    else if (!socket.write(continuation))
      await Promise.race([closed, new Promise((resolve) => socket.once("drain", resolve))]);
  }
  await closed;
  expect((await other.getProcess({ id: 1n })).process?.id).toBe(1n);
  expect(megabytes() - before).toBeLessThan(128);
});
