/**
 * Who may call, decided before a message is read: Host and Origin as on the REST face, then the bearer key or, under mutual
 * TLS, the name in the client's certificate, then the rate limit of the operation. Health and reflection ask for no key.
 */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { TLSSocket } from "node:tls";
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { Failure } from "../errors/failure.ts";
import { headersMax } from "../limits.ts";
import type { Authentication, OriginRules } from "../operations/authentication.ts";
import { asFailure, requestIdFrom } from "../operations/call.ts";
import type { ClientAddress } from "../operations/client-address.ts";
import type { Caller } from "../operations/operation.ts";
import { quotaHeaders, type RouteLimit } from "../operations/rate-limits.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import { toConnectError } from "./connect-error.ts";
import { endRpcSpan, rpcSpan } from "./rpc-spans.ts";

export interface Arrival {
  readonly requestId: string;
  readonly host: string | undefined;
  readonly socketAddress: string | undefined;
  /** Common name of the client's certificate, under mutual TLS. */
  readonly certificateName: string | undefined;
  readonly headersCount: number;
  caller: Caller | undefined;
}

/** What the socket side knows of a request, handed through Connect to the gate and the rpcs. */
export const arrivalKey = createContextKey<Arrival | undefined>(undefined, { description: "arrival" });

export interface AdmissionOptions {
  readonly authentication: Authentication;
  readonly origins: OriginRules;
  readonly clientAddress: ClientAddress;
  /** Of an rpc, as `troupe.v1.ProcessService/GetProcess`; absent: nothing is limited. */
  readonly limitOf: ((rpc: string) => RouteLimit) | undefined;
  readonly mutualTls: boolean;
  readonly log: Log;
  readonly metrics?: FaceMetrics | undefined;
  readonly tracing?: Tracing | undefined;
  isClosing(): boolean;
}

export type NodeRequest = IncomingMessage | Http2ServerRequest;

export function arrivalOf(request: NodeRequest, mutualTls: boolean): ContextValues {
  const arrival: Arrival = {
    requestId: requestIdFrom(single(request.headers["x-request-id"])),
    host: authorityOf(request),
    socketAddress: request.socket.remoteAddress,
    certificateName: mutualTls ? certificateName(request) : undefined,
    headersCount: request.rawHeaders.length / 2,
    caller: undefined,
  };
  return createContextValues().set(arrivalKey, arrival);
}

/** `:authority` of HTTP/2, else the Host header. */
export function authorityOf(request: NodeRequest): string | undefined {
  return request.headers[":authority"]?.toString() ?? request.headers.host;
}

export function admissionGate(options: AdmissionOptions): (context: HandlerContext) => void {
  return (context) => {
    const arrival = arrivedOn(context);
    context.responseHeader.set("x-request-id", arrival.requestId);
    try {
      arrival.caller = admit(options, arrival, context);
    } catch (error) {
      const failure = asFailure(error, "admission", arrival.requestId, options.log);
      options.log.debug("rpc-refused", failure.message, {
        requestId: arrival.requestId,
        rpc: rpcName(context),
        code: failure.kind,
      });
      options.metrics?.rpc(rpcName(context))(failure.kind, 0);
      endRpcSpan(rpcSpan(options.tracing, context), failure.kind);
      if (failure.details.exhaustion !== undefined) tellQuota(context.responseHeader, failure.details.exhaustion);
      throw toConnectError(failure);
    }
  };
}

export function arrivedOn(context: HandlerContext): Arrival {
  const arrival = context.values.get(arrivalKey);
  if (arrival === undefined) throw new Error("A call reached the control plane without passing its server");
  return arrival;
}

export function rpcName(context: HandlerContext): string {
  return `${context.service.typeName}/${context.method.name}`;
}

function admit(options: AdmissionOptions, arrival: Arrival, context: HandlerContext): Caller | undefined {
  const { requestHeader } = context;
  const address = options.clientAddress(arrival.socketAddress, requestHeader.get("x-forwarded-for") ?? undefined);
  const isProbe = context.service.typeName === "grpc.health.v1.Health";
  const isOpen = isProbe || context.service.typeName.startsWith("grpc.reflection.");
  const limit = isProbe ? undefined : options.limitOf?.(rpcName(context));
  try {
    if (arrival.headersCount > headersMax) throw new Failure("too_large", `More than ${headersMax} request headers`);
    options.origins.check(isProbe ? undefined : arrival.host, requestHeader.get("origin") ?? undefined);
  } catch (error) {
    limit?.admit(address);
    throw error;
  }
  if (options.isClosing() && !isOpen) throw new Failure("unavailable", "The server is shutting down");
  const caller = isOpen ? undefined : callerOf(options, arrival, requestHeader.get("authorization"), address);
  const window = limit?.admit(caller === undefined || caller.isAnonymous === true ? address : caller.name);
  if (window !== undefined) tellQuota(context.responseHeader, window);
  return caller;
}

function callerOf(
  { authentication }: AdmissionOptions,
  { certificateName }: Arrival,
  authorization: string | null,
  address: string,
): Caller {
  if (certificateName !== undefined) return authentication.authenticateName(certificateName);
  return authentication.authenticate(authorization ?? undefined, address);
}

/** The same headers as on the REST face. */
function tellQuota(headers: Headers, quota: Parameters<typeof quotaHeaders>[0]): void {
  for (const [name, value] of Object.entries(quotaHeaders(quota))) headers.set(name, value);
}

function certificateName(request: NodeRequest): string {
  // The socket of an HTTP/2 session is a proxy: it has the method, and does not admit it to `in`.
  const socket = ("stream" in request ? request.stream.session?.socket : request.socket) as
    | Partial<TLSSocket>
    | undefined;
  const name: unknown = socket?.getPeerCertificate?.().subject?.CN;
  return typeof name === "string" ? name : "";
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? undefined : header;
}
