/**
 * The development registry: a real HTTP server that does what a remote registry does, for people who write registries or clients
 * of them, and for tests. It is a foreign system: it knows nothing of the server that talks to it, records every request, and
 * changes its behaviour while it runs.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { type Behaviour, defaultBehaviour } from "./behaviour.ts";
import { type Fault, send, sendSpoilt } from "./faults.ts";
import { honestReply } from "./honest-reply.ts";
import { errorReply } from "./reply.ts";
import { paths, type RouteName, routeOf } from "./routes.ts";
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

export interface RecordedRequest {
  readonly route: RouteName;
  readonly method: string;
  /** Still percent-encoded, without the query. */
  readonly path: string;
  /** A list only when a name is repeated. */
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly headers: IncomingHttpHeaders;
  /** Empty until it has arrived. */
  readonly body: string;
}

export interface DevRegistry {
  /** What a client registers; ends with a slash. */
  readonly url: string;
  readonly origin: string;
  /** The one that is enforced, also when another is advertised. */
  readonly tokenEndpoint: string;
  /** In the order of arrival, the last 10,000. */
  readonly requests: readonly RecordedRequest[];
  /** Holds for requests that arrive from now on. Tokens stay as they are. */
  set(changes: Partial<Behaviour>): void;
  /** Without a token: all that were issued so far. */
  revoke(token?: string): void;
  /** Ends open connections too. */
  close(): Promise<void>;
}

/** A fixture that is left running must not fill the memory. */
const requestsKeptMax = 10_000;
/** Of a request; the largest is a form with credentials. */
const bodyBytesMax = 64 * 1024;

/** Rejects when the port is taken, or the base path is not one. */
export async function startDevRegistry(options: DevRegistryOptions = {}): Promise<DevRegistry> {
  const { host = "127.0.0.1", port = 0, basePath = "", now = Date.now, ...changes } = options;
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(basePath)) throw new Error(`Base path "${basePath}" must be like "/some/path"`);
  const tokens = new TokenBook(now);
  const requests: RecordedRequest[] = [];
  const closing = new AbortController();
  let behaviour: Behaviour = { ...defaultBehaviour, ...changes };
  let suffered = new Map<Fault, number>();

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      send(response, errorReply(500, "internal", error instanceof Error ? error.message : "Something broke"));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const taken = (server.address() as AddressInfo).port;
  const origin = new URL(`http://${isIPv6(host) ? `[${host}]` : host}:${taken}`).origin;
  const place = { origin, basePath };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    // By hand: URL would resolve dot segments, and what a client really asked for is the point of a recording.
    const [path = "", search = ""] = (request.url ?? "").split(/\?(.*)/s);
    const query = new URLSearchParams(search);
    const route = routeOf(path, basePath);
    const recorded = { route: route.name, method, path, query: grouped(query), headers, body: "" };
    record(recorded);
    const asked = behaviour;
    const fault = nextFault(asked.faults[route.name]);
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    const body = await readBody(request);
    recorded.body = body ?? "";
    const reply =
      body === undefined
        ? errorReply(413, "too_large", `The body is larger than ${bodyBytesMax} bytes`, { Connection: "close" })
        : honestReply({ route, method, path, query, headers, body }, { behaviour: asked, place, tokens });
    if (fault === undefined) return send(response, reply);
    const signal = AbortSignal.any([closing.signal, disconnected.signal]);
    await sendSpoilt(fault, reply, { path, query, response, signal });
  }

  function record(request: RecordedRequest): void {
    requests.push(request);
    if (requests.length > requestsKeptMax) requests.shift();
  }

  function nextFault(fault: Fault | undefined): Fault | undefined {
    if (fault?.times === undefined) return fault;
    const count = (suffered.get(fault) ?? 0) + 1;
    suffered.set(fault, count);
    return count <= fault.times ? fault : undefined;
  }

  return {
    url: `${origin}${basePath}/`,
    origin,
    tokenEndpoint: `${origin}${paths.token(basePath)}`,
    requests,
    set: (more) => {
      behaviour = { ...behaviour, ...more };
      if (more.faults !== undefined) suffered = new Map();
    },
    revoke: (token) => tokens.revoke(token),
    close: () => {
      closing.abort();
      server.closeAllConnections();
      return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
    },
  };
}

function grouped(query: URLSearchParams): Record<string, string | readonly string[]> {
  const names = [...new Set(query.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const [first = "", ...others] = query.getAll(name);
      return [name, others.length === 0 ? first : [first, ...others]];
    }),
  );
}

/** undefined: larger than any request has to be; the rest is not read. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
