/**
 * The plan: all that describing and calling the tools of one gRPC service needs. It is made once by `define`, stored with the service as
 * opaque text, and read by the descriptor worker only. The server sees a `ServicePlan` and, for each tool, a `ReadyTool`.
 */
import type { JsonSchema } from "../../ports/adapter.ts";

export const planVersion = 1;

export interface Plan {
  readonly version: typeof planVersion;
  readonly service: ServicePlan;
  /** Full names of the protobuf services whose methods are tools. */
  readonly services: readonly string[];
  /** A google.protobuf.FileDescriptorSet in base64, in the order of its imports; "": a service that was not synced yet. */
  readonly descriptorSet: string;
}

export interface ServicePlan {
  /** `grpc://host:port` or `grpcs://host:port`; null: only configuration can tell. */
  readonly target: string | null;
}

/** What a call needs besides its bytes. */
export interface ReadyTool {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly kind: "unary" | "server_streaming";
  readonly inputSchema: JsonSchema;
}

/**
 * Parameters are an object. A request type whose JSON is none (a string for google.protobuf.StringValue) is its property of this name.
 */
export const wrappedParameter = "value";

/** Services that describe the server or tell whether it is well: tools only when a document names them. */
export function isInfrastructure(serviceName: string): boolean {
  return /^grpc\.(reflection|health|channelz)\./.test(serviceName);
}
