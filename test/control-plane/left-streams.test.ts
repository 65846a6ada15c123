/** Followers that leave in the middle of what they are told, at any moment and in any way: they are no crash of ours. */
import http2 from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WatchLogsRequestSchema } from "../../src/gen/troupe/v1/log_service_pb.ts";
import { envelope } from "../e2e/grpc/raw-http2.ts";
import { until } from "../until.ts";
import { logStream } from "./log-stream.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let open = 0;
let told = 0;

/** Tells without end, as fast as it is taken, in parts that fill a window at once. */
const row = logStream(tellOn);

async function* tellOn(signal: AbortSignal): AsyncIterable<unknown> {
  open += 1;
  try {
    while (!signal.aborted) {
      told += 1;
      yield { record: { message: "x".repeat(told % 2 === 0 ? 100_000 : 10) } };
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    open -= 1;
  }
}

beforeAll(async () => {
  faces = await openTwoFaces({ streams: [row] });
});
afterAll(() => faces.close());

const request = (() => {
  const message = toBinary(WatchLogsRequestSchema, create(WatchLogsRequestSchema));
  return envelope(message);
})();

type Leave = (session: http2.ClientHttp2Session, stream: http2.ClientHttp2Stream) => void;
const ways: readonly (readonly [title: string, leave: Leave])[] = [
  ["cancels", (_session, stream) => stream.close(http2.constants.NGHTTP2_CANCEL)],
  ["ends its connection", (session) => session.destroy()],
  ["resets its connection", (session) => session.socket.resetAndDestroy()],
];

it.each(ways)("a follower that %s leaves no stream and no error behind", async (_title, leave) => {
  const followers = Array.from({ length: 60 }, async (_, at) => {
    const session = http2.connect(faces.rpc);
    session.on("error", () => undefined);
    const stream = session.request({
      ":method": "POST",
      ":path": "/troupe.v1.LogService/WatchLogs",
      "content-type": "application/grpc",
    });
    stream.on("error", () => undefined);
    stream.end(request);
    let parts = 0;
    stream.on("data", () => {
      parts += 1;
      if (parts === 1 + (at % 7)) setTimeout(() => leave(session, stream), at % 5);
    });
    await new Promise<void>((resolve) => stream.once("close", resolve));
    session.destroy();
  });
  await Promise.all(followers);
  await until(() => open === 0);
  expect(told).toBeGreaterThan(60);
  expect(faces.lines.filter(({ level }) => level === "error")).toEqual([]);
});
