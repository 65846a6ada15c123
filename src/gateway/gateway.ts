/**
 * The REST face: one route per operation row. It admits a request (Host, Origin, key), merges path, query and body into the
 * row's input, calls, and answers. It names no operation and no kind.
 *
 * 1. Whatever is answered is JSON (or the row's text type), also what is refused below the router.
 * 2. Every answer carries X-Request-Id, and the log has a line for each request under it, and one more for whom it was refused.
 * 3. Nothing of a body is read before the caller is known and the media type is right.
 * 4. After `close()` was called no new call is admitted; admitted ones finish, up to the limit given.
 */
import type { Socket } from "node:net";
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { catalogue } from "../errors/catalogue.ts";
import { Failure } from "../errors/failure.ts";
import {
  connectionsMax,
  headerBytesMax,
  headersMax,
  headersReceiveMs,
  keepAliveMs,
  receiveCheckMs,
  requestReceiveMs,
} from "../limits.ts";
import { type Authentication, type OriginRules, originRules } from "../operations/authentication.ts";
import {
  asFailure,
  Call,
  callOperation,
  failureOf,
  openStream,
  type Readiness,
  requestIdFrom,
} from "../operations/call.ts";
import { type ClientAddress, clientAddresses } from "../operations/client-address.ts";
import type { IdempotentCalls } from "../operations/idempotency.ts";
import { OpenStreams } from "../operations/open-streams.ts";
import type { Operation, StreamOperation } from "../operations/operation.ts";
import type { RateLimits } from "../operations/rate-limits.ts";
import { logRefusal } from "../operations/refusal-log.ts";
import { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import { admit } from "./admission.ts";
import type { AgentGuideFacts } from "./agent-guide.ts";
import { sendFailure, sendJson } from "./answer.ts";
import { readBody } from "./body.ts";
import { clientErrorHandler } from "./client-error.ts";
import { answerOptions } from "./cross-origin.ts";
import { addDocuments } from "./documents.ts";
import { endOfTurn } from "./end-of-turn.ts";
import { sendEvents } from "./event-stream.ts";
import { type KnownPaths, knownPaths } from "./known-paths.ts";
import { addMetricsRoute, type MetricsSource } from "./metrics-route.ts";
import { addRequestSpans } from "./request-spans.ts";
import { type RoutePlan, routePlan, type StreamPlan, streamPlan } from "./route-plan.ts";

export interface GatewayOptions {
  readonly operations: readonly Operation[];
  readonly streams?: readonly StreamOperation[] | undefined;
  /** Streams open at once; absent: `eventStreamsMax`. */
  readonly streamsMax?: number | undefined;
  /** Absent: keys are not looked at. */
  readonly idempotentCalls?: IdempotentCalls | undefined;
  readonly authentication: Authentication;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  /** Absent: none. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Absent: nothing is limited. */
  readonly rateLimits?: RateLimits | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly readiness: Readiness;
  /** Set: the face describes itself at /openapi.json, /docs and /llms.txt. */
  readonly documents?: AgentGuideFacts | undefined;
  /** Set: requests are counted, and what was counted is served at /metrics. */
  readonly metrics?: (FaceMetrics & MetricsSource) | undefined;
  readonly tracing?: Tracing | undefined;
  /** Routes that are no operations (MCP); admission guards them too. `config: {open: true}` asks no key. */
  readonly mount?: ((app: FastifyInstance, face: MountedOn) => void) | undefined;
}

export interface MountedOn {
  /** False when the client is gone, which is then noted: nothing may be sent. */
  canAnswer(request: FastifyRequest, reply: FastifyReply): boolean;
}

export interface Gateway {
  readonly address: { readonly host: string; readonly port: number };
  /** Resolves when the last connection is gone, at the latest shortly after `limitMs`. */
  close(limitMs: number): Promise<void>;
}

interface Face extends GatewayOptions {
  readonly clientAddress: ClientAddress;
  readonly origins: OriginRules;
  readonly paths: KnownPaths;
  readonly sockets: Set<Socket>;
  readonly openStreams: OpenStreams;
  readonly untakenAnswers: UntakenAnswers;
  closing: boolean;
}

/** Rejects when the address cannot be bound. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const face: Face = {
    ...options,
    origins: originRules({
      boundHost: options.host,
      allowedHosts: options.allowedHosts,
      corsOrigins: options.corsOrigins,
    }),
    clientAddress: clientAddresses(options.trustedProxies ?? []),
    paths: knownPaths(),
    sockets: new Set(),
    openStreams: new OpenStreams(options.clock, options.streamsMax),
    untakenAnswers: new UntakenAnswers(options.clock),
    closing: false,
  };
  const app = openApp(face);
  for (const row of options.operations) addRow(app, face, routePlan(row));
  for (const row of options.streams ?? []) addStream(app, face, streamPlan(row));
  addProbes(app, face);
  if (options.documents !== undefined) {
    addDocuments(app, { operations: options.operations, streams: options.streams ?? [], facts: options.documents });
  }
  if (options.metrics !== undefined) addMetricsRoute(app, { ...face, source: options.metrics });
  options.mount?.(app, { canAnswer: (request, reply) => canAnswer(face, request, reply) });
  await app.listen({ host: options.host, port: options.port });
  const bound = app.server.address();
  if (bound === null || typeof bound === "string") throw new Error("The gateway has no port");
  return {
    address: { host: bound.address, port: bound.port },
    close: (limitMs) => closeApp(app, face, limitMs),
  };
}

function openApp(face: Face): FastifyInstance {
  const app = fastify({
    logger: false,
    return503OnClosing: false, // its body is not our envelope; admission refuses instead
    requestTimeout: requestReceiveMs,
    keepAliveTimeout: keepAliveMs,
    // requireHostHeader: Node's own refusal has no body; admission says it in the envelope.
    http: {
      maxHeaderSize: headerBytesMax,
      headersTimeout: headersReceiveMs,
      connectionsCheckingInterval: receiveCheckMs,
      requireHostHeader: false,
    },
    routerOptions: { maxParamLength: headerBytesMax },
    genReqId: (raw) => requestIdFrom(raw.headers["x-request-id"]),
    clientErrorHandler,
    frameworkErrors: (error, request, reply) => {
      reply.header("x-request-id", request.id);
      sendFailure(reply, frameworkFailure(error, request, face.log));
    },
  });
  app.server.maxHeadersCount = headersMax + 1; // one more than allowed, so that a surplus is seen and not cut off
  app.server.maxConnections = connectionsMax;
  app.server.on("connection", (socket) => {
    face.sockets.add(socket);
    socket.once("close", () => face.sockets.delete(socket));
  });
  // Left to body.ts, which says "go on" only to requests it is going to read.
  app.server.on("checkContinue", (request, response) => app.server.emit("request", request, response));
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.decorateRequest("caller");
  app.decorateRequest("countedAs");
  app.decorateRequest("refusal");
  app.addHook("onRoute", (route) => {
    face.paths.add(route);
    const [method = "GET"] = [route.method].flat();
    const template = route.url.replace(/:(\w+)/g, "{$1}");
    const meter = face.metrics?.route(method, template);
    route.config = { ...route.config, rateLimit: face.rateLimits?.ofRoute(method, route.url), template, meter };
  });
  if (face.tracing !== undefined) addRequestSpans(app, face.tracing);
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    if (face.closing) reply.header("connection", "close");
    try {
      admit(face, request, reply);
      done();
    } catch (error) {
      sendFailure(reply, asFailure(error, "admission", request.id, face.log));
    }
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    try {
      watchTaking(face, request, reply, payload);
      done();
    } catch (error) {
      done(error as Failure);
    }
  });
  app.addHook("onResponse", (request, reply, done) => {
    noteAnswer(face, request, reply, reply.statusCode);
    done();
  });
  app.setErrorHandler((error: FastifyError, request, reply) =>
    sendFailure(reply, frameworkFailure(error, request, face.log)),
  );
  app.setNotFoundHandler((request, reply) => answerUnmatched(face, request, reply));
  return app;
}

function watchTaking(face: Face, request: FastifyRequest, { raw }: FastifyReply, payload: unknown): void {
  if (typeof payload !== "string" && !(payload instanceof Uint8Array)) return;
  face.untakenAnswers.add(request.countedAs, payload.length, raw, () => raw.destroy());
}

function addRow(app: FastifyInstance, face: Face, plan: RoutePlan): void {
  app.route({
    method: plan.row.route.method,
    url: plan.url,
    config: { readsNoBody: plan.mediaTypes === undefined },
    handler: (request, reply) => void serve(face, plan, request, reply),
  });
}

async function serve(face: Face, plan: RoutePlan, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const othersRead = endOfTurn();
  try {
    const bytes = plan.mediaTypes === undefined ? noBytes : await readBody(request.raw, reply.raw, plan.mediaTypes);
    const output = await run(face, plan, request, reply, bytes);
    await othersRead;
    if (canAnswer(face, request, reply)) plan.answer(reply, output);
  } catch (error) {
    // callOperation rejects with Failure only; anything else is a crash of ours on the way in or out.
    const failure = asFailure(error, plan.row.name, request.id, face.log);
    if (canAnswer(face, request, reply)) sendFailure(reply, failure);
  }
}

function newCall(face: Face, request: FastifyRequest, reply: FastifyReply): Call {
  return new Call({
    requestId: request.id,
    caller: request.caller,
    clock: face.clock,
    log: face.log,
    watchCaller: (watched) => watchClient(reply, watched),
  });
}

/** Throws Failure, or rejects with it. */
function run(
  face: Face,
  { row, input: inputOf }: RoutePlan,
  request: FastifyRequest,
  reply: FastifyReply,
  bytes: Uint8Array,
): Promise<unknown> {
  const call = newCall(face, request, reply);
  const input = inputOf(request, bytes);
  const key = row.idempotent === undefined ? undefined : request.headers["idempotency-key"];
  if (key === undefined || face.idempotentCalls === undefined) return callOperation(row, input, call);
  return face.idempotentCalls.call(row, input, call, String(key)).then(({ output, replayed }) => {
    if (replayed) reply.header("idempotency-replayed", "true");
    return output;
  });
}

function addStream(app: FastifyInstance, face: Face, plan: StreamPlan): void {
  app.route({
    method: "GET",
    url: plan.url,
    exposeHeadRoute: false,
    handler: (request, reply) => void follow(face, plan, request, reply),
  });
}

async function follow(face: Face, plan: StreamPlan, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { row } = plan;
  const call = newCall(face, request, reply);
  const failed = (error: unknown): Failure => asFailure(error, row.name, request.id, face.log);
  let over: (() => void) | undefined;
  try {
    over = face.openStreams.add(call);
    const items = await openStream(row, plan.input(request), call);
    if (!canAnswer(face, request, reply)) return;
    if (items === null) {
      reply.code(204).send();
      return;
    }
    const source = { items, eventOf: row.eventOf, failureOf: failed, clock: face.clock };
    const isWhole = await sendEvents(reply, source);
    // An answer that was sent to its end has its line from the hook.
    if (!isWhole) noteAnswer(face, request, reply, catalogue.cancelled.rest);
  } catch (error) {
    if (canAnswer(face, request, reply)) sendFailure(reply, failed(error));
  } finally {
    over?.();
  }
}

/** False when the client is gone: nothing is sent then, and the router's end-of-answer hook would never come. */
function canAnswer(face: Face, request: FastifyRequest, reply: FastifyReply): boolean {
  if (reply.raw.destroyed) {
    reply.hijack();
    request.refusal = new Failure("cancelled", "The client went away");
    noteAnswer(face, request, reply, catalogue.cancelled.rest);
    return false;
  }
  if (face.closing) reply.header("connection", "close");
  return true;
}

const noBytes = new Uint8Array(0);

/** The response, not the request: a request is "closed" as soon as it was read. */
function watchClient(reply: FastifyReply, call: Call): void {
  const gone = (): void => {
    if (!reply.raw.writableFinished) call.end(new Failure("cancelled", "The client went away"));
  };
  if (reply.raw.destroyed) gone();
  else reply.raw.once("close", gone);
}

function addProbes(app: FastifyInstance, face: Face): void {
  const config = { open: true, probe: true };
  app.get("/healthz", { config }, (_request, reply) => sendJson(reply, 200, { status: "alive" }));
  app.get("/readyz", { config }, (_request, reply) => {
    const state = face.closing
      ? ({ ready: false, reason: "The server is shutting down" } as const)
      : face.readiness.check();
    if (state.ready) sendJson(reply, 200, { status: "ready" });
    else sendFailure(reply, new Failure("unavailable", state.reason));
  });
}

/** No route matched: OPTIONS on a path that exists, a path with other methods, or an unknown path. */
function answerUnmatched(face: Face, request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split("?", 1)[0] ?? "";
  const allow = face.paths.methodsOf(path);
  if (allow.length === 0) sendFailure(reply, new Failure("not_found", "There is nothing at this path"));
  else if (request.method === "OPTIONS") answerOptions(reply, request, allow, face.origins);
  else
    sendFailure(reply, new Failure("method_not_allowed", `This path does not answer to ${request.method}`, { allow }));
}

/** What fastify itself refuses; its messages and status codes stay inside. */
function frameworkFailure(error: FastifyError, request: FastifyRequest, log: Log): Failure {
  if (error.code === "FST_ERR_BAD_URL")
    return new Failure("invalid_request", "The path is not properly percent-encoded");
  if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    return new Failure("unsupported_media_type", 'The Content-Type of the body must be "application/json"');
  }
  return failureOf(error, "gateway", request.id, log);
}

