/**
 * Who may call, decided before a message is read: Host and Origin as on the REST face, then the bearer key or, under mutual
 * TLS, the name in the client's certificate, then the rate limit of the operation. Health and reflection ask for no key.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { Failure } from "../errors/failure.ts";
import { headersMax } from "../limits.ts";
import type { Authentication, OriginRules } from "../operations/authentication.ts";
import { asFailure } from "../operations/call.ts";
import type { ClientAddress } from "../operations/client-address.ts";
import type { Caller } from "../operations/operation.ts";
import { quotaHeaders, type RouteLimit } from "../operations/rate-limits.ts";
import { logRefusal } from "../operations/refusal-log.ts";
import type { UntakenAnswers } from "../operations/untaken-answers.ts";
import type { Log } from "../ports/log.ts";
import type { FaceMetrics } from "../ports/metrics.ts";
import type { Tracing } from "../ports/tracing.ts";
import type { Arrival } from "./arrival.ts";
import { toConnectError } from "./connect-error.ts";
import { endRpcSpan, rpcSpan } from "./rpc-spans.ts";

/** What the socket side knows of a request, handed through Connect to the gate and the rpcs. */
export const arrivalKey = createContextKey<Arrival | undefined>(undefined, { description: "arrival" });

export interface AdmissionOptions {
  readonly authentication: Authentication;
  readonly origins: OriginRules;
  readonly clientAddress: ClientAddress;
  /** Of an rpc, as `troupe.v1.ProcessService/GetProcess`; absent: nothing is limited. */
  readonly limitOf: ((rpc: string) => RouteLimit) | undefined;
  readonly untakenAnswers: UntakenAnswers;
  readonly log: Log;
  readonly metrics?: FaceMetrics | undefined;
  readonly tracing?: Tracing | undefined;
  isClosing(): boolean;
}

/** Takes a header of the answer. */
export type TellHeader = (name: string, value: string) => void;

export function admissionGate(options: AdmissionOptions): (context: HandlerContext) => void {
  return (context) => {
    try {
      admitRpc(options, context.method, arrivedOn(context), (name, value) => context.responseHeader.set(name, value));
    } catch (error) {
      throw toConnectError(error as Failure);
    }
  };
}

/** Throws Failure, which then is counted and written down. */
export function admitRpc(options: AdmissionOptions, method: DescMethod, arrival: Arrival, tell: TellHeader): void {
  tell("x-request-id", arrival.requestId);
  try {
    arrival.caller = admit(options, method, arrival, tell);
  } catch (error) {
    const { log, metrics, tracing } = options;
    const rpc = rpcName(method);
    const failure = asFailure(error, "admission", arrival.requestId, log);
    const { requestId, countedAs } = arrival;
    log.debug("rpc-refused", failure.message, { requestId, rpc, code: failure.kind });
    const certificateName = failure.kind === "unauthenticated" ? arrival.certificateName : undefined;
    logRefusal(log, { failure, requestId, caller: countedAs, request: rpc, certificateName });
    metrics?.rpc(rpc)(failure.kind, 0);
    endRpcSpan(rpcSpan(tracing, method, arrival), failure.kind);
    if (failure.details.exhaustion !== undefined) tellQuota(tell, failure.details.exhaustion);
    throw failure;
  }
}

export function arrivedOn(context: HandlerContext): Arrival {
  const arrival = context.values.get(arrivalKey);
  if (arrival === undefined) throw new Error("A call reached the control plane without passing its server");
  return arrival;
}

export function rpcName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

function admit(options: AdmissionOptions, method: DescMethod, arrival: Arrival, tell: TellHeader): Caller | undefined {
  const address = options.clientAddress(arrival.socketAddress, arrival.header("x-forwarded-for"));
  arrival.countedAs = address;
  const service = method.parent.typeName;
  const isProbe = service === "grpc.health.v1.Health";
  const isOpen = isProbe || service.startsWith("grpc.reflection.");
  const limit = isProbe ? undefined : options.limitOf?.(rpcName(method));
  try {
    if (arrival.headersCount > headersMax) throw new Failure("too_large", `More than ${headersMax} request headers`);
    options.origins.check(isProbe ? undefined : arrival.host, arrival.header("origin"));
  } catch (error) {
    limit?.admit(address);
    throw error;
  }
  if (options.isClosing() && !isOpen) throw new Failure("unavailable", "The server is shutting down");
  const caller = isOpen ? undefined : callerOf(options, arrival, address);
  if (caller !== undefined && caller.isAnonymous !== true) arrival.countedAs = caller.name;
  const { countedAs } = arrival;
  const window = limit?.admit(countedAs);
  if (window !== undefined) tellQuota(tell, window);
  if (!isProbe) options.untakenAnswers.admit(countedAs);
  return caller;
}

function callerOf({ authentication }: AdmissionOptions, arrival: Arrival, address: string): Caller {
  const { certificateName } = arrival;
  if (certificateName !== undefined) return authentication.authenticateName(certificateName);
  return authentication.authenticate(arrival.header("authorization"), address);
}

/** The same headers as on the REST face. */
function tellQuota(tell: TellHeader, quota: Parameters<typeof quotaHeaders>[0]): void {
  for (const [name, value] of Object.entries(quotaHeaders(quota))) tell(name, value);
}
