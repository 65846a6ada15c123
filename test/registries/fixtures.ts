/** A reader over the real outbound client, with names, log and time of our choice, and registries scripted as request listeners. */
import type { RequestListener } from "node:http";
import { onTestFinished } from "vitest";
import { openEgress } from "../../src/egress/egress.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { CredentialedFetcher } from "../../src/ports/fetcher.ts";
import type { Log } from "../../src/ports/log.ts";
import type {
  CredentialSource,
  RegistryAccess,
  RegistryCredential,
  RegistryReader,
} from "../../src/ports/registry-reader.ts";
import { openRegistryReader } from "../../src/registries/registry-reader.ts";
import { quietLog, realClock } from "../egress/fixtures.ts";

export interface LoggedEvent {
  readonly level: string;
  readonly event: string;
  readonly message: string;
}

export interface Setting {
  readonly insecureCidrs?: readonly string[];
  /** For the outbound client; loopback is allowed in any case. */
  readonly allowedCidrs?: readonly string[];
  /** Name to addresses; absent names do not exist. A function is asked on every look-up. */
  readonly names?: Readonly<Record<string, readonly string[] | (() => readonly string[])>>;
  /** How many times faster than real time the deadlines pass. */
  readonly speed?: number;
  /** Says that every connection goes to this address, wherever it really goes. */
  readonly claimedAddress?: string;
}

export interface Reading {
  readonly reader: RegistryReader;
  readonly logged: LoggedEvent[];
}

export function openReading(setting: Setting = {}): Reading {
  const { insecureCidrs = [], allowedCidrs = [], names = {}, speed = 1, claimedAddress } = setting;
  const clock = fastClock(speed);
  const egress = openEgress({
    allowedCidrs,
    blockedCidrs: [],
    clock,
    log: quietLog,
    lookup: async (name) => {
      const addresses = names[name];
      if (addresses === undefined) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
      return typeof addresses === "function" ? addresses() : addresses;
    },
  });
  onTestFinished(() => egress.close());
  const claimed = { address: claimedAddress ?? "", addresses: [claimedAddress ?? ""] };
  const claiming: CredentialedFetcher = {
    fetchAs: (request, credentials) =>
      egress.fetchAs(request, (hop) => credentials(claimedAddress === undefined ? hop : { url: hop.url, ...claimed })),
    approve: async (url) => (claimedAddress === undefined ? egress.approve(url) : [claimedAddress]),
  };
  const logged: LoggedEvent[] = [];
  return { reader: openRegistryReader({ egress: claiming, insecureCidrs, clock, log: keepingLog(logged) }), logged };
}

export function fastClock(speed: number): Clock {
  return {
    now: realClock.now,
    monotonic: () => realClock.monotonic() * speed,
    after: (delayMs, action) => realClock.after(delayMs / speed, action),
  };
}

function keepingLog(logged: LoggedEvent[]): Log {
  const keep = (level: string) => (event: string, message: string) => void logged.push({ level, event, message });
  return { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}

export const key = "KEY-canary-1a2b3c";
export const apiKey: RegistryCredential = { type: "apiKey", headerName: "X-Registry-Key", key };
export const token = (accessToken: string): RegistryCredential => ({ type: "oauth2", accessToken });

/** Credentials that never change; `renewals` counts how often newer ones were asked for. */
export function credentials(
  current: RegistryCredential | null,
  newer: RegistryCredential | null = null,
): CredentialSource & { renewals: RegistryCredential[] } {
  const renewals: RegistryCredential[] = [];
  return {
    renewals,
    current: async () => current,
    async renewed(refused) {
      renewals.push(refused);
      return newer;
    },
  };
}

export function accessTo(
  baseUrl: string,
  source: CredentialSource | RegistryCredential | null = null,
  signal: AbortSignal = new AbortController().signal,
): RegistryAccess {
  const given = source !== null && "current" in source ? source : credentials(source);
  return { registryId: "r", baseUrl, credentials: given, signal };
}

/** Answers by path; a path that is not there is a 404. */
export function byPath(paths: Readonly<Record<string, RequestListener>>): RequestListener {
  return (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://any");
    const listener = paths[pathname];
    if (listener === undefined) response.writeHead(404).end();
    else listener(request, response);
  };
}

export function sends(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): RequestListener {
  const isBytes = typeof body === "string" || body instanceof Uint8Array;
  return (_request, response) => {
    response.writeHead(status, headers).end(isBytes ? body : JSON.stringify(body));
  };
}

export function redirects(location: string, status = 302): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { location }).end();
  };
}

export const emptyPage = { definitions: [], nextCursor: null };
export const bytes = (value: unknown): Uint8Array =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
export const noSignal = (): AbortSignal => new AbortController().signal;
