/**
 * Who may call, decided before a message is read: Host and Origin as on the REST face, then the bearer key or, under mutual
 * TLS, the name in the client's certificate. Health and reflection ask for no key.
 */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { TLSSocket } from "node:tls";
import { type ContextValues, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { Failure, isFailure } from "../errors/failure.ts";
import { headersMax } from "../limits.ts";
import type { Authentication, OriginRules } from "../operations/authentication.ts";
import { failureOf, requestIdFrom } from "../operations/call.ts";
import type { Caller } from "../operations/operation.ts";
import type { Log } from "../ports/log.ts";
import { toConnectError } from "./connect-error.ts";

export interface Arrival {
  readonly requestId: string;
  readonly host: string | undefined;
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
  readonly mutualTls: boolean;
  readonly log: Log;
  isClosing(): boolean;
}

export type NodeRequest = IncomingMessage | Http2ServerRequest;

export function arrivalOf(request: NodeRequest, mutualTls: boolean): ContextValues {
  const arrival: Arrival = {
    requestId: requestIdFrom(single(request.headers["x-request-id"])),
    host: authorityOf(request),
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
      const failure = isFailure(error) ? error : failureOf(error, "admission", arrival.requestId, options.log);
      options.log.debug("rpc-refused", failure.message, {
        requestId: arrival.requestId,
        rpc: rpcName(context),
        code: failure.kind,
      });
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
  const isProbe = context.service.typeName === "grpc.health.v1.Health";
  const isOpen = isProbe || context.service.typeName.startsWith("grpc.reflection.");
  if (arrival.headersCount > headersMax) throw new Failure("too_large", `More than ${headersMax} request headers`);
  options.origins.check(isProbe ? undefined : arrival.host, context.requestHeader.get("origin") ?? undefined);
  if (isOpen) return undefined;
  if (options.isClosing()) throw new Failure("unavailable", "The server is shutting down");
  if (arrival.certificateName !== undefined) return options.authentication.authenticateName(arrival.certificateName);
  return options.authentication.authenticate(context.requestHeader.get("authorization") ?? undefined);
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
