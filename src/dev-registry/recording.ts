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

  /** Counted from the first byte on. The body, undefined when it is larger than any has to be, is added as soon as it is there. */
  async add(request: IncomingMessage, seen: Pick<RecordedRequest, "route" | "path">, query: URLSearchParams) {
    const { method = "", headers } = request;
    const recorded = { ...seen, method, query: grouped(query), headers, body: "" };
    this.requests.push(recorded);
    if (this.requests.length > requestsKeptMax) this.requests.shift();
    const body = await readBody(request);
    recorded.body = body ?? "";
    return body;
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
