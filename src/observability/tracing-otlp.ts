/**
 * Traces by OpenTelemetry, sent over OTLP (HTTP, JSON). Which span is current follows the code by AsyncLocalStorage.
 *
 * 1. Ended spans wait in a queue with an end, and are sent in the background; what does not fit, and what the collector does not take in
 *    time, is dropped. Whether it lives makes no difference to anybody else.
 * 2. The collector's address is the operator's, like the store's folder: it is dialled by the exporter itself, not through egress.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  type Span as OtelSpan,
  SpanKind as OtelSpanKind,
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { getNumberFromEnv, getStringFromEnv, setGlobalErrorHandler, TraceState } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { spanAttributeCharactersMax, spansQueuedMax, tracesComplaintMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Span, SpanAttributes, SpanKind, TracePlace, Tracing } from "../ports/tracing.ts";
import type { TracingOptions } from "./tracing.ts";

const kinds = {
  server: OtelSpanKind.SERVER,
  client: OtelSpanKind.CLIENT,
  internal: OtelSpanKind.INTERNAL,
} as const satisfies Record<SpanKind, OtelSpanKind>;

class Place implements TracePlace {
  readonly isTracePlace = true;
  readonly context: Context;

  constructor(context: Context) {
    this.context = context;
  }
}

export class OtlpTracing implements Tracing {
  readonly #storage = new AsyncLocalStorage<TracePlace | undefined>();
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #clock: Clock;

  constructor({ version, clock, log }: TracingOptions) {
    this.#clock = clock;
    const queued = Math.min(spansQueuedMax, numberFrom("OTEL_BSP_MAX_QUEUE_SIZE", 2_048));
    this.#provider = new TracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ "service.name": "troupe", "service.version": version }))
        .merge(detectResources({ detectors: [envDetector] })),
      sampler: samplerFrom(log),
      spanLimits: { attributeValueLengthLimit: spanAttributeCharactersMax },
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: new OTLPTraceExporter(),
          maxQueueSize: queued,
          maxExportBatchSize: Math.min(queued, numberFrom("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)),
          scheduledDelayMillis: numberFrom("OTEL_BSP_SCHEDULE_DELAY", 5_000),
          exportTimeoutMillis: numberFrom("OTEL_BSP_EXPORT_TIMEOUT", 30_000),
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer("troupe", version);
    setGlobalErrorHandler(complainer(clock, log));
  }

  current(): TracePlace | undefined {
    return this.#storage.getStore();
  }

  start(name: string, kind: SpanKind, attributes: SpanAttributes, parent: TracePlace | undefined): Span {
    const context = contextOf(parent);
    return new OtlpSpan(
      this.#tracer.startSpan(name, { kind: kinds[kind], attributes: { ...attributes } }, context),
      context,
    );
  }

  within<Result>(place: TracePlace | undefined, work: () => Result): Result {
    return this.#storage.run(place, work);
  }

  arrived(traceparent: string | undefined, tracestate: string | undefined): TracePlace | undefined {
    const match = traceparent === undefined ? null : wellFormed.exec(traceparent);
    if (match === null) return undefined;
    const [, version, traceId = "", spanId = "", flags = "", more] = match;
    if (version === "00" && more !== undefined) return undefined;
    return new Place(
      trace.setSpanContext(ROOT_CONTEXT, {
        traceId,
        spanId,
        traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
        isRemote: true,
        ...(tracestate !== undefined &&
          tracestate.length <= traceStateCharactersMax && { traceState: new TraceState(tracestate) }),
      }),
    );
  }

  traceparent(place: TracePlace): string {
    const context = trace.getSpanContext(contextOf(place));
    if (context === undefined) throw new Error("A place in a trace has no span");
    const isSampled = (context.traceFlags & TraceFlags.SAMPLED) !== 0;
    return `00-${context.traceId}-${context.spanId}-${isSampled ? "01" : "00"}`;
  }

  async close(limitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(Math.max(0, limitMs), resolve);
    await Promise.race([this.#provider.shutdown().catch(() => undefined), promise]);
    cancel();
  }
}

class OtlpSpan implements Span {
  readonly place: TracePlace;
  readonly #span: OtelSpan;

  constructor(span: OtelSpan, parent: Context) {
    this.#span = span;
    this.place = new Place(trace.setSpan(parent, span));
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes({ ...attributes });
  }

  end(failure?: string): void {
    if (!this.#span.isRecording()) return;
    if (failure !== undefined) {
      this.#span.setAttribute("error.type", failure);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

function contextOf(place: TracePlace | undefined): Context {
  return place instanceof Place ? place.context : ROOT_CONTEXT;
}

/** W3C Trace Context, level 1; later versions may add fields. */
const wellFormed =
  /^((?!ff)[0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{0,256})?$/;
/** What everybody must pass on; longer ones may be dropped. */
const traceStateCharactersMax = 512;

function samplerFrom(log: Log): Sampler {
  const name = getStringFromEnv("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const isParentBased = name.startsWith("parentbased_");
  const root = rootSampler(isParentBased ? name.slice("parentbased_".length) : name);
  if (root === undefined) {
    log.warn(
      "traces-sampler",
      "OTEL_TRACES_SAMPLER names no sampler known here; every trace without a parent is sampled",
    );
  }
  const sampler = root ?? new AlwaysOnSampler();
  return isParentBased || root === undefined ? new ParentBasedSampler({ root: sampler }) : sampler;
}

function rootSampler(name: string): Sampler | undefined {
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(Math.min(1, Math.max(0, getNumberFromEnv("OTEL_TRACES_SAMPLER_ARG") ?? 1)));
    default:
      return undefined;
  }
}

function numberFrom(name: string, otherwise: number): number {
  const value = getNumberFromEnv(name);
  return value !== undefined && value > 0 ? value : otherwise;
}

/** A collector that is away fails every few seconds: one line a minute says so. Never its address or what it answered. */
function complainer(clock: Clock, log: Log): (error: unknown) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  return (error) => {
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + tracesComplaintMs;
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
    log.warn("traces-not-sent", "The collector does not take traces; they are dropped", {
      reason: String(code ?? name),
    });
  };
}
