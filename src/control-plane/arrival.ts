/** What the socket side knows of an rpc before anything of its message is read, whichever protocol it came by. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Http2ServerRequest, Http2Session } from "node:http2";
import type { TLSSocket } from "node:tls";
import { requestIdFrom } from "../operations/call.ts";
import type { Caller } from "../operations/operation.ts";

export interface Arrival {
  readonly requestId: string;
  readonly protocol: "grpc" | "connect_rpc";
  /** `:authority` of HTTP/2, else the Host header. */
  readonly host: string | undefined;
  readonly socketAddress: string | undefined;
  /** Common name of the client's certificate, under mutual TLS. */
  readonly certificateName: string | undefined;
  readonly headersCount: number;
  /** Of the request; values of one that came several times are joined. */
  header(name: string): string | undefined;
  /** Set by admission. */
  caller: Caller | undefined;
  /** Under which name its requests are counted; set by admission. */
  countedAs: string;
}

export type NodeRequest = IncomingMessage | Http2ServerRequest;

export function arrivalOf(request: NodeRequest, mutualTls: boolean): Arrival {
  // The socket of an HTTP/2 session is a proxy: it has the method, and does not admit it to `in`.
  const session = "stream" in request ? request.stream.session : undefined;
  const tlsName = () => (session === undefined ? commonName(request.socket) : certificateNameOf(session));
  return newArrival(request.headers, {
    headersCount: request.rawHeaders.length / 2,
    socketAddress: request.socket.remoteAddress,
    certificateName: mutualTls ? tlsName() : undefined,
  });
}

export function newArrival(
  headers: IncomingHttpHeaders,
  socket: Pick<Arrival, "headersCount" | "socketAddress" | "certificateName">,
): Arrival {
  return {
    ...socket,
    requestId: requestIdFrom(headers["x-request-id"]),
    protocol: isGrpc(headers) ? "grpc" : "connect_rpc",
    host: authorityOf(headers),
    header: (name) => joined(headers[name]),
    caller: undefined,
    countedAs: "",
  };
}

/** gRPC or gRPC-Web. Media types are written in any case (RFC 9110, 8.3.1). */
export function isGrpc(headers: IncomingHttpHeaders): boolean {
  return headers["content-type"]?.toLowerCase().startsWith("application/grpc") === true;
}

export function isGrpcWeb(headers: IncomingHttpHeaders): boolean {
  return headers["content-type"]?.toLowerCase().startsWith("application/grpc-web") === true;
}

export function authorityOf(headers: IncomingHttpHeaders): string | undefined {
  return headers[":authority"]?.toString() ?? headers.host;
}

export function isUsableAuthority(authority: string | undefined): boolean {
  return authority !== undefined && URL.canParse(`http://${authority}/`);
}

const certificateNames = new WeakMap<Http2Session, string>();

/** Of the session's client, empty when it has none; asked of OpenSSL once a session. */
export function certificateNameOf(session: Http2Session): string {
  const known = certificateNames.get(session);
  if (known !== undefined) return known;
  const name = commonName(session.socket);
  certificateNames.set(session, name);
  return name;
}

function commonName(socket: object): string {
  const name: unknown = (socket as Partial<TLSSocket>).getPeerCertificate?.().subject?.CN;
  return typeof name === "string" ? name : "";
}

function joined(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
