/** The peer of rpc.bench.ts: @grpc/grpc-js with one unary method that answers every call with the message in BENCH_ANSWER (base64). */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { ProcessService } from "../../src/gen/troupe/v1/process_service_pb.ts";

const method = ProcessService.method.getProcess;
const answer = fromBinary(method.output, Buffer.from(process.env.BENCH_ANSWER ?? "", "base64"));
const server = new grpc.Server();
server.addService(
  {
    getProcess: {
      path: `/${ProcessService.typeName}/${method.name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (message) => Buffer.from(toBinary(method.input, message)),
      requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
      responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
      responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
    },
  },
  { getProcess: (_call: unknown, reply: grpc.sendUnaryData<typeof answer>) => reply(null, answer) },
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  console.log(JSON.stringify({ event: "listening", http: "", grpc: `127.0.0.1:${port}` }));
});