/** Once for each request: counted, and written down. */
function noteAnswer(face: Face, request: FastifyRequest, reply: FastifyReply, status: number): void {
  const { config } = request.routeOptions; // made anew each time it is asked for
  const { id: requestId, method, caller, countedAs, refusal } = request;
  const durationMs = reply.elapsedTime;
  const meter = config?.meter ?? face.metrics?.route(request.method, undefined);
  meter?.(status, durationMs, refusal?.kind);
  if (refusal !== undefined) {
    const path = config?.template ?? "unmatched";
    logRefusal(face.log, { failure: refusal, requestId, caller: countedAs, request: `${method} ${path}` });
  }
  const level = status >= 500 ? "info" : "debug";
  if (face.log.writes?.(level) === false) return;
  const route = config?.url ?? "unmatched";
  const fields = { requestId, method, route, status, durationMs, caller: caller?.name };
  face.log[level]("http-request", `${method} ${route} ${status}`, fields);
}

async function closeApp(app: FastifyInstance, face: Face, limitMs: number): Promise<void> {
  face.closing = true;
  face.openStreams.close();
  // Node counts a connection that never sent a byte as busy; nobody waits for an answer on it.
  for (const socket of face.sockets) if (socket.bytesRead === 0) socket.destroy();
  const stopWaiting = face.clock.after(limitMs, () => app.server.closeAllConnections());
  await app.close();
  stopWaiting();
}
