/** Both faces over the fake domain, on free ports of 127.0.0.1, with a log that remembers. */
import { type ControlPlane, openControlPlane } from "../../src/control-plane/control-plane.ts";
import { type Gateway, type GatewayOptions, openGateway } from "../../src/gateway/gateway.ts";
import { openAuthentication, parseApiKeys } from "../../src/operations/authentication.ts";
import type { Readiness } from "../../src/operations/call.ts";
import type { StreamOperation } from "../../src/operations/operation.ts";
import { parseRateLimits, RateLimits } from "../../src/operations/rate-limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Log, LogFields, LogLevel } from "../../src/ports/log.ts";
import { type FakeDomain, fakeDomain } from "./fake-processes.ts";

export interface LogLine {
  readonly level: LogLevel;
  readonly event: string;
  readonly message: string;
  readonly fields: LogFields;
}

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};

export function rememberingLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: LogLevel) =>
    (event: string, message: string, fields: LogFields = {}): void => {
      lines.push({ level, event, message, fields });
    };
  return { lines, log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } };
}

export class SwitchedReadiness implements Readiness {
  #ready = true;
  readonly #listeners = new Set<() => void>();

  check() {
    return this.#ready ? ({ ready: true } as const) : ({ ready: false, reason: "The store is failing" } as const);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  set(ready: boolean): void {
    this.#ready = ready;
    for (const listener of this.#listeners) listener();
  }
}

export interface TwoFaces {
  readonly domain: FakeDomain;
  readonly lines: LogLine[];
  readonly readiness: SwitchedReadiness;
  readonly gateway: Gateway;
  readonly controlPlane: ControlPlane;
  /** `http://127.0.0.1:port` of each. */
  readonly rest: string;
  readonly rpc: string;
  close(): Promise<void>;
}

export interface TwoFacesOptions {
  readonly keys?: string;
  readonly allowedHosts?: readonly string[];
  readonly corsOrigins?: readonly string[];
  readonly mount?: GatewayOptions["mount"];
  /** Absent: nothing is limited. */
  readonly rateLimits?: string;
  readonly trustedProxies?: readonly string[];
  readonly streams?: readonly StreamOperation[];
  readonly streamsMax?: number;
  readonly clock?: Clock;
}

function rateLimitsOf(text: string | undefined): RateLimits | undefined {
  const rules = text === undefined ? null : parseRateLimits(text);
  if (typeof rules === "string") throw new Error(rules);
  return rules === null ? undefined : new RateLimits(rules, realClock);
}

export async function openTwoFaces(options: TwoFacesOptions = {}): Promise<TwoFaces> {
  const domain = fakeDomain();
  const { log, lines } = rememberingLog();
  const readiness = new SwitchedReadiness();
  const rateLimits = rateLimitsOf(options.rateLimits);
  const shared = {
    operations: domain.operations,
    streams: options.streams,
    streamsMax: options.streamsMax,
    authentication: openAuthentication(parseApiKeys(options.keys ?? "").keys, realClock, rateLimits !== undefined),
    rateLimits,
    trustedProxies: options.trustedProxies,
    host: "127.0.0.1",
    port: 0,
    allowedHosts: options.allowedHosts ?? [],
    corsOrigins: options.corsOrigins ?? [],
    clock: options.clock ?? realClock,
    log,
    readiness,
  };
  const gateway = await openGateway({ ...shared, mount: options.mount });
  const controlPlane = await openControlPlane(shared);
  return {
    domain,
    lines,
    readiness,
    gateway,
    controlPlane,
    rest: `http://127.0.0.1:${gateway.address.port}`,
    rpc: `http://127.0.0.1:${controlPlane.address.port}`,
    async close() {
      await Promise.all([gateway.close(500), controlPlane.close(500)]);
    },
  };
}
