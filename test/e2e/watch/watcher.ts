/** Streams of the control plane as a stranger follows them: @grpc/grpc-js, over a relay that can be cut. */
import net from "node:net";
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { EventService } from "../../../src/gen/troupe/v1/event_service_pb.ts";
import { LogService } from "../../../src/gen/troupe/v1/log_service_pb.ts";
import { ProcessService } from "../../../src/gen/troupe/v1/process_service_pb.ts";

export const rpcs = {
  watchProcess: ProcessService.method.watchProcess,
  watchProcesses: ProcessService.method.watchProcesses,
  watchLogs: LogService.method.watchLogs,
  watchEvents: EventService.method.watchEvents,
} as const;

interface StreamRpc<Input extends DescMessage, Output extends DescMessage> {
  readonly name: string;
  readonly parent: { readonly typeName: string };
  readonly input: Input;
  readonly output: Output;
}

export interface Watcher<Message> {
  /** Taken so far, in order. */
  readonly messages: Message[];
  /** Code of grpc, once the stream is over. */
  readonly over: Promise<number>;
  readonly code: number | undefined;
  /** Resolves as soon as what was taken is enough; rejects when the stream is over before, or 20 seconds are. */
  until(isEnough: (messages: readonly Message[]) => boolean): Promise<void>;
  pause(): void;
  resume(): void;
  leave(): Promise<void>;
}

const waitMs = 20_000;

/** A connection of its own: clients of grpc-js share theirs otherwise. */
export function newClient(address: string): grpc.Client {
  return new grpc.Client(address, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
  });
}

export function watch<Input extends DescMessage, Output extends DescMessage>(
  client: grpc.Client,
  rpc: StreamRpc<Input, Output>,
  request: MessageInitShape<Input>,
  metadata: grpc.Metadata = new grpc.Metadata(),
): Watcher<MessageShape<Output>> {
  const stream = client.makeServerStreamRequest(
    `/${rpc.parent.typeName}/${rpc.name}`,
    (message: MessageShape<Input>) => Buffer.from(toBinary(rpc.input, message)),
    (bytes: Buffer) => fromBinary(rpc.output, bytes),
    create(rpc.input, request),
    metadata,
  );
  const messages: MessageShape<Output>[] = [];
  let look: () => void = () => undefined;
  let code: number | undefined;
  stream.on("data", (message: MessageShape<Output>) => {
    messages.push(message);
    look();
  });
  stream.on("error", () => undefined); // `status` says the same
  const over = new Promise<number>((resolve) => {
    stream.on("status", (status: grpc.StatusObject) => {
      code = status.code;
      look();
      resolve(status.code);
    });
  });
  return {
    messages,
    over,
    get code() {
      return code;
    },
    until(isEnough) {
      return new Promise((resolve, reject) => {
        const what = (): string => `${rpc.name} ${code ?? "goes on"} after ${messages.length} messages`;
        const timer = setTimeout(() => reject(new Error(`Waited ${waitMs} ms: ${what()}`)), waitMs);
        look = () => {
          if (!isEnough(messages) && code === undefined) return;
          clearTimeout(timer);
          look = () => undefined;
          if (isEnough(messages)) resolve();
          else reject(new Error(what()));
        };
        look();
      });
    },
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    async leave() {
      stream.cancel();
      await over;
    },
  };
}

export interface Relay {
  readonly address: string;
  /** Every connection is reset, as by a broken network: neither side is told before. */
  cut(): void;
  close(): Promise<void>;
}

export async function openRelay(target: string): Promise<Relay> {
  const [host = "", port = ""] = target.split(":");
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect({ host, port: Number(port) });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on("error", () => undefined);
      socket.once("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    cut,
    close() {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
