/**
 * The development registry: a real HTTP server that does what a remote registry does, for people who write registries or clients
 * of them, and for tests. It is a foreign system: it knows nothing of the server that talks to it, records every request, and
 * changes its behaviour while it runs.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { type Behaviour, defaultBehaviour } from "./behaviour.ts";
import { FaultCounter, send, sendSpoilt } from "./faults.ts";
import { honestReply } from "./honest-reply.ts";
import type { Publications } from "./publication.ts";
import { bodyBytesMax, type RecordedRequest, Recording } from "./recording.ts";
import { errorReply } from "./reply.ts";
import { type EntryKind, paths, type RouteName, routeOf } from "./routes.ts";
import { Shelf } from "./shelf.ts";
import { TokenBook } from "./token-book.ts";

export interface DevRegistryOptions extends Partial<Behaviour> {
  /** 127.0.0.1 when not given. */
  readonly host?: string;
  /** 0, which picks a free one, when not given. */
  readonly port?: number;
  /** Everything but the well-known document is below it: `/some/path`, or the default, empty. */
  readonly basePath?: string;
  /** Epoch milliseconds, by which tokens expire. */
  readonly now?: () => number;
}

export interface DevRegistry {
  /** What a client registers; ends with a slash. */
  readonly url: string;
  readonly origin: string;
  /** The one that is enforced, also when another is advertised. */
  readonly tokenEndpoint: string;
  /** In the order of arrival, the last 10,000. */
  readonly requests: readonly RecordedRequest[];
  /**
   * How often each path was asked for, of one route or of all, such as `{"/v1/modules/csv-table": 1}` for `descriptor`.
   * Throws when more than 10,000 requests have arrived since the last `clearRequests`.
   */
  requestCounts(route?: RouteName): Readonly<Record<string, number>>;
  clearRequests(): void;
  /** Offers a release from now on, in this fixture only. Throws when id or version cannot be part of a path. */
  publish<Kind extends EntryKind>(kind: Kind, publication: Publications[Kind]): void;
  /** The other way round; without a version, all of it. Throws when it is not on offer. */
  withdraw(kind: EntryKind, id: string, version?: string): void;
  /** Holds for requests that arrive from now on. Tokens stay as they are. */
  set(changes: Partial<Behaviour>): void;
  /** Without a token: all that were issued so far. */
  revoke(token?: string): void;
  /** Ends open connections too. Safe to call twice. */
  close(): Promise<void>;
}

/** Rejects when the address cannot be had, or the base path is not one. */
export async function startDevRegistry(options: DevRegistryOptions = {}): Promise<DevRegistry> {
  const { host = "127.0.0.1", port = 0, basePath = "", now = Date.now, ...changes } = options;
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(basePath)) throw new Error(`Base path "${basePath}" must be like "/some/path"`);
  const tokens = new TokenBook(now);
  const recording = new Recording();
  const shelf = new Shelf();
  const closing = new AbortController();
  let behaviour: Behaviour = { ...defaultBehaviour, ...changes };
  let faults = new FaultCounter(behaviour.faults);

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      send(response, errorReply(500, "internal", error instanceof Error ? error.message : "Something broke"));
    });
  });
  const origin = await listen(server, host, port);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    const { method = "", headers } = request;
    // By hand: URL would resolve dot segments, and what a client really asked for is the point of a recording.
    const [path = "", search = ""] = (request.url ?? "").split(/\?(.*)/s);
    const query = new URLSearchParams(search);
    const route = routeOf(path, basePath);
    const fault = faults.next(route.name);
    const answering = { behaviour, place: { origin, basePath }, tokens, shelf };
    const body = await recording.add(request, { route: route.name, path }, query);
    const reply =
      body === undefined
        ? errorReply(413, "too_large", `The body is larger than ${bodyBytesMax} bytes`, { Connection: "close" })
        : honestReply({ route, method, path, query, headers, body }, answering);
    if (fault === undefined) return send(response, reply);
    const signal = AbortSignal.any([closing.signal, disconnected.signal]);
    await sendSpoilt(fault, reply, { path, query, response, signal });
  }

  let closed: Promise<void> | undefined;
  return {
    url: `${origin}${basePath}/`,
    origin,
    tokenEndpoint: `${origin}${paths.token(basePath)}`,
    requests: recording.requests,
    requestCounts: (route) => recording.countByPath(route),
    clearRequests: () => recording.clear(),
    publish: (kind, publication) => shelf.publish(kind, publication),
    withdraw: (kind, id, version) => shelf.withdraw(kind, id, version),
    set: (more) => {
      behaviour = { ...behaviour, ...more };
      if (more.faults !== undefined) faults = new FaultCounter(more.faults);
    },
    revoke: (token) => tokens.revoke(token),
    close: () => {
      closing.abort();
      closed ??= closeServer(server);
      return closed;
    },
  };
}

/** The origin it listens on. */
async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return new URL(`http://${isIPv6(host) ? `[${host}]` : host}:${taken}`).origin;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeAllConnections();
  });
}
