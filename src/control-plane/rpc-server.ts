/**
 * One port for HTTP/1.1 and HTTP/2. Without TLS the first bytes of a connection tell them apart (HTTP/2 opens with `PRI`),
 * with TLS the handshake does. Closing says GOAWAY or `Connection: close`, lets calls finish, and cuts what is left after
 * the limit.
 */
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import {
  connectionsMax,
  headerBytesMax,
  headersMax,
  headersReceiveMs,
  keepAliveMs,
  receiveCheckMs,
  requestReceiveMs,
  rpcAnswerBytesMax,
  streamsPerConnectionMax,
  untakenAnswerBytesMax,
} from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import { watchSession } from "./session-life.ts";
import type { StreamHandler } from "./unary-grpc.ts";

export interface TlsOptions extends TlsFiles {
  /**
   * Hands over renewed files until the answer is called. Those who hold a connection keep it; when the authorities of clients have changed,
   * HTTP/2 sessions are told to come again and idle HTTP/1.1 connections closed, while calls in flight finish.
   */
  readonly onRenewed?: ((use: (renewed: TlsFiles) => void) => () => void) | undefined;
  /** A connection ended before a request: no TLS, no certificate, or none that is trusted. */
  readonly onRefused?: ((reason: string) => void) | undefined;
}

interface TlsFiles {
  /** PEM. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** PEM of the authority of client certificates: set means mutual TLS. */
  readonly clientCa?: string | Buffer | undefined;
}

export type NodeHandler = (
  request: http.IncomingMessage | http2.Http2ServerRequest,
  response: http.ServerResponse | http2.Http2ServerResponse,
) => void;

export interface RpcServer {
  readonly address: { readonly host: string; readonly port: number };
  close(limitMs: number): Promise<void>;
}

export interface RpcServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsOptions | undefined;
  readonly clock: Clock;
  readonly handler: NodeHandler;
  /** Looks at every HTTP/2 stream first. */
  readonly stream: StreamHandler;
}

/** Rejects when the address cannot be bound. */
export async function listenForRpcs(options: RpcServerOptions): Promise<RpcServer> {
  const { server, closeIdle } = options.tls === undefined ? plainServer(options) : secureServer(options, options.tls);
  server.maxConnections = connectionsMax;
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined); // a peer that resets is no news
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.host, port: options.port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("The control plane has no port");
  return {
    address: { host: bound.address, port: bound.port },
    async close(limitMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      closeIdle();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy(); // nobody waits for an answer there
      const again = setInterval(closeIdle, idleCheckMs);
      const cancelLimit = options.clock.after(limitMs, () => {
        for (const socket of sockets) socket.destroy();
      });
      await closed;
      clearInterval(again);
      cancelLimit();
    },
  };
}

/** HTTP/1.1 connections become idle one by one while calls finish. */
const idleCheckMs = 50;

/** `:method`, `:scheme`, `:path` and `:authority`; and one more, so that a surplus is seen. */
const pseudoHeaders = 5;

const h2Options = {
  settings: { maxConcurrentStreams: streamsPerConnectionMax, maxHeaderListSize: headerBytesMax, enablePush: false },
  // Above what admission refuses in words; Node by itself resets such streams without a word.
  maxHeaderListPairs: headersMax + pseudoHeaders,
  // The same with streams once a connection has much to send (10 MB): `UntakenAnswers` refuses in words before that.
  maxSessionMemory: Math.ceil((untakenAnswerBytesMax + 2 * rpcAnswerBytesMax) / 1e6),
} satisfies http2.ServerOptions;

const h1Options = {
  maxHeaderSize: headerBytesMax,
  headersTimeout: headersReceiveMs,
  requestTimeout: requestReceiveMs,
  connectionsCheckingInterval: receiveCheckMs,
  keepAliveTimeout: keepAliveMs,
} satisfies http.ServerOptions;

interface Listening {
  readonly server: net.Server;
  /** Asks every connection to end as soon as it has nothing to do. */
  closeIdle(): void;
}

