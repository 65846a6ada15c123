/** An OTLP receiver on 127.0.0.1 (HTTP, JSON), and the spans it was sent. */
import { openRecordingServer } from "../adapters/recording-server.ts";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** 1 internal, 2 server, 3 client */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface WrittenSpan extends Omit<ReceivedSpan, "attributes" | "isError"> {
  readonly attributes?: readonly Attribute[];
  readonly status?: { readonly code?: number };
}

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WrittenSpan[] }[];
  }[];
}

export interface Collector {
  readonly origin: string;
  /** All that was sent, byte for byte. */
  text(): string;
  headers(): readonly Readonly<Record<string, string>>[];
  spans(): readonly ReceivedSpan[];
  resource(): Readonly<Record<string, unknown>>;
  /** Resolves once a span is there that `wanted` is true of; rejects after a while. */
  waitFor(wanted: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

const waitMs = 15_000;

export async function openCollector(): Promise<Collector> {
  const server = await openRecordingServer();
  server.respond = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end("{}");
  const bodies = (): Body[] => server.requests.map(({ body }) => JSON.parse(body.toString()) as Body);
  const collector: Collector = {
    origin: server.origin,
    text: () => server.requests.map(({ body }) => body.toString()).join("\n"),
    headers: () => server.requests.map(({ headers }) => headers),
    spans: () =>
      bodies()
        .flatMap(({ resourceSpans }) => resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans)
        .map(({ attributes = [], status, parentSpanId, ...span }) => ({
          ...span,
          parentSpanId: parentSpanId === "" ? undefined : parentSpanId,
          attributes: toObject(attributes),
          isError: status?.code === 2,
        })),
    resource: () => toObject(bodies()[0]?.resourceSpans[0]?.resource.attributes ?? []),
    async waitFor(wanted) {
      const end = Date.now() + waitMs;
      for (;;) {
        const found = collector.spans().find(wanted);
        if (found !== undefined) return found;
        if (Date.now() > end) {
          throw new Error(`No such span came; came: ${collector.spans().map(({ name }) => name)}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
    close: () => server.close(),
  };
  return collector;
}

function toObject(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
