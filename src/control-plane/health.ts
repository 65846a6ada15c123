/**
 * grpc.health.v1: the node as a whole (empty service name) and each service, all with the node's readiness. A watch first
 * tells the present state, then each change, and ends with NOT_SERVING and UNAVAILABLE when the server closes.
 */
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import type { Readiness } from "../operations/call.ts";

export interface HealthOptions {
  readonly services: readonly DescService[];
  readonly readiness: Readiness;
  /** Aborted when the control plane begins to close. */
  readonly closing: AbortSignal;
}

export function addHealth(router: ConnectRouter, { services, readiness, closing }: HealthOptions): void {
  const names = new Set(["", ...services.map((service) => service.typeName)]);
  const status = (): Status => (!closing.aborted && readiness.check().ready ? Status.SERVING : Status.NOT_SERVING);

  async function* watch(request: HealthCheckRequest, context: HandlerContext) {
    const current = (): Status => (names.has(request.service) ? status() : Status.SERVICE_UNKNOWN);
    const changes = pulses(readiness, AbortSignal.any([context.signal, closing]));
    try {
      let told: Status | undefined;
      while (!context.signal.aborted) {
        const now = current();
        if (now !== told) yield { status: now };
        told = now;
        if (closing.aborted) throw new ConnectError("The server is shutting down", Code.Unavailable);
        await changes.next();
      }
    } finally {
      changes.stop();
    }
  }

  router.service(Health, {
    check(request) {
      if (!names.has(request.service))
        throw new ConnectError(`There is no service "${request.service}"`, Code.NotFound);
      return { status: status() };
    },
    list: () => ({ statuses: Object.fromEntries([...names].map((name) => [name, { status: status() }])) }),
    watch,
  });
}

/** `next()` resolves at the next change, at once when one happened since the last, and when `signal` aborts. */
function pulses(readiness: Readiness, signal: AbortSignal): { next(): Promise<void>; stop(): void } {
  let pending = false;
  let wake: (() => void) | undefined;
  const pulse = (): void => {
    pending = true;
    wake?.();
  };
  const unsubscribe = readiness.onChange(pulse);
  signal.addEventListener("abort", pulse, { once: true });
  return {
    async next() {
      if (!pending && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
      pending = false;
    },
    stop() {
      unsubscribe();
      signal.removeEventListener("abort", pulse);
    },
  };
}
