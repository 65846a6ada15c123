/** One span for each rpc of an operation, and for each that was refused before; a caller's own trace goes on where its header is well-formed. */
import type { DescMethod } from "@bufbuild/protobuf";
import { catalogue } from "../errors/catalogue.ts";
import type { FailureKind } from "../errors/failure.ts";
import type { Span, Tracing } from "../ports/tracing.ts";
import type { Arrival } from "./arrival.ts";

export function rpcSpan(tracing: Tracing | undefined, method: DescMethod, arrival: Arrival): Span | undefined {
  if (tracing === undefined) return undefined;
  const parent = tracing.arrived(arrival.header("traceparent"), arrival.header("tracestate"));
  const service = method.parent.typeName;
  const attributes = { "rpc.system": arrival.protocol, "rpc.service": service, "rpc.method": method.name };
  return tracing.start(`${service}/${method.name}`, "server", attributes, parent);
}

export function endRpcSpan(span: Span | undefined, refused: FailureKind | undefined): void {
  if (span === undefined) return;
  const statuses = refused === undefined ? undefined : catalogue[refused];
  span.set({ "rpc.grpc.status_code": statuses?.grpc ?? 0, "troupe.refused": refused });
  // What the caller did wrong is no error of this server.
  span.end(statuses !== undefined && statuses.rest >= 500 ? refused : undefined);
}
