/**
 * Whether traces are collected, and nothing else: the OpenTelemetry packages are loaded only where an endpoint for them is set. Names
 * and meaning of the settings are OpenTelemetry's own.
 */
import { Failure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Tracing } from "../ports/tracing.ts";

export interface TracingOptions {
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Undefined: nobody collects. Rejects with Failure refused when the endpoint is no URL. */
export async function openTracing(
  options: TracingOptions,
  environment: Environment = process.env,
): Promise<Tracing | undefined> {
  const name = endpoints.find((candidate) => isSet(environment[candidate]));
  if (name === undefined || isSwitchedOff(environment)) return undefined;
  // Taken for the default endpoint by the exporter, which is somebody else's.
  if (!isHttpUrl(environment[name] ?? "")) throw new Failure("refused", `${name} is not an http or https URL`);
  const protocol = environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? environment.OTEL_EXPORTER_OTLP_PROTOCOL ?? "";
  if (protocol === "grpc") {
    options.log.warn("traces-protocol", "Traces are sent as OTLP over HTTP, in JSON; the protocol asked for is gRPC");
  }
  const { OtlpTracing } = await import("./tracing-otlp.ts");
  return new OtlpTracing(options);
}

/** Timers belong to nobody: what they start is not part of the request in which they were set. */
export function detachTimers(clock: Clock, tracing: Tracing | undefined): Clock {
  if (tracing === undefined) return clock;
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, action) => clock.after(delayMs, () => tracing.within(undefined, action)),
  };
}

const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const;

function isSwitchedOff({ OTEL_SDK_DISABLED: disabled, OTEL_TRACES_EXPORTER: exporter }: Environment): boolean {
  if (disabled?.trim().toLowerCase() === "true") return true;
  return isSet(exporter) && !exporter.split(",").some((name) => name.trim() === "otlp");
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value.trim() !== "";
}

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text.trim());
  return url?.protocol === "http:" || url?.protocol === "https:";
}
