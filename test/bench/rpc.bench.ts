/**
 * Unary GetProcess of the real control plane, against @grpc/grpc-js alone answering with the same message; both called by a @grpc/grpc-js
 * client with 64 calls in flight on one connection. `node test/bench/rpc.bench.ts`
 *
 * The client costs more than either server, so the rate says little and the processor time of the server says most. The product asks
 * for a key, counts against limits, and keeps its metrics. Not measured: TLS, streams, gRPC-Web, Connect.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import {
  CreateProcessRequestSchema,
  type GetProcessResponse,
  ProcessService,
} from "../../src/gen/troupe/v1/process_service_pb.ts";
import { cpuMs } from "./cpu-time.ts";
import { inRounds, quantile, quartilesText, report, type Sample } from "./measure.ts";
import { type ServerProcess, startProcess, startTroupe } from "./server-process.ts";

const inFlight = 64;
const rounds = 15;
const requests = 3_000;
const key = "bench-key-0123456789";

const { getProcess, createProcess } = ProcessService.method;
const troupe = await startTroupe([], { SERVICE_API_KEYS: `bench:operator:${key}` });
const troupeClient = connect(troupe);
const id = await creation(troupeClient);
const answer = await get(troupeClient, id);
const peer = await startProcess(new URL("./bare-grpc-js.ts", import.meta.url), {
  env: { BENCH_ANSWER: Buffer.from(toBinary(getProcess.output, answer)).toString("base64") },
});
const peerClient = connect(peer);

const measured = await inRounds(
  { troupe: () => load(troupe, troupeClient), peer: () => load(peer, peerClient) },
  { rounds, warmUps: 2, secondsMax: 45 },
);
troupeClient.close();
peerClient.close();
await Promise.all([troupe.stop(), peer.stop()]);

const titles = { troupe: "troupe", peer: "bare @grpc/grpc-js" } as const;
const rows = (["troupe", "peer"] as const).map((way) => {
  const rate = measured.ratio(way, "peer", "perSecond");
  const cpu = measured.ratio(way, "peer", "cpuUs");
  return {
    way: titles[way],
    "calls/s": measured.median(way, "perSecond"),
    ratio: rate.median,
    "q1..q3": quartilesText(rate),
    "p50 ms": measured.median(way, "p50Ms"),
    "p99 ms": measured.median(way, "p99Ms"),
    "server cpu µs/call": measured.median(way, "cpuUs"),
    "cpu ratio": cpu.median,
    "cpu q1..q3": quartilesText(cpu),
  };
});
report(
  "rpc",
  `GetProcess, ${inFlight} in flight, ${requests} calls a round, medians of ${measured.rounds} rounds`,
  rows,
  [
    { what: "Unary calls, rate, ratio to bare @grpc/grpc-js", atLeast: 0.9, measured: rows[0]!.ratio },
    {
      what: "Unary calls, server CPU a call, ratio to bare @grpc/grpc-js",
      atMost: 1.5,
      measured: rows[0]!["cpu ratio"],
    },
  ],
);

async function load(
  server: ServerProcess,
  client: grpc.Client,
): Promise<Sample<"perSecond" | "p50Ms" | "p99Ms" | "cpuUs">> {
  const before = cpuMs(server.pid);
  const start = performance.now();
  const times: number[] = [];
  let left = requests;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) {
        const sent = performance.now();
        await get(client, id);
        times.push(performance.now() - sent);
      }
    }),
  );
  return {
    perSecond: (requests * 1_000) / (performance.now() - start),
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    cpuUs: ((cpuMs(server.pid) - before) * 1_000) / requests,
  };
}

function connect({ grpc: address }: ServerProcess): grpc.Client {
  return new grpc.Client(address, grpc.credentials.createInsecure());
}

function get(client: grpc.Client, process: bigint): Promise<GetProcessResponse> {
  const request = toBinary(getProcess.input, create(getProcess.input, { id: process }));
  return call(client, "GetProcess", request).then((bytes) => fromBinary(getProcess.output, bytes));
}

async function creation(client: grpc.Client): Promise<bigint> {
  const request = toBinary(createProcess.input, create(CreateProcessRequestSchema, { code: "return 1" }));
  const { id: created } = fromBinary(createProcess.output, await call(client, "CreateProcess", request));
  const waited = create(getProcess.input, { id: created, wait: 30 });
  await call(client, "GetProcess", toBinary(getProcess.input, waited));
  return created;
}

function call(client: grpc.Client, name: string, request: Uint8Array): Promise<Buffer> {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const path = `/${ProcessService.typeName}/${name}`;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest<Buffer, Buffer>(
      path,
      (bytes) => bytes,
      (bytes) => bytes,
      Buffer.from(request),
      metadata,
      (error, bytes) => (error === null && bytes !== undefined ? resolve(bytes) : reject(error)),
    );
  });
}
