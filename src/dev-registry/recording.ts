/** What was asked of the fixture, for tests to look at: which requests were made, and which credentials went where. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { RouteName } from "./routes.ts";

export interface RecordedRequest {
  readonly route: RouteName;
  readonly method: string;
  /** As it was sent, still percent-encoded, without the query. */
  readonly path: string;
  /** A list only when a name is repeated. */
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly headers: IncomingHttpHeaders;
  /** Empty until it has arrived. */
  readonly body: string;
}

/** A fixture that is left running must not fill the memory. */
export const requestsKeptMax = 10_000;
/** Of a request; the largest is a form with credentials. */
export const bodyBytesMax = 64 * 1024;

export class Recording {
  readonly requests: RecordedRequest[] = [];
  #hasForgotten = false;

  /** Counted from the first byte on. The body, undefined when it is larger than any has to be, is added as soon as it is there. */
  async add(request: IncomingMessage, seen: Pick<RecordedRequest, "route" | "path">, query: URLSearchParams) {
    const { method = "", headers } = request;
    const recorded = { ...seen, method, query: grouped(query), headers, body: "" };
    this.requests.push(recorded);
    if (this.requests.length > requestsKeptMax) {
      this.requests.shift();
      this.#hasForgotten = true;
    }
    const body = await readBody(request);
    recorded.body = body ?? "";
    return body;
  }

  /** How often each path was asked for. @throws Error when there were more than are kept: the numbers would be too small. */
  countByPath(route: RouteName | undefined): Readonly<Record<string, number>> {
    if (this.#hasForgotten)
      throw new Error(`Cannot count more than ${requestsKeptMax} requests: clear them in between`);
    const counts = new Map<string, number>();
    for (const request of this.requests) {
      if (route === undefined || request.route === route) counts.set(request.path, (counts.get(request.path) ?? 0) + 1);
    }
    return Object.fromEntries(counts);
  }

  clear(): void {
    this.requests.length = 0;
    this.#hasForgotten = false;
  }
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

/** The connection stays whole, so that a refusal can be sent. */
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
