/** Answers of a reflection service, reduced to what a conversation with it needs. Runs in the descriptor worker. */
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { ServerReflectionResponseSchema } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { shortened } from "./unusable.ts";

export type Reflected =
  | { readonly kind: "services"; readonly names: readonly string[] }
  | { readonly kind: "files"; readonly files: readonly ReflectedFile[] }
  | { readonly kind: "error"; readonly code: number }
  /** No answer to any question of ours; `message` says why. */
  | { readonly kind: "garbage"; readonly message: string };

export interface ReflectedFile {
  readonly name: string;
  readonly imports: readonly string[];
  /** Full names of the services it declares. */
  readonly services: readonly string[];
  readonly bytes: Uint8Array;
}

/** v1 and v1alpha have the same bytes. */
export function readReflected(bytes: Uint8Array): Reflected {
  try {
    const { messageResponse } = fromBinary(ServerReflectionResponseSchema, bytes, { readUnknownFields: false });
    switch (messageResponse.case) {
      case "listServicesResponse":
        return { kind: "services", names: messageResponse.value.service.map(({ name }) => name) };
      case "fileDescriptorResponse":
        return { kind: "files", files: messageResponse.value.fileDescriptorProto.map(readFile) };
      case "errorResponse":
        return { kind: "error", code: messageResponse.value.errorCode };
      default:
        return { kind: "garbage", message: "it answers nothing that was asked" };
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { kind: "garbage", message: shortened(error.message) };
  }
}

function readFile(bytes: Uint8Array): ReflectedFile {
  const { name, dependency, package: inPackage, service } = fromBinary(FileDescriptorProtoSchema, bytes);
  const services = service.map((each) => (inPackage === "" ? each.name : `${inPackage}.${each.name}`));
  return { name, imports: dependency, services, bytes };
}
