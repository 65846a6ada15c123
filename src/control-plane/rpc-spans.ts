/** One span for each rpc of an operation, and for each that was refused before; a caller's own trace goes on where its header is well-formed. */
import type { HandlerContext } from "@connectrpc/connect";
import { catalogue } from "../errors/catalogue.ts";
import type { FailureKind } from "../errors/failure.ts";
import type { Span, Tracing } from "../ports/tracing.ts";

export function rpcSpan(tracing: Tracing | undefined, context: HandlerContext): Span | undefined {
  if (tracing === undefined) return undefined;
  const { service, method, requestHeader, protocolName } = context;
  const parent = tracing.arrived(
    requestHeader.get("traceparent") ?? undefined,
    requestHeader.get("tracestate") ?? undefined,
  );
  const attributes = {
    "rpc.system": protocolName === "connect" ? "connect_rpc" : "grpc",
    "rpc.service": service.typeName,
    "rpc.method": method.name,
  };
  return tracing.start(`${service.typeName}/${method.name}`, "server", attributes, parent);
}

export function endRpcSpan(span: Span | undefined, refused: FailureKind | undefined): void {
  if (span === undefined) return;
  const statuses = refused === undefined ? undefined : catalogue[refused];
  span.set({ "rpc.grpc.status_code": statuses?.grpc ?? 0, "troupe.refused": refused });
  // What the caller did wrong is no error of this server.
  span.end(statuses !== undefined && statuses.rest >= 500 ? refused : undefined);
}
