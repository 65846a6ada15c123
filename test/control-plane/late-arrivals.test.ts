/** Calls whose head arrived before the server began to close, and whose message after it: they are answered or told, and hold nothing up. */
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HealthCheckRequestSchema } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { ServerReflectionRequestSchema } from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import { WatchLogsRequestSchema } from "../../src/gen/troupe/v1/log_service_pb.ts";
import { GetProcessRequestSchema } from "../../src/gen/troupe/v1/process_service_pb.ts";
import { envelope } from "../e2e/grpc/raw-http2.ts";
import { until } from "../until.ts";
import { logStream } from "./log-stream.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

/** Has nothing to tell until it is ended. */
const row = logStream(untilEnded);

async function* untilEnded(signal: AbortSignal): AsyncIterable<unknown> {
  if (!signal.aborted) await once(signal, "abort");
  yield {};
}

let faces: TwoFaces;
beforeEach(async () => {
  faces = await openTwoFaces({ streams: [row], keys: "reader:agent:agent-key" });
});
afterEach(() => faces.close());

const authorization = "Bearer agent-key";

function messageOf(desc: DescMessage, init: Record<string, unknown> = {}): Buffer {
  return envelope(toBinary(desc, create(desc, init)));
}

/** What came back: status of gRPC, or the end of a stream of Connect. */
type Late = (path: string, body: Buffer, meanwhile: () => void) => Promise<string>;

const overGrpc: Late = async (path, body, meanwhile) => {
  const session = http2.connect(faces.rpc);
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    authorization,
  });
  let status: unknown;
  for (const event of ["response", "trailers"] as const) {
    stream.on(event, (head: http2.IncomingHttpHeaders) => {
      status = head["grpc-status"] ?? status;
    });
  }
  stream.resume();
  stream.write(body.subarray(0, 3));
  await new Promise((resolve) => setTimeout(resolve, 500)); // until its head was read, also where others work
  meanwhile();
  await once(session, "goaway");
  stream.end(body.subarray(3));
  await once(stream, "close");
  return String(status);
};

const overHttp1: Late = async (path, body, meanwhile) => {
  const headers = { authorization, "content-type": "application/connect+proto" };
  const request = http.request(faces.rpc + path, { method: "POST", headers });
  request.write(body.subarray(0, 3));
  await new Promise((resolve) => setTimeout(resolve, 500)); // until its head was read, also where others work
  meanwhile();
  request.end(body.subarray(3));
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return /"code":"(\w+)"/.exec(text)?.[1] ?? text;
};

it.each<[string, Late, string, Buffer, string]>([
  [
    "a call over gRPC is answered",
    overGrpc,
    "ProcessService/GetProcess",
    messageOf(GetProcessRequestSchema, { id: 1n }),
    "0",
  ],
  ["a stream over gRPC is told", overGrpc, "LogService/WatchLogs", messageOf(WatchLogsRequestSchema), "14"],
  [
    "a stream over Connect is told",
    overHttp1,
    "LogService/WatchLogs",
    messageOf(WatchLogsRequestSchema),
    "unavailable",
  ],
  ["a watcher of health is told", overGrpc, "/grpc.health.v1.Health/Watch", messageOf(HealthCheckRequestSchema), "14"],
  [
    "a question for descriptors is over",
    overGrpc,
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    messageOf(ServerReflectionRequestSchema),
    "0",
  ],
])("%s", async (_title, ask, name, body, outcome) => {
  let closed: Promise<void> | undefined;
  let isClosed = false;
  const told = ask(name.startsWith("/") ? name : `/troupe.v1.${name}`, body, () => {
    closed = faces.controlPlane.close(10_000).then(() => {
      isClosed = true;
    });
  });
  await until(() => isClosed, 5_000);
  await closed;
  expect(await told).toBe(outcome);
  expect(faces.lines.filter(({ level }) => level === "error")).toEqual([]);
});
