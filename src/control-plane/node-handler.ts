/**
 * From Node's request to Connect's handler and back. Connect ships an adapter for this; ours differs in that it logs instead
 * of printing, answers unknown rpcs in the caller's protocol, and takes three kinds of request out of harm's way first:
 * without a usable authority, with a timeout that overflows a timer, and with a body that never ends.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { Code, ConnectError, cors, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { requestReceiveMs } from "../limits.ts";
import type { OriginRules } from "../operations/authentication.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import { arrivalKey } from "./admission.ts";
import { arrivalOf, authorityOf, isUsableAuthority, type NodeRequest } from "./arrival.ts";
import { encodeGrpcMessage, grpcMessageHeader, plainGrpcMessage } from "./grpc-message.ts";
import { grpcTimeoutMs } from "./grpc-timeout.ts";
import type { NodeHandler } from "./rpc-server.ts";

export interface NodeHandlerOptions {
  readonly handlers: readonly UniversalHandler[];
  readonly origins: OriginRules;
  readonly mutualTls: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly closing: AbortSignal;
  readonly metrics?: FaceMetrics | undefined;
}

type NodeResponse = ServerResponse | Http2ServerResponse;

export function nodeHandler(options: NodeHandlerOptions): NodeHandler {
  const paths = new Map(options.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    if (options.closing.aborted && !("stream" in response)) response.setHeader("connection", "close");
    if (crossOrigin(options.origins, request, response)) return;
    const handler = paths.get((request.url ?? "").split("?", 1)[0] ?? "");
    if (!isUsableAuthority(authorityOf(request.headers)))
      refuse(request, response, 400, Code.InvalidArgument, "The Host is missing or malformed");
    else if (handler === undefined) {
      options.metrics?.rpc("unmatched")("method_not_allowed", 0);
      refuse(request, response, 404, Code.Unimplemented, "There is no such rpc");
    } else void serve(handler, request, response, options);
  };
}

async function serve(
  handler: UniversalHandler,
  request: NodeRequest,
  response: NodeResponse,
  options: NodeHandlerOptions,
): Promise<void> {
  try {
    dropOverlongTimeouts(request.headers);
    if (handler.method.methodKind === "unary" || handler.method.methodKind === "server_streaming") {
      limitReceiving(request, options.clock);
    }
    const values = createContextValues().set(arrivalKey, arrivalOf(request, options.mutualTls));
    // The two overloads for HTTP/1.1 and HTTP/2 are one to us.
    const universal = universalRequestFromNodeRequest(
      request as IncomingMessage,
      response as ServerResponse,
      undefined,
      values,
    );
    const answer = await handler(universal);
    if (answer.trailer !== undefined) {
      blameSender(answer.trailer);
      plainGrpcMessage(answer.trailer);
    }
    await universalResponseToNodeResponse(answer, response as ServerResponse);
  } catch (error) {
    // Almost always a client that went away in the middle of its answer.
    options.log.debug("rpc-broken-off", `The answer of ${handler.requestPath} did not reach its caller`, { error });
    response.destroy();
  }
}

/** Connect says INTERNAL of a message that cannot be parsed. The fault is the sender's; its words are kept. */
function blameSender(trailer: Headers): void {
  const isUnreadable =
    trailer.get("grpc-status") === String(Code.Internal) &&
    /^parse(%20| )binary/.test(trailer.get("grpc-message") ?? "");
  if (!isUnreadable) return;
  trailer.set("grpc-status", String(Code.InvalidArgument));
  trailer.delete("grpc-status-details-bin"); // says INTERNAL again
}

/** Longer than any timer can run: Connect would fire at once. Calls have their own, much shorter, limit. */
const timerMsMax = 2 ** 31 - 1;

function dropOverlongTimeouts(headers: NodeRequest["headers"]): void {
  if ((grpcTimeoutMs(headers["grpc-timeout"] ?? "") ?? 0) > timerMsMax) delete headers["grpc-timeout"];
  const connect = String(headers["connect-timeout-ms"] ?? "");
  if (/^\d{1,10}$/.test(connect) && Number(connect) > timerMsMax) delete headers["connect-timeout-ms"];
}

/** HTTP/1.1 has this in Node's server; over HTTP/2 a stream could otherwise stay half-sent for ever. */
function limitReceiving(request: NodeRequest, clock: Clock): void {
  if (!("stream" in request)) return;
  const { stream } = request;
  if (stream.readableEnded) return;
  const cancel = clock.after(requestReceiveMs, () => stream.close());
  stream.once("end", cancel);
  stream.once("close", cancel);
}

/** In the caller's own protocol: gRPC clients look at grpc-status, all others at the HTTP status and Connect's JSON. */
function refuse(request: NodeRequest, response: NodeResponse, status: number, code: Code, message: string): void {
  const contentType = request.headers["content-type"] ?? "";
  request.resume();
  if (contentType.startsWith("application/grpc") && !contentType.startsWith("application/grpc-web")) {
    response.statusCode = 200;
    response.setHeader("content-type", "application/grpc");
    response.setHeader("grpc-status", String(code));
    response.setHeader(grpcMessageHeader, encodeGrpcMessage(message));
    response.end();
    return;
  }
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ code: codeName(code), message }));
}

function codeName(code: Code): string {
  return new ConnectError("", code).message.replace(/^\[(\w+)\].*$/, "$1");
}

/** Lets browsers of listed origins in; true when the request was only their question. */
function crossOrigin(origins: OriginRules, request: NodeRequest, response: NodeResponse): boolean {
  const { origin } = request.headers;
  if (typeof origin !== "string" || !origins.allowsCrossOrigin(origin)) return false;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", [...cors.exposedHeaders, "X-Request-Id"].join(", "));
  response.setHeader("vary", "origin");
  if (request.method !== "OPTIONS") return false;
  response.statusCode = 204;
  response.setHeader("access-control-allow-methods", cors.allowedMethods.join(", "));
  response.setHeader(
    "access-control-allow-headers",
    [...cors.allowedHeaders, "Authorization", "X-Request-Id"].join(", "),
  );
  response.setHeader("access-control-max-age", "600");
  response.end();
  return true;
}
