/**
 * A registry of which every answer is written by the test: for documents, pages and token answers that the development registry
 * cannot give. It records what it was asked, byte for byte as far as HTTP shows it.
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, isIPv6 } from "node:net";

export interface Asked {
  readonly method: string;
  readonly path: string;
  /** With the question mark, still encoded; "" when there is none. */
  readonly search: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A function answers itself; text and bytes are sent as they are; everything else as JSON. */
export type Script = RequestListener | string | Buffer | object | number | null;

export interface ScriptedRegistry {
  /** Ends with a slash. */
  readonly url: string;
  readonly origin: string;
  readonly asked: Asked[];
  askedFor(path: string): Asked[];
  /** From now on; undefined: 404 again. */
  script(path: string, script: Script | undefined): void;
  close(): Promise<void>;
}

export const wellKnown = "/.well-known/registry.json";
export const emptyPage = { definitions: [], nextCursor: null };

export interface ScriptedOptions {
  readonly host?: string;
  readonly port?: number;
  /** https with this certificate. */
  readonly identity?: { readonly cert: string; readonly key: string };
}

export async function startScripted(
  scripts: Readonly<Record<string, Script>>,
  { host = "127.0.0.1", port = 0, identity }: ScriptedOptions = {},
): Promise<ScriptedRegistry> {
  const byPath = new Map<string, Script>(Object.entries(scripts));
  const asked: Asked[] = [];
  const listener: RequestListener = async (request, response) => {
    const { pathname, search } = new URL(request.url ?? "/", "http://any");
    const seen = { method: request.method ?? "", path: pathname, search, headers: request.headers, body: "" };
    asked.push(seen);
    for await (const chunk of request) seen.body += String(chunk);
    answerWith(byPath.get(pathname))(request, response);
  };
  const server = identity === undefined ? createServer(listener) : createTlsServer({ ...identity }, listener);
  server.listen(port, host);
  await once(server, "listening");
  const taken = (server.address() as AddressInfo).port;
  const origin = `${identity === undefined ? "http" : "https"}://${isIPv6(host) ? `[${host}]` : host}:${taken}`;
  return {
    url: `${origin}/`,
    origin,
    asked,
    askedFor: (path) => asked.filter((one) => one.path === path),
    script(path, script) {
      if (script === undefined) byPath.delete(path);
      else byPath.set(path, script);
    },
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answerWith(script: Script | undefined): RequestListener {
  if (typeof script === "function") return script as RequestListener;
  if (script === undefined) return sends("", 404);
  return sends(typeof script === "string" || Buffer.isBuffer(script) ? script : JSON.stringify(script));
}

export function sends(body: string | Buffer | object, status = 200, headers: Readonly<Record<string, string>> = {}) {
  const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return ((_request, response) => {
    response.writeHead(status, headers).end(status === 204 || status === 304 ? undefined : bytes);
  }) satisfies RequestListener;
}

export function redirects(location: string, status = 302): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { location }).end();
  };
}

/** The first scripts in turn, one a request; the last one for all that follow. */
export function inTurn(...scripts: readonly Script[]): RequestListener {
  let turn = 0;
  return (request, response) => answerWith(scripts[Math.min(turn++, scripts.length - 1)])(request, response);
}

export function later(ms: number, script: Script): RequestListener {
  return (request, response) => {
    const timer = setTimeout(() => answerWith(script)(request, response), ms);
    response.once("close", () => clearTimeout(timer));
  };
}
