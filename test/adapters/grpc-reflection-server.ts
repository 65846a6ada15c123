/** An honest reflection service over a descriptor set: as grpc-go's (everything a file needs at once) or one file at a time. */
import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type Reflection, type ReflectionAnswer, registryOf } from "./grpc-server.ts";

export interface HonestyOptions {
  readonly files?: "one" | "all";
  /** Listed besides those of the set. */
  readonly alsoListed?: readonly string[];
  /** Files it claims not to know. */
  readonly withheld?: readonly string[];
  /** Source info and JSON names are left out, as some implementations do. */
  readonly bare?: boolean;
}

export function honestReflection(set: Uint8Array, options: HonestyOptions = {}): Reflection {
  const registry = registryOf(set);
  const services = [...registry].flatMap((type) => (type.kind === "service" ? [type.typeName] : []));
  const answer = (file: DescFile | undefined): ReflectionAnswer => {
    if (file === undefined || options.withheld?.includes(file.proto.name)) return notFound;
    const files = options.files === "all" ? [...closure(file)] : [file];
    const kept = files.filter(({ proto }) => !options.withheld?.includes(proto.name));
    return {
      case: "fileDescriptorResponse",
      value: {
        $typeName: "grpc.reflection.v1.FileDescriptorResponse",
        fileDescriptorProto: kept.map(({ proto }) =>
          toBinary(FileDescriptorProtoSchema, options.bare ? bare(proto) : proto),
        ),
      },
    };
  };
  return (question) => {
    switch (question.case) {
      case "listServices":
        return listed([...services, ...(options.alsoListed ?? [])]);
      case "fileContainingSymbol":
        return answer(registry.getService(question.value)?.file);
      case "fileByFilename":
        return answer(registry.getFile(question.value));
      default:
        return notFound;
    }
  };
}

const notFound: ReflectionAnswer = {
  case: "errorResponse",
  value: { $typeName: "grpc.reflection.v1.ErrorResponse", errorCode: 5, errorMessage: "There is no such thing" },
};

export function listed(names: readonly string[]): ReflectionAnswer {
  return {
    case: "listServicesResponse",
    value: {
      $typeName: "grpc.reflection.v1.ListServiceResponse",
      service: names.map((name) => ({ $typeName: "grpc.reflection.v1.ServiceResponse", name })),
    },
  };
}

function closure(file: DescFile, seen = new Set<DescFile>()): Set<DescFile> {
  if (!seen.has(file)) {
    seen.add(file);
    for (const dependency of file.dependencies) closure(dependency, seen);
  }
  return seen;
}

function bare(proto: DescFile["proto"]): DescFile["proto"] {
  const copy = structuredClone(proto);
  delete copy.sourceCodeInfo;
  for (const message of copy.messageType) for (const field of message.field) field.jsonName = "";
  return copy;
}
