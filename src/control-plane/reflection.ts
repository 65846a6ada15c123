/**
 * grpc.reflection v1 and v1alpha, so that grpcurl and its kin need no proto files. Both are the same protocol under two
 * names; each is registered as its own generated service, because the path of an rpc comes from its descriptor.
 *
 * A file is answered with everything it imports, each file once per stream, so that one question is enough for a client to
 * build its descriptors.
 */
import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { ServerReflection, type ServerReflectionRequest } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import {
  type ServerReflectionRequest as AlphaRequest,
  ServerReflection as ServerReflectionAlpha,
} from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";

export const reflectionServices: readonly DescService[] = [ServerReflection, ServerReflectionAlpha];

/** `services` are those to tell of; `closing` ends open streams, which clients may hold for ever. */
export function addReflection(router: ConnectRouter, services: readonly DescService[], closing: AbortSignal): void {
  const index = indexFiles(services);
  router.service(ServerReflection, {
    serverReflectionInfo: (requests, context) => answers(requests, context, index, closing),
  });
  router.service(ServerReflectionAlpha, {
    serverReflectionInfo: (requests, context) => answers(requests, context, index, closing),
  });
}

interface FileIndex {
  readonly services: readonly string[];
  readonly byName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
  /** Extended type → field number → file. */
  readonly byExtension: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
}

async function* answers<Request extends ServerReflectionRequest | AlphaRequest>(
  requests: AsyncIterable<Request>,
  context: HandlerContext,
  index: FileIndex,
  closing: AbortSignal,
) {
  const sent = new Set<string>();
  for await (const request of untilAborted(requests, AbortSignal.any([context.signal, closing]))) {
    yield {
      validHost: request.host,
      originalRequest: request,
      messageResponse: answer(request.messageRequest, index, sent),
    };
  }
}

function answer(
  request: ServerReflectionRequest["messageRequest"] | AlphaRequest["messageRequest"],
  index: FileIndex,
  sent: Set<string>,
) {
  switch (request.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } } as const;
    case "fileByFilename":
      return files(index.byName.get(request.value), `file "${request.value}"`, sent);
    case "fileContainingSymbol":
      return files(index.bySymbol.get(request.value), `symbol "${request.value}"`, sent);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      const file = index.byExtension.get(containingType)?.get(extensionNumber);
      return files(file, `extension ${extensionNumber} of "${containingType}"`, sent);
    }
    case "allExtensionNumbersOfType": {
      if (!index.bySymbol.has(request.value)) return notFound(`type "${request.value}"`);
      const extensionNumber = [...(index.byExtension.get(request.value)?.keys() ?? [])];
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber } } as const;
    }
    default:
      return { case: "errorResponse", value: { errorCode: 3, errorMessage: "The request asks nothing" } } as const;
  }
}

function files(file: DescFile | undefined, what: string, sent: Set<string>) {
  if (file === undefined) return notFound(what);
  const fileDescriptorProto: Uint8Array[] = [];
  const collect = (one: DescFile, asked: boolean): void => {
    const name = one.proto.name;
    if (sent.has(name) && !asked) return;
    sent.add(name);
    fileDescriptorProto.push(toBinary(FileDescriptorProtoSchema, one.proto));
    for (const dependency of one.dependencies) collect(dependency, false);
  };
  collect(file, true);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } } as const;
}

function notFound(what: string) {
  return { case: "errorResponse", value: { errorCode: 5, errorMessage: `There is no ${what}` } } as const;
}

function indexFiles(services: readonly DescService[]): FileIndex {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const byExtension = new Map<string, Map<number, DescFile>>();
  const visit = (file: DescFile): void => {
    if (byName.has(file.proto.name)) return;
    byName.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      bySymbol.set(type.typeName, file);
      for (const member of membersOf(type)) bySymbol.set(`${type.typeName}.${member}`, file);
      if (type.kind === "enum") {
        // Values of an enum are siblings of the enum, as in C++; some clients ask for them under the enum.
        const scope = type.typeName.slice(0, -type.name.length);
        for (const value of type.values) bySymbol.set(`${scope}${value.name}`, file);
      }
      if (type.kind === "extension") {
        const numbers = byExtension.get(type.extendee.typeName) ?? new Map<number, DescFile>();
        byExtension.set(type.extendee.typeName, numbers.set(type.number, file));
      }
    }
    for (const dependency of file.dependencies) visit(dependency);
  };
  for (const service of services) visit(service.file);
  return { services: services.map((service) => service.typeName).sort(), byName, bySymbol, byExtension };
}

type NestedType = ReturnType<typeof nestedTypes> extends Iterable<infer Type> ? Type : never;

function membersOf(type: NestedType): readonly string[] {
  switch (type.kind) {
    case "message":
      return type.members.map((member) => member.name);
    case "enum":
      return type.values.map((value) => value.name);
    case "service":
      return type.methods.map((method) => method.name);
    case "extension":
      return [];
  }
}

/** Each wait is a promise of its own: one for all of them would hold on to every item until the stream ends. */
async function* untilAborted<Item>(items: AsyncIterable<Item>, signal: AbortSignal): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  let stopWaiting: (() => void) | undefined;
  const onAbort = (): void => stopWaiting?.();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<Item> | undefined>((resolve, reject) => {
        stopWaiting = () => resolve(undefined);
        iterator.next().then(resolve, reject);
      });
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
