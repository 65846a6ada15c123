/** A real gRPC server on loopback, made of a descriptor set: a handler per method speaks ProtoJSON. Reflection as it is told. */
import { execFileSync } from "node:child_process";
import {
  createFileRegistry,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import grpc from "@grpc/grpc-js";
import type {
  ServerReflectionRequest,
  ServerReflectionResponse,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";

/** As `buf build` makes it, comments and imports included. */
export const shopSet: Buffer = buildSet("grpc-protos");

export function buildSet(folder: string): Buffer {
  const buf = new URL("../../node_modules/.bin/buf", import.meta.url).pathname;
  const input = new URL(`./${folder}`, import.meta.url).pathname;
  return execFileSync(buf, ["build", input, "-o", "-#format=binpb"], { maxBuffer: 64 * 1024 * 1024 });
}

export function registryOf(set: Uint8Array): FileRegistry {
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, set));
}

export interface HandlerCall {
  readonly metadata: grpc.Metadata;
  readonly call: grpc.ServerUnaryCall<Buffer, Buffer> | grpc.ServerWritableStream<Buffer, Buffer>;
  readonly registry: FileRegistry;
  readonly method: DescMethod;
}

/** Unary: answers with ProtoJSON, or bytes as they are. Throws a status. Server stream: writes by itself. */
export type Handler = (request: JsonValue, context: HandlerCall) => unknown;
export type Handlers = Readonly<Record<string, Handler>>;

export type ReflectionAnswer = ServerReflectionResponse["messageResponse"] | Uint8Array | "silence" | "end" | "twice";
export type Reflection = (question: ServerReflectionRequest["messageRequest"]) => ReflectionAnswer;

export interface ServerOptions {
  readonly set?: Uint8Array;
  /** `Service/Method` or `Method`. */
  readonly handlers?: Handlers;
  readonly reflection?: Reflection;
  readonly reflectionVersion?: "v1" | "v1alpha";
  /** Refuses every call without it. */
  readonly key?: string;
  readonly credentials?: grpc.ServerCredentials;
  readonly host?: string;
  readonly port?: number;
}

export interface TestServer {
  readonly port: number;
  /** `grpc://127.0.0.1:port`. */
  readonly target: string;
  close(): void;
}

const asIs = (bytes: Buffer): Buffer => bytes;

export async function openServer(options: ServerOptions = {}): Promise<TestServer> {
  const server = new grpc.Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  const registry = registryOf(options.set ?? shopSet);
  for (const type of registry) {
    if (type.kind !== "service") continue;
    const definition: Record<string, grpc.MethodDefinition<Buffer, Buffer>> = {};
    const implementation: Record<string, grpc.UntypedHandleCall> = {};
    for (const method of type.methods) {
      definition[method.name] = rawMethod(`/${type.typeName}/${method.name}`, method.methodKind);
      const handler = options.handlers?.[`${type.typeName}/${method.name}`] ?? options.handlers?.[method.name];
      implementation[method.name] = serve(method, registry, handler, options.key) as grpc.UntypedHandleCall;
    }
    server.addService(definition, implementation);
  }
  if (options.reflection) addReflection(server, options.reflection, options);
  const port = await new Promise<number>((resolve, reject) => {
    const credentials = options.credentials ?? grpc.ServerCredentials.createInsecure();
    server.bindAsync(`${options.host ?? "127.0.0.1"}:${options.port ?? 0}`, credentials, (error, bound) => {
      if (error) reject(error);
      else resolve(bound);
    });
  });
  return { port, target: `grpc://127.0.0.1:${port}`, close: () => server.forceShutdown() };
}

function rawMethod(
  path: string,
  kind: DescMethod["methodKind"] | "bidi_streaming",
): grpc.MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: kind === "client_streaming" || kind === "bidi_streaming",
    responseStream: kind === "server_streaming" || kind === "bidi_streaming",
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

function serve(method: DescMethod, registry: FileRegistry, handler: Handler | undefined, key: string | undefined) {
  const read = (bytes: Buffer) => toJson(method.input, fromBinary(method.input, bytes), { registry });
  const run = (call: HandlerCall["call"]) => {
    if (key !== undefined && call.metadata.get("authorization")[0] !== `Bearer ${key}`) {
      throw { code: grpc.status.UNAUTHENTICATED, details: "Who are you" };
    }
    if (!handler) throw { code: grpc.status.UNIMPLEMENTED, details: "Not here" };
    return handler(read(call.request), { metadata: call.metadata, call, registry, method });
  };
  if (method.methodKind === "server_streaming") {
    return (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
      try {
        run(call);
      } catch (error) {
        call.emit("error", error);
      }
    };
  }
  return async (call: grpc.ServerUnaryCall<Buffer, Buffer>, answer: grpc.sendUnaryData<Buffer>) => {
    try {
      const value = await run(call);
      const trailers = new grpc.Metadata();
      trailers.set("x-trailer", "last");
      answer(null, write(method, registry, value), trailers);
    } catch (error) {
      answer(error as grpc.ServiceError);
    }
  };
}

export function write(method: DescMethod, registry: FileRegistry, value: unknown): Buffer {
  if (value instanceof Uint8Array) return Buffer.from(value);
  return Buffer.from(toBinary(method.output, fromJson(method.output, value as JsonValue, { registry })));
}

function addReflection(server: grpc.Server, reflection: Reflection, { reflectionVersion = "v1", key }: ServerOptions) {
  const path = `/grpc.reflection.${reflectionVersion}.ServerReflection/ServerReflectionInfo`;
  server.addService(
    { ServerReflectionInfo: rawMethod(path, "bidi_streaming") },
    {
      ServerReflectionInfo: (call: grpc.ServerDuplexStream<Buffer, Buffer>) => {
        if (key !== undefined && call.metadata.get("authorization")[0] !== `Bearer ${key}`) {
          call.emit("error", { code: grpc.status.UNAUTHENTICATED, details: "Who are you" });
          return;
        }
        call.on("data", (bytes: Buffer) => {
          const answer = reflection(fromBinary(ServerReflectionRequestSchema, bytes).messageRequest);
          if (answer === "silence") return;
          if (answer === "end") {
            call.end();
            return;
          }
          const encoded =
            answer instanceof Uint8Array || answer === "twice"
              ? Buffer.from(answer === "twice" ? "" : answer)
              : encode(answer);
          call.write(encoded);
          if (answer === "twice") call.write(encoded);
        });
        call.on("end", () => call.end());
      },
    },
  );
}

function encode(messageResponse: ServerReflectionResponse["messageResponse"]): Buffer {
  const response = { $typeName: "grpc.reflection.v1.ServerReflectionResponse", validHost: "", messageResponse };
  return Buffer.from(toBinary(ServerReflectionResponseSchema, response as ServerReflectionResponse));
}
