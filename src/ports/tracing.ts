/**
 * Traces: which work was done for which. A span is current in the code that runs within it, and in whatever that code awaits; work that
 * is handed over by other means (queues, child processes) takes its place in the trace along. Absent where nobody collects traces.
 */

/** A place in a trace, for spans to hang from. Only the tracing itself looks inside. */
export interface TracePlace {
  readonly isTracePlace: true;
}

export type SpanKind = "server" | "client" | "internal";

/** Never a secret, a query, a header or a body. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  readonly place: TracePlace;
  set(attributes: SpanAttributes): void;
  /** `failure`: the kind of what went wrong. The first call counts. */
  end(failure?: string): void;
}

export interface Tracing {
  /** Where the calling code is; undefined outside of every span. */
  current(): TracePlace | undefined;
  /** A root span when `parent` is undefined. */
  start(name: string, kind: SpanKind, attributes: SpanAttributes, parent: TracePlace | undefined): Span;
  /** Runs `work` at `place`; at none for undefined. */
  within<Result>(place: TracePlace | undefined, work: () => Result): Result;
  /** Of a caller's headers; undefined when they are not well-formed. */
  arrived(traceparent: string | undefined, tracestate: string | undefined): TracePlace | undefined;
  /** The value of the header `traceparent` that hands `place` to another system. */
  traceparent(place: TracePlace): string;
  /** Sends what has ended, waiting at most this long. Never rejects. */
  close(limitMs: number): Promise<void>;
}
