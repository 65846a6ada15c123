/**
 * What a server does wrong on the wire, one route at a time. The honest answer is made first and then spoilt, so a token asked
 * for slowly is a token all the same. Nothing outlives the connection it spoils.
 */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Reply } from "./reply.ts";
import type { RouteName } from "./routes.ts";

export type Fault = (
  | { readonly do: "delay"; readonly ms: number }
  /** Headers at once, then so many bytes at a time. */
  | { readonly do: "drip"; readonly bytes: number; readonly everyMs: number }
  /** Headers and half of the body, then silence. */
  | { readonly do: "stall" }
  /** Headers and half of the body, then the connection ends. */
  | { readonly do: "cut" }
  /** The connection ends without an answer. */
  | { readonly do: "hang-up" }
  | Redirect
  | {
      readonly do: "replace";
      readonly status?: number;
      readonly mediaType?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string | Buffer;
    }
  /** The honest bytes under another name. */
  | { readonly do: "mislabel"; readonly mediaType: string }
  /** Spaces after the body: still valid JSON, and this much larger. */
  | { readonly do: "pad"; readonly bytes: number }
  /** As `pad`, compressed; 0 is an honest compressed answer. */
  | { readonly do: "compress"; readonly encoding: "gzip" | "br"; readonly bytes: number }
) & {
  /** Only the first so many requests suffer. */
  readonly times?: number;
};

interface Redirect {
  readonly do: "redirect";
  /** 302 when not given. */
  readonly status?: number;
  /** Verbatim Location; without it, the same path and query again, with a count of the hops in the parameter `hop`. */
  readonly to?: string;
  /** In front of the same path; without it, this server. */
  readonly origin?: string;
  /** So many redirects, then the answer; without it, there is no end. */
  readonly hops?: number;
}

/** Which request suffers: counts by route, from one until `times`. */
export class FaultCounter {
  readonly #faults: Readonly<Partial<Record<RouteName, Fault>>>;
  readonly #suffered = new Map<RouteName, number>();

  constructor(faults: Readonly<Partial<Record<RouteName, Fault>>>) {
    this.#faults = faults;
  }

  next(route: RouteName): Fault | undefined {
    const fault = this.#faults[route];
    const count = (this.#suffered.get(route) ?? 0) + 1;
    this.#suffered.set(route, count);
    return fault?.times !== undefined && count > fault.times ? undefined : fault;
  }
}

export interface Exchange {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly response: ServerResponse;
  /** Ends when the client or the fixture goes away. */
  readonly signal: AbortSignal;
}

const gone = () => {};

export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, { ...headers, "Content-Length": body.length });
  response.end(body);
}

export async function sendSpoilt(fault: Fault, reply: Reply, exchange: Exchange): Promise<void> {
  const { response, signal } = exchange;
  switch (fault.do) {
    case "delay":
      await sleep(fault.ms, undefined, { signal }).catch(gone);
      if (!signal.aborted) send(response, reply);
      return;
    case "drip":
      return drip(fault, reply, exchange);
    case "stall":
      startBody(response, reply);
      return;
    case "cut":
      startBody(response, reply, () => response.destroy());
      return;
    case "hang-up":
      response.destroy();
      return;
    default:
      send(response, spoilt(fault, reply, exchange));
  }
}

function spoilt(
  fault: Extract<Fault, { do: "redirect" | "replace" | "mislabel" | "pad" | "compress" }>,
  reply: Reply,
  exchange: Exchange,
): Reply {
  switch (fault.do) {
    case "redirect":
      return redirected(fault, reply, exchange);
    case "replace": {
      const type = fault.mediaType === undefined ? {} : { "Content-Type": fault.mediaType };
      const headers = { ...reply.headers, ...type, ...fault.headers };
      return { status: fault.status ?? reply.status, headers, body: Buffer.from(fault.body) };
    }
    case "mislabel":
      return { ...reply, headers: { ...reply.headers, "Content-Type": fault.mediaType } };
    case "pad":
      return { ...reply, body: padded(reply.body, fault.bytes) };
    case "compress": {
      const body = padded(reply.body, fault.bytes);
      const headers = { ...reply.headers, "Content-Encoding": fault.encoding };
      return { ...reply, headers, body: fault.encoding === "gzip" ? gzipSync(body) : quickBrotli(body) };
    }
  }
}

function redirected(fault: Redirect, reply: Reply, { path, query }: Exchange): Reply {
  const hop = Number(query.get("hop") ?? 0);
  if (fault.hops !== undefined && hop >= fault.hops) return reply;
  const next = new URLSearchParams(query);
  next.set("hop", String(hop + 1));
  const location = fault.to ?? `${fault.origin ?? ""}${path}?${next}`;
  return { status: fault.status ?? 302, headers: { Location: location }, body: Buffer.alloc(0) };
}

/** The default quality takes seconds for a bomb, and the whole process waits. */
function quickBrotli(body: Buffer): Buffer {
  return brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } });
}

function padded(body: Buffer, bytes: number): Buffer {
  return Buffer.concat([body, Buffer.alloc(bytes, " ")]);
}

async function drip(fault: Extract<Fault, { do: "drip" }>, reply: Reply, { response, signal }: Exchange) {
  response.writeHead(reply.status, { ...reply.headers, "Content-Length": reply.body.length });
  response.flushHeaders();
  for (let sent = 0; sent < reply.body.length && !signal.aborted; sent += fault.bytes) {
    response.write(reply.body.subarray(sent, sent + fault.bytes));
    await sleep(fault.everyMs, undefined, { signal }).catch(gone);
  }
  response.end();
}

function startBody(response: ServerResponse, { status, headers, body }: Reply, written: () => void = gone): void {
  response.writeHead(status, { ...headers, "Content-Length": body.length });
  response.write(body.subarray(0, Math.floor(body.length / 2)), written);
}
