/** One conversation with a reflection service: a question, its answer, the next question. Both versions of the service speak the same bytes. */
import { create, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { asIs } from "./calls.ts";

export type ReflectionVersion = "v1" | "v1alpha";
export type Question = ServerReflectionRequest["messageRequest"];

export interface ReflectionStream {
  /** Bytes of a ServerReflectionResponse. Rejects with the status of the stream once that has ended. */
  ask(question: Question): Promise<Uint8Array>;
  close(): void;
}

export interface ReflectionCall {
  readonly version: ReflectionVersion;
  readonly metadata: grpc.Metadata;
  /** Epoch milliseconds. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

interface Waiting {
  resolve(bytes: Uint8Array): void;
  reject(error: unknown): void;
}

export function openReflectionStream(
  client: grpc.Client,
  { version, metadata, deadline, signal }: ReflectionCall,
): ReflectionStream {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const stream = client.makeBidiStreamRequest(path, asIs, asIs, metadata, { deadline });
  let waiting: Waiting | undefined;
  let ended: unknown;
  const end = (error: unknown) => {
    ended ??= error;
    waiting?.reject(ended);
    waiting = undefined;
  };
  const cancel = () => stream.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();

  stream.on("data", (bytes: Buffer) => {
    if (waiting === undefined) {
      end(broken("It answers what was not asked"));
      stream.cancel();
      return;
    }
    const asked = waiting;
    waiting = undefined;
    asked.resolve(bytes);
  });
  stream.on("error", end);
  stream.on("end", () => end(broken("It ended the conversation")));

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) {
          reject(ended);
          return;
        }
        waiting = { resolve, reject };
        const request = create(ServerReflectionRequestSchema, { messageRequest: question });
        stream.write(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
      }),
    close() {
      signal.removeEventListener("abort", cancel);
      end(broken("The conversation is over"));
      stream.cancel();
    },
  };
}

function broken(details: string): grpc.StatusObject {
  return { code: grpc.status.INTERNAL, details, metadata: new grpc.Metadata() };
}
