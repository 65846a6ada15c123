/**
 * From Node's request to Connect's handler and back. Connect ships an adapter for this; ours differs in that it logs instead
 * of printing, answers unknown rpcs in the caller's protocol, and takes three kinds of request out of harm's way first:
 * without a usable authority, with a timeout that overflows a timer, and with a body that never ends.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import http2, { type Http2ServerResponse } from "node:http2";
import { cors, createContextValues } from "@connectrpc/connect";
import { assertByteStreamRequest, createAsyncIterable, type UniversalHandler } from "@connectrpc/connect/protocol";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { catalogue } from "../errors/catalogue.ts";
import { Failure } from "../errors/failure.ts";
import { bodyBytesMax, requestReceiveMs } from "../limits.ts";
import type { OriginRules } from "../operations/authentication.ts";
import type { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import { arrivalKey } from "./admission.ts";
import { arrivalOf, authorityOf, isGrpc, isGrpcWeb, isUsableAuthority, type NodeRequest } from "./arrival.ts";
import { toConnectError } from "./connect-error.ts";
import { grpcTimeoutMs } from "./grpc-timeout.ts";
import { explainTrailer, grpcTrailer } from "./grpc-trailer.ts";
import type { NodeHandler } from "./rpc-server.ts";
import { wholeMessages } from "./whole-messages.ts";

export interface NodeHandlerOptions {
  readonly handlers: readonly UniversalHandler[];
  readonly origins: OriginRules;
  readonly mutualTls: boolean;
  readonly untakenAnswers: UntakenAnswers;
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
      refuse(request, response, 400, new Failure("invalid_request", "The Host is missing or malformed"));
    else if (handler === undefined) {
      options.metrics?.rpc("unmatched")("method_not_allowed", 0);
      refuse(request, response, 404, new Failure("method_not_allowed", "There is no such rpc"));
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
    const arrival = arrivalOf(request, options.mutualTls);
    const values = createContextValues().set(arrivalKey, arrival);
    // The two overloads for HTTP/1.1 and HTTP/2 are one to us.
    const universal = universalRequestFromNodeRequest(
      request as IncomingMessage,
      response as ServerResponse,
      undefined,
      values,
    );
    assertByteStreamRequest(universal);
    const isEnveloped = isGrpc(request.headers) || handler.method.methodKind !== "unary";
    const body = wholeMessages(universal.body, { isEnveloped, messageBytesMax: bodyBytesMax });
    const answer = await handler({ ...universal, body });
    if (handler.method.methodKind === "unary" && answer.body !== undefined) {
      // Streams are held back by their followers; this one is there as a whole.
      const chunks = await readAll(answer.body);
      const bytes = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      const outlet = "stream" in response ? response.stream : response;
      options.untakenAnswers.add(arrival.countedAs, bytes, outlet, () => breakOff(response));
      answer.body = createAsyncIterable(chunks);
    }
    if (answer.trailer !== undefined) explainTrailer(answer.trailer);
    await universalResponseToNodeResponse(answer, response as ServerResponse);
  } catch (error) {
    if (error instanceof Failure) return refuse(request, response, catalogue[error.kind].rest, error);
    // Almost always a client that went away in the middle of its answer.
    options.log.debug("rpc-broken-off", `The answer of ${handler.requestPath} did not reach its caller`, { error });
    breakOff(response);
  }
}

/** So that nobody takes what arrived for the whole: destroyed by itself, a stream of HTTP/2 ends as if all were well. */
function breakOff(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(http2.constants.NGHTTP2_CANCEL);
  else response.destroy();
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return chunks;
}

/** Longer than any timer can run: Connect would fire at once. Calls have their own, much shorter, limit. */
const timerMsMax = 2 ** 31 - 1;

function dropOverlongTimeouts(headers: NodeRequest["headers"]): void {
  if ((grpcTimeoutMs(headers["grpc-timeout"] ?? "") ?? 0) > timerMsMax) delete headers["grpc-timeout"];
  const connect = String(headers["connect-timeout-ms"] ?? "");
  if (/^\d{1,10}$/.test(connect) && Number(connect) > timerMsMax) delete headers["connect-timeout-ms"];
}

/** HTTP/1.1 has this in Node's server; over HTTP/2 a stream could otherwise stay half-sent for ever, and beyond its deadline. */
function limitReceiving(request: NodeRequest, clock: Clock): void {
  if (!("stream" in request)) return;
  const { stream } = request;
  if (stream.readableEnded) return;
  const leftMs = grpcTimeoutMs(request.headers["grpc-timeout"] ?? "") ?? Number.POSITIVE_INFINITY;
  const cancel = clock.after(Math.min(leftMs, requestReceiveMs), () => stream.close(http2.constants.NGHTTP2_CANCEL));
  stream.once("end", cancel);
  stream.once("close", cancel);
}

/** In the caller's own protocol: gRPC clients look at grpc-status, all others at the HTTP status and Connect's JSON. */
function refuse(request: NodeRequest, response: NodeResponse, status: number, failure: Failure): void {
  const error = toConnectError(failure);
  request.resume();
  if (isGrpc(request.headers) && !isGrpcWeb(request.headers)) {
    response.statusCode = 200;
    response.setHeader("content-type", "application/grpc");
    for (const [name, value] of grpcTrailer(error)) response.setHeader(name, value);
    response.end();
    return;
  }
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(errorToJson(error, undefined)));
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