function plainServer({ handler, stream, clock }: RpcServerOptions): Listening {
  const h1 = http.createServer(h1Options, handler);
  const h2 = http2.createServer(h2Options, handler);
  lookFirst(h2, stream);
  const closeSessions = sessionsOf(h2, clock);
  const server = net.createServer((socket) => sniff(socket, (isH2) => (isH2 ? h2 : h1).emit("connection", socket)));
  // The HTTP/1.1 server never listens itself; this starts its watch over header and request timeouts.
  h1.emit("listening");
  server.once("close", () => h1.close());
  return {
    server,
    closeIdle() {
      closeSessions();
      h1.closeIdleConnections();
    },
  };
}

function secureServer({ handler, stream, clock }: RpcServerOptions, tls: TlsOptions): Listening {
  const server = http2.createSecureServer(
    {
      ...h2Options,
      ...h1Options,
      ...contextOptions(tls),
      allowHTTP1: true,
      handshakeTimeout: headersReceiveMs,
      ...(tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
    },
    handler,
  );
  lookFirst(server, stream);
  const closeSessions = sessionsOf(server, clock);
  const closeIdle = (): void => {
    closeSessions();
    // Of HTTP/1.1; Node has it since 24, its types do not.
    (server as Partial<Pick<http.Server, "closeIdleConnections">>).closeIdleConnections?.();
  };
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    // Of a certificate that is not trusted Node says no more than that the connection was reset.
    const reason = (socket.authorizationError as unknown) ?? error.code ?? error.message;
    tls.onRefused?.(String(reason));
  });
  server.once("listening", () => {
    const stopRenewing = tls.onRenewed?.(renewing(server, tls, closeIdle));
    server.once("close", () => stopRenewing?.());
  });
  return { server, closeIdle };
}

/** Who came in by an authority that may count no more has to show a certificate again. */
function renewing(
  server: http2.Http2SecureServer,
  inUse: TlsFiles,
  closeIdle: () => void,
): (renewed: TlsFiles) => void {
  let { clientCa } = inUse;
  return (renewed) => {
    server.setSecureContext(contextOptions(renewed));
    if (renewed.clientCa !== clientCa) closeIdle();
    clientCa = renewed.clientCa;
  };
}

function contextOptions({ cert, key, clientCa }: TlsFiles): SecureContextOptions {
  return { cert, key, minVersion: "TLSv1.2", ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

/** Answers a function that says GOAWAY on every open HTTP/2 session; streams in flight finish. */
function sessionsOf(server: http2.Http2Server | http2.Http2SecureServer, clock: Clock): () => void {
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    watchSession(session, clock);
    session.once("close", () => sessions.delete(session));
    session.on("error", () => undefined);
  });
  server.on("sessionError", () => undefined);
  return () => {
    for (const session of sessions) if (!session.closed) session.close();
  };
}

/** Node turns a stream into a request by a listener of its own; that one gets what `stream` leaves. */
function lookFirst(server: http2.Http2Server | http2.Http2SecureServer, stream: StreamHandler): void {
  type Listener = (...all: Parameters<StreamListener>) => void;
  const others = server.listeners("stream") as Listener[];
  server.removeAllListeners("stream");
  server.on("stream", (...all: Parameters<StreamListener>) => {
    const [opened, headers, , rawHeaders] = all;
    if (!stream(opened, headers, rawHeaders)) for (const other of others) other(...all);
  });
}

type StreamListener = (
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

const h2Preface = Buffer.from("PRI");

function sniff(socket: net.Socket, hand: (isH2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const timeout = (): void => void socket.destroy();
  const onData = (chunk: Buffer): void => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const isPrefix = h2Preface.subarray(0, seen.length).equals(seen.subarray(0, h2Preface.length));
    if (isPrefix && seen.length < h2Preface.length) return;
    socket.off("data", onData);
    socket.off("timeout", timeout);
    socket.setTimeout(0);
    socket.pause();
    socket.unshift(seen);
    hand(isPrefix);
    // An HTTP/2 session takes the bytes out itself, and would miss them if the socket were flowing.
    if (!isPrefix) socket.resume();
  };
  socket.setTimeout(headersReceiveMs, timeout);
  socket.on("data", onData);
}
