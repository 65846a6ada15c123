/**
 * A gRPC client of another stack (@grpc/grpc-js) that knows no proto file of ours: like grpcurl it learns services and messages
 * from the server's reflection, and speaks proto3 JSON.
 */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import grpc from "@grpc/grpc-js";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";

export interface ForeignClient {
  readonly services: readonly string[];
  /** Rejects with grpc-js's ServiceError. Service within troupe.v1. */
  call(service: string, method: string, request: JsonValue, metadata?: Record<string, string>): Promise<JsonValue>;
  close(): void;
}

export async function openForeignClient(
  address: string,
  credentials = grpc.credentials.createInsecure(),
): Promise<ForeignClient> {
  const client = new grpc.Client(address, credentials);
  const services = await listServices(client);
  const registry = await describe(client, services);
  return {
    services,
    call(service, name, request, headers = {}) {
      const found = registry.getService(`troupe.v1.${service}`)?.methods.find((method) => method.name === name);
      if (found === undefined) return Promise.reject(new Error(`Reflection knows no ${service}.${name}`));
      const metadata = new grpc.Metadata();
      for (const [header, value] of Object.entries(headers)) metadata.set(header, value);
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/troupe.v1.${service}/${name}`,
          (message: Message) => Buffer.from(toBinary(found.input, message)),
          (bytes: Buffer) => fromBinary(found.output, bytes),
          fromJson(found.input, request, { registry }),
          metadata,
          { deadline: Date.now() + 90_000 },
          (error, message) => {
            if (error !== null || message === undefined) reject(error);
            else resolve(toJson(found.output, message, { registry, alwaysEmitImplicit: true }));
          },
        );
      });
    },
    close: () => client.close(),
  };
}

type Ask = { case: "listServices" | "fileContainingSymbol"; value: string };

function ask(
  client: grpc.Client,
  messageRequest: Ask,
): Promise<Message & { messageResponse: { case?: string; value?: unknown } }> {
  return new Promise((resolve, reject) => {
    const stream = client.makeBidiStreamRequest(
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      (message: Message) => Buffer.from(toBinary(ServerReflectionRequestSchema as DescMessage, message)),
      (bytes: Buffer) => fromBinary(ServerReflectionResponseSchema, bytes),
    );
    stream.on("data", resolve);
    stream.on("error", reject);
    stream.write(create(ServerReflectionRequestSchema, { messageRequest }));
    stream.end();
  });
}

async function listServices(client: grpc.Client): Promise<string[]> {
  const { messageResponse } = await ask(client, { case: "listServices", value: "" });
  return (messageResponse.value as { service: { name: string }[] }).service.map(({ name }) => name);
}

async function describe(client: grpc.Client, services: readonly string[]): Promise<FileRegistry> {
  const files = new Map<string, FileDescriptorProto>();
  for (const value of services) {
    const { messageResponse } = await ask(client, { case: "fileContainingSymbol", value });
    for (const bytes of (messageResponse.value as { fileDescriptorProto: Uint8Array[] }).fileDescriptorProto) {
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      files.set(file.name, file);
    }
  }
  return createFileRegistry(create(FileDescriptorSetSchema, { file: importedFirst(files) }));
}

function importedFirst(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorProto[] {
  const sorted = new Set<FileDescriptorProto>();
  const visit = (file: FileDescriptorProto | undefined): void => {
    if (file === undefined || sorted.has(file)) return;
    for (const name of file.dependency) visit(files.get(name));
    sorted.add(file);
  };
  for (const file of files.values()) visit(file);
  return [...sorted];
}
