/** Real servers on loopback, and an egress client with a clock of real time and a resolver of our choice. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { afterEach, expect } from "vitest";
import type { Egress } from "../../src/egress/egress.ts";
import { openEgress } from "../../src/egress/egress.ts";
import type { Lookup } from "../../src/egress/resolver.ts";
import { type Failure, isFailure } from "../../src/errors/failure.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { OutboundAnswer, OutboundRequest } from "../../src/ports/fetcher.ts";
import type { Log } from "../../src/ports/log.ts";

export const realClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};

const quiet = (): void => undefined;
export const quietLog: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

export interface Origin {
  readonly url: string;
  readonly port: number;
  /** What arrived, in order. */
  readonly requests: IncomingMessage[];
}

export async function serve(listener: RequestListener, host = "127.0.0.1"): Promise<Origin> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  const port = await listen(server, host);
  cleanUps.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`, port, requests };
}

/** Bytes of our own choice instead of HTTP. */
export async function serveRaw(onSocket: (socket: Socket) => void): Promise<Origin> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket.on("error", quiet));
    onSocket(socket);
  });
  const port = await listen(server, "127.0.0.1");
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, port, requests: [] };
}

async function listen(server: Server | TcpServer, host: string): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

export interface ClientOptions {
  readonly allowedCidrs?: readonly string[];
  readonly blockedCidrs?: readonly string[];
  /** Name to addresses; absent names do not exist. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  readonly lookup?: Lookup;
}

export function client({ allowedCidrs = [], blockedCidrs = [], names = {}, lookup }: ClientOptions = {}): Egress {
  const egress = openEgress({
    allowedCidrs,
    blockedCidrs,
    clock: realClock,
    log: quietLog,
    lookup: lookup ?? (async (name) => names[name] ?? notFound()),
  });
  cleanUps.push(() => egress.close());
  return egress;
}

function notFound(): never {
  throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
}

export function get(url: string, more: Partial<OutboundRequest> = {}): OutboundRequest {
  return { method: "GET", url, headers: {}, redirectsMax: 5, bodyBytesMax: 1024 * 1024, timeoutMs: 5_000, ...more };
}

export function textOf({ body }: OutboundAnswer): string {
  return new TextDecoder().decode(body);
}

export async function failureOf(work: Promise<unknown>, kind: Failure["kind"]): Promise<string> {
  const error: unknown = await work.then(
    () => expect.unreachable("Nothing failed"),
    (reason: unknown) => reason,
  );
  if (!isFailure(error)) throw error;
  expect(`${error.kind}: ${error.message}`).toMatch(new RegExp(`^${kind}: `));
  return error.message;
}
