/** @grpc/grpc-js as a peer. */
import {
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import type { Ask, Peer, Told } from "./peer.ts";

export function jsPeer(address: string, options: grpc.ClientOptions = {}): Peer {
  const credentials = grpc.credentials.createInsecure();
  const plain = new grpc.Client(address, credentials, options);
  const gzip = new grpc.Client(address, credentials, { ...options, "grpc.default_compression_algorithm": 2 });
  return {
    name: "@grpc/grpc-js",
    ask: (ask) => askBy(ask.compressed === true ? gzip : plain, ask),
    close() {
      plain.close();
      gzip.close();
    },
  };
}

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function askBy(
  client: grpc.Client,
  { method, request = {}, metadata = {}, deadlineMs, cancel, readAfterMs }: Ask,
): Promise<Told> {
  const headers = new grpc.Metadata();
  for (const [name, value] of Object.entries(metadata)) {
    headers.set(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const write = (message: Message): Buffer => Buffer.from(toBinary(method.input, message));
  const read = (bytes: Buffer): Message => fromBinary(method.output, bytes);
  return new Promise((resolve) => {
    const messages: JsonValue[] = [];
    const seen: Record<string, string> = {};
    const see = (given: grpc.Metadata): void => {
      for (const [name, value] of Object.entries(given.getMap())) {
        seen[name] = Buffer.isBuffer(value) ? value.toString("base64") : value;
      }
    };
    // A unary call is a stream of one message to grpc-js as well; this way both tell the same.
    const call = client.makeServerStreamRequest(
      pathOf(method),
      write,
      read,
      fromJson(method.input, request),
      headers,
      options,
    );
    call.on("metadata", see);
    call.on("data", (message: Message) => messages.push(toJson(method.output, message, { alwaysEmitImplicit: true })));
    call.on("error", () => undefined); // told by the status
    call.on("status", ({ code, details, metadata: trailers }) => {
      see(trailers);
      // Some messages may still wait to be read.
      const told = (): void => resolve({ code, message: details, messages, metadata: seen });
      if (code !== grpc.status.OK || call.readableEnded) told();
      else call.once("end", told);
    });
    if (readAfterMs !== undefined) {
      call.pause();
      setTimeout(() => call.resume(), readAfterMs);
    }
    void cancel?.then(() => call.cancel());
  });
}
