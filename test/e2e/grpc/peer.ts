/** A gRPC client of whatever stack, as the tests use it: one call, and all that came of it. */
import { createRegistry, type DescMethod, fromBinary, type JsonValue, type Registry, toJson } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";

export interface Ask {
  readonly method: DescMethod;
  readonly request?: JsonValue;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  /** Messages are gzipped. */
  readonly compressed?: boolean;
  /** The call is cancelled when this resolves. */
  readonly cancel?: Promise<unknown>;
  /** Of a stream: nothing is read for so long, and then all. */
  readonly readAfterMs?: number;
}

export interface Told {
  /** As numbers of google.rpc.Code; 0 is OK. */
  readonly code: number;
  readonly message: string;
  readonly messages: readonly JsonValue[];
  /** Headers and trailers together. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface Peer {
  readonly name: string;
  ask(ask: Ask): Promise<Told>;
  close(): void;
}

const details: Registry = createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema);

/** The details of an error, by the last part of their type: `{ ErrorInfo: { reason, domain } }`. */
export function detailsOf({ metadata }: Told): Record<string, JsonValue> {
  const encoded = metadata["grpc-status-details-bin"];
  if (encoded === undefined) return {};
  const status = fromBinary(StatusSchema, Buffer.from(encoded, "base64"));
  return Object.fromEntries(
    status.details.map((any) => {
      const message = anyUnpack(any, details);
      const schema = message === undefined ? undefined : details.getMessage(message.$typeName);
      if (message === undefined || schema === undefined) return [any.typeUrl, null];
      return [schema.name, toJson(schema, message)];
    }),
  );
}
