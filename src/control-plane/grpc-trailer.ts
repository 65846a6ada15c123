/** The trailer of a gRPC answer: failures with the details that all of them have, whoever found them. */
import { Code, type ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { Failure, type FailureKind } from "../errors/failure.ts";
import { toConnectError } from "./connect-error.ts";
import { grpcMessageHeader, plainGrpcMessage } from "./grpc-message.ts";

export function grpcTrailer(error: ConnectError): Headers {
  const trailer = setTrailerStatus(new Headers(), error);
  plainGrpcMessage(trailer);
  return trailer;
}

/** Of faults that Connect finds by itself, in the bytes around a message. */
const connectFaults: Readonly<Record<string, FailureKind>> = {
  [Code.Canceled]: "cancelled",
  [Code.InvalidArgument]: "invalid_request",
  [Code.DeadlineExceeded]: "timeout",
  [Code.NotFound]: "not_found",
  [Code.ResourceExhausted]: "too_large",
  [Code.Unimplemented]: "method_not_allowed",
  [Code.Internal]: "internal",
  [Code.Unavailable]: "unavailable",
};

/** In place: what Connect says by itself, said as we say it. It calls a message that cannot be parsed INTERNAL; the fault is the sender's. */
export function explainTrailer(trailer: Headers): void {
  plainGrpcMessage(trailer);
  const message = decodeURIComponent(trailer.get(grpcMessageHeader) ?? "");
  const isUnreadable = trailer.get("grpc-status") === String(Code.Internal) && message.startsWith("parse binary");
  if (trailer.has("grpc-status-details-bin") && !isUnreadable) return;
  const kind = isUnreadable ? "invalid_request" : connectFaults[trailer.get("grpc-status") ?? ""];
  if (kind === undefined) return;
  for (const [name, value] of grpcTrailer(toConnectError(new Failure(kind, message)))) trailer.set(name, value);
}
