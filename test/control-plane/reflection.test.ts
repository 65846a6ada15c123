/**
 * What grpcurl does, done with grpc-js and nothing but the reflection service known beforehand: list services, fetch
 * descriptors, build a client from them, call. Then the same by `buf curl`, as people will.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { promisify } from "node:util";
import v8 from "node:v8";
import vm from "node:vm";
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  fromJson,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { troupeServices } from "../../src/control-plane/services.ts";
import * as v1 from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import * as v1alpha from "../../src/gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { openTwoFaces, type TwoFaces } from "./two-faces.ts";

let faces: TwoFaces;
let client: grpc.Client;
beforeAll(async () => {
  faces = await openTwoFaces({ keys: "a:agent:agent-key" });
  client = new grpc.Client(`127.0.0.1:${faces.controlPlane.address.port}`, grpc.credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await faces.close();
});

const versions = [
  ["v1", v1.ServerReflectionRequestSchema, v1.ServerReflectionResponseSchema],
  ["v1alpha", v1alpha.ServerReflectionRequestSchema, v1alpha.ServerReflectionResponseSchema],
] as const;
type Version = (typeof versions)[number];
type Question = v1.ServerReflectionRequest["messageRequest"];

/** Asks all questions on one stream; answers in order. */
function ask(
  [version, requestDesc, responseDesc]: Version,
  questions: readonly Question[],
): Promise<v1.ServerReflectionResponse[]> {
  return new Promise((resolve, reject) => {
    const stream = client.makeBidiStreamRequest(
      `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      (message: Message) => Buffer.from(toBinary(requestDesc as DescMessage, message)),
      (bytes: Buffer) => fromBinary(responseDesc as DescMessage, bytes) as unknown as v1.ServerReflectionResponse,
    );
    const answers: v1.ServerReflectionResponse[] = [];
    stream.on("data", (answer: v1.ServerReflectionResponse) => answers.push(answer));
    stream.on("error", reject);
    stream.on("end", () => resolve(answers));
    for (const messageRequest of questions)
      stream.write(create(requestDesc as typeof v1.ServerReflectionRequestSchema, { messageRequest }));
    stream.end();
  });
}

function filesOf(answer: v1.ServerReflectionResponse | undefined): Uint8Array[] {
  expect(answer?.messageResponse.case).toBe("fileDescriptorResponse");
  const value = answer?.messageResponse.value as v1.FileDescriptorResponse | undefined;
  return value?.fileDescriptorProto ?? [];
}

function namesOf(answer: v1.ServerReflectionResponse | undefined): string[] {
  return filesOf(answer).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
}

/** From files in any order: what is imported goes first. */
function registryFrom(files: readonly FileDescriptorProto[]): FileRegistry {
  const byName = new Map(files.map((file) => [file.name, file]));
  const sorted = new Set<FileDescriptorProto>();
  const visit = (file: FileDescriptorProto | undefined): void => {
    if (file === undefined) return;
    for (const name of file.dependency) visit(byName.get(name));
    sorted.add(file);
  };
  for (const file of files) visit(file);
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [...sorted] }));
}

describe.each(versions.map((version) => ({ name: version[0], version })))("reflection $name", ({ version }) => {
  it("lists every service, needs no key, and lets a client be built and used from nothing", async () => {
    const [listed] = await ask(version, [{ case: "listServices", value: "" }]);
    const list = listed?.messageResponse.value as v1.ListServiceResponse | undefined;
    const names = (list?.service ?? []).map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    expect(names).toEqual(
      expect.arrayContaining([
        ...troupeServices.map((service) => service.typeName),
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
      ]),
    );
    const answers = await ask(
      version,
      names.map((value) => ({ case: "fileContainingSymbol", value }) as const),
    );
    const files = answers.flatMap(filesOf).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    const registry = registryFrom(files);
    for (const name of names) expect(registry.getService(name)?.methods.length, name).toBeGreaterThan(0);

    const method = registry.getService("troupe.v1.ProcessService")?.method.getProcess;
    if (method === undefined) throw new Error("GetProcess was not described");
    const metadata = new grpc.Metadata();
    metadata.set("authorization", "Bearer agent-key");
    const answer = await new Promise<Message>((resolve, reject) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: Message) => Buffer.from(toBinary(method.input, message)),
        (bytes: Buffer) => fromBinary(method.output, bytes),
        fromJson(method.input, { id: "42" }),
        metadata,
        (error, value) => (error === null && value !== undefined ? resolve(value) : reject(error)),
      );
    });
    expect(toJson(method.output, answer, { registry })).toMatchObject({
      process: { id: "42", state: "PROCESS_STATE_IDLE" },
    });
  });

  it("answers a file with all it imports, and repeats nothing on one stream", async () => {
    const [first, second, again] = await ask(version, [
      { case: "fileByFilename", value: "troupe/v1/process_service.proto" },
      { case: "fileByFilename", value: "troupe/v1/tool_service.proto" },
      { case: "fileByFilename", value: "troupe/v1/process_service.proto" },
    ]);
    expect(namesOf(first).sort()).toEqual([
      "google/protobuf/struct.proto",
      "google/protobuf/timestamp.proto",
      "troupe/v1/event.proto",
      "troupe/v1/process.proto",
      "troupe/v1/process_service.proto",
    ]);
    expect(namesOf(second).sort()).toEqual(["troupe/v1/tool.proto", "troupe/v1/tool_service.proto"]);
    expect(namesOf(again)).toEqual(["troupe/v1/process_service.proto"]);
  });

  it.each([
    ["a service", "troupe.v1.ProcessService", "troupe/v1/process_service.proto"],
    ["an rpc", "troupe.v1.ProcessService.CreateProcess", "troupe/v1/process_service.proto"],
    ["a message", "troupe.v1.Process", "troupe/v1/process.proto"],
    ["a field", "troupe.v1.Process.exit_state", "troupe/v1/process.proto"],
    ["an enum", "troupe.v1.ProcessState", "troupe/v1/process.proto"],
    ["a value of an enum", "troupe.v1.PROCESS_STATE_IDLE", "troupe/v1/process.proto"],
    ["a nested type", "grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"],
    ["a well-known type", "google.protobuf.Timestamp", "google/protobuf/timestamp.proto"],
  ])("finds the file of %s", async (_title, value, file) => {
    const [answer] = await ask(version, [{ case: "fileContainingSymbol", value }]);
    expect(namesOf(answer)[0]).toBe(file);
  });

  it("what is not there is NOT_FOUND in the answer, and the stream goes on", async () => {
    const answers = await ask(version, [
      { case: "fileContainingSymbol", value: "troupe.v1.Nothing" },
      { case: "fileByFilename", value: "../../etc/passwd" },
      {
        case: "fileContainingExtension",
        value: create(v1.ExtensionRequestSchema, { containingType: "troupe.v1.Process", extensionNumber: 100 }),
      },
      { case: "allExtensionNumbersOfType", value: "troupe.v1.Nothing" },
      { case: "allExtensionNumbersOfType", value: "troupe.v1.Process" },
      { case: undefined },
    ] as Question[]);
    const codes = answers.map(({ messageResponse }) =>
      messageResponse.case === "errorResponse" ? messageResponse.value.errorCode : messageResponse.case,
    );
    expect(codes).toEqual([5, 5, 5, 5, "allExtensionNumbersResponse", 3]);
  });
});

it("forgets each question of a stream once it is answered, however long the stream lasts", async () => {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void;
  const megabytes = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage(); // long texts are outside of V8's heap
    return (heapUsed + external) / 1024 / 1024;
  };
  const stream = client.makeBidiStreamRequest(
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    (symbol: string) => {
      const messageRequest = { case: "fileContainingSymbol", value: symbol } as const;
      return Buffer.from(
        toBinary(v1.ServerReflectionRequestSchema, create(v1.ServerReflectionRequestSchema, { messageRequest })),
      );
    },
    (bytes: Buffer) => bytes.length,
  );
  const askLarge = async (times: number): Promise<void> => {
    for (let at = 0; at < times; at++) {
      stream.write(`${at}`.padEnd(1024 * 1024));
      const [length] = (await once(stream, "data")) as [number];
      expect(length).toBeGreaterThan(2 * 1024 * 1024);
    }
  };
  await askLarge(2);
  const before = megabytes();
  await askLarge(40);
  expect(megabytes() - before).toBeLessThan(20);
  const ended = once(stream, "end");
  stream.end();
  await ended;
});

describe("buf curl", () => {
  const run = promisify(execFile);
  const buf = path.resolve("node_modules/.bin/buf");

  it.each(["grpc-v1", "grpc-v1alpha"])("describes itself by %s and calls", async (protocol) => {
    const { stdout } = await run(buf, [
      "curl",
      "--http2-prior-knowledge",
      "--protocol",
      "grpc",
      "--reflect",
      "--reflect-protocol",
      protocol,
      "--header",
      "authorization: Bearer agent-key",
      "--data",
      '{"id": 41}',
      `${faces.rpc}/troupe.v1.ProcessService/GetProcess`,
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ process: { id: "41", state: "PROCESS_STATE_IDLE" } });
  });

  it("shows the refusal of a call without a key", async () => {
    const args = [
      "curl",
      "--http2-prior-knowledge",
      "--protocol",
      "grpc",
      "--reflect",
      "--data",
      '{"id": 41}',
      `${faces.rpc}/troupe.v1.ProcessService/GetProcess`,
    ];
    const error = await run(buf, args).catch((reason: { stderr: string }) => reason);
    expect((error as { stderr: string }).stderr).toMatch(/unauthenticated/);
  });
});
