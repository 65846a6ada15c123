/**
 * Who is asking, and may a request from there be looked at: bearer keys, and the Host and Origin rules that keep web pages
 * of strangers out (DNS rebinding, cross-site posts). The same for both faces.
 *
 * An address that failed too often is not listened to for a while, except with keys that came from there before: one client with a stale
 * key does not lock out the others behind the same address, and nobody can go on guessing.
 *
 * Keys are held as SHA-256 digests and compared in constant time, all of them on every attempt, so that neither length nor
 * position shows in the timing. No message ever repeats a key.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { Failure } from "../errors/failure.ts";
import { addressesPerKeyMax, failedAuthenticationAddressesMax, failedAuthenticationsPerMinute } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import { FixedWindows } from "./fixed-windows.ts";
import type { Caller, Role } from "./operation.ts";
import { exceeded } from "./rate-limits.ts";

export interface ApiKey {
  readonly caller: Caller;
  readonly digest: Uint8Array;
}

export interface ParsedApiKeys {
  readonly keys: readonly ApiKey[];
  /** One sentence per entry that cannot be used; entries are counted from 1. */
  readonly problems: readonly string[];
}

export interface Authentication {
  /** Throws Failure unauthenticated or rate_limit_exceeded. `header` is the whole Authorization value. */
  authenticate(header: string | undefined, address: string): Caller;
  /** For mutual TLS: the caller whose key has the certificate's common name. Throws Failure unauthenticated. */
  authenticateName(commonName: string): Caller;
}

/** Entries `name:role:key` or bare operator keys, separated by commas or line breaks; blank entries do not count. */
export function parseApiKeys(text: string): ParsedApiKeys {
  const keys: ApiKey[] = [];
  const problems: string[] = [];
  const names = new Set<string>();
  const digests = new Set<string>();
  const entries = text.split(/[,\r\n]/).map((entry) => entry.trim());
  let number = 0;
  for (const entry of entries) {
    if (entry === "") continue;
    number += 1;
    const read = parseEntry(entry, number);
    if (typeof read === "string") {
      problems.push(read);
      continue;
    }
    const digest = digestOf(read.key);
    const fingerprint = Buffer.from(digest).toString("hex");
    if (names.has(read.caller.name)) problems.push(`Entry ${number}: the name "${read.caller.name}" is used twice`);
    else if (digests.has(fingerprint)) problems.push(`Entry ${number}: its key is used twice`);
    else keys.push({ caller: read.caller, digest });
    names.add(read.caller.name);
    digests.add(fingerprint);
  }
  return { keys, problems };
}

interface KnownHeader {
  readonly caller: Caller;
  readonly addresses: Set<string>;
}

/** Without keys every caller is "anonymous" with role operator. `limited`: whether failures are counted. */
export function openAuthentication(keys: readonly ApiKey[], clock: Clock, limited = true): Authentication {
  if (keys.length === 0) return { authenticate: () => anonymous, authenticateName: () => anonymous };
  const known = new Map<string, KnownHeader>();
  const rule = { limit: failedAuthenticationsPerMinute, windowMs: 60_000 };
  const failures = new FixedWindows(rule, clock, failedAuthenticationAddressesMax);
  return {
    authenticate(header, address) {
      // Hashing costs as much as the rest of a small request. Only whole headers that were right once are remembered, so
      // nothing can be learned from them by trying: what differs in any way takes the slow path.
      const remembered = header === undefined ? undefined : known.get(header);
      if (remembered?.addresses.has(address)) return remembered.caller;
      const failed = limited && failures.size > 0 ? failures.open(address) : undefined;
      if (failed?.remaining === 0) throw exceeded(failed, clock, "Too many failed attempts to authenticate");
      try {
        const caller = remembered?.caller ?? callerOf(keys, header);
        remember(known, header, caller, address);
        return caller;
      } catch (error) {
        if (limited) failures.count(address);
        throw error;
      }
    },
    authenticateName(commonName) {
      const found = keys.find((key) => key.caller.name === commonName);
      if (found === undefined) throw new Failure("unauthenticated", "The client certificate's name is not known");
      return found.caller;
    },
  };
}

export interface OriginRules {
  /** Throws Failure forbidden. `host` and `origin` are the header values; a request without Host (not HTTP/1.1) passes. */
  check(host: string | undefined, origin: string | undefined): void;
  /** The origin is listed: browsers may read our answers to it. */
  allowsCrossOrigin(origin: string): boolean;
}

export interface OriginSettings {
  /** Name or address the face is bound to. */
  readonly boundHost: string;
  readonly allowedHosts: readonly string[];
  /** Exact origins, such as `https://console.example.com`. */
  readonly corsOrigins: readonly string[];
}

export function originRules(settings: OriginSettings): OriginRules {
  const hosts = new Set([settings.boundHost, ...settings.allowedHosts].map((host) => hostName(host.toLowerCase())));
  const origins = new Set(settings.corsOrigins);
  let lastAllowed: string | undefined; // nearly every request has the Host of the one before
  return {
    check(host, origin) {
      if (host !== undefined && host !== lastAllowed) {
        const name = hostName(host.toLowerCase());
        if (!isLoopbackName(name) && !hosts.has(name)) {
          throw new Failure("forbidden", "This server does not answer to that Host; see SERVICE_ALLOWED_HOSTS");
        }
        lastAllowed = host;
      }
      if (origin !== undefined && !origins.has(origin) && !isSameOrigin(origin, host)) {
        throw new Failure("forbidden", "The Origin of this request is not allowed; see SERVICE_CORS_ORIGINS");
      }
    },
    allowsCrossOrigin: (origin) => origins.has(origin),
  };
}

/** Ways to write "Bearer" and spaces before the few keys there are. */
const headersRememberedMax = 1_000;

const anonymous: Caller = { name: "anonymous", role: "operator", isAnonymous: true };

function parseEntry(entry: string, number: number): { caller: Caller; key: string } | string {
  if (!entry.includes(":")) {
    return isKeyText(entry)
      ? { caller: { name: `key-${number}`, role: "operator" }, key: entry }
      : `Entry ${number}: a key is printable ASCII without spaces`;
  }
  const [name = "", role = "", ...rest] = entry.split(":");
  const key = rest.join(":");
  if (rest.length === 0) return `Entry ${number}: expected name:role:key, or a key without colons`;
  if (!/^[A-Za-z0-9._@-]{1,64}$/.test(name)) {
    return `Entry ${number}: a name is 1 to 64 letters, digits or any of . _ @ -`;
  }
  if (!isRole(role)) return `Entry ${number}: the role of "${name}" must be "agent" or "operator"`;
  if (!isKeyText(key)) return `Entry ${number}: the key of "${name}" must be printable ASCII without spaces`;
  return { caller: { name, role }, key };
}

function isRole(text: string): text is Role {
  return text === "agent" || text === "operator";
}

function isKeyText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function digestOf(key: string): Uint8Array {
  return hash("sha256", key, "buffer");
}

function bearerToken(header: string | undefined): string {
  if (header === undefined) throw new Failure("unauthenticated", "A bearer key is required");
  const match = /^bearer +([\x21-\x7e]+) *$/i.exec(header);
  if (match?.[1] === undefined) {
    throw new Failure("unauthenticated", 'The Authorization header must be the word "Bearer" and one key');
  }
  return match[1];
}

function remember(known: Map<string, KnownHeader>, header: string | undefined, caller: Caller, address: string): void {
  if (header === undefined) return;
  let entry = known.get(header);
  if (entry === undefined) {
    if (known.size >= headersRememberedMax) return;
    entry = { caller, addresses: new Set() };
    known.set(header, entry);
  }
  if (entry.addresses.size >= addressesPerKeyMax) entry.addresses.clear();
  entry.addresses.add(address);
}

/** Throws Failure unauthenticated. */
function callerOf(keys: readonly ApiKey[], header: string | undefined): Caller {
  const digest = digestOf(bearerToken(header));
  let found: Caller | undefined;
  for (const key of keys) {
    if (timingSafeEqual(key.digest, digest)) found = key.caller;
  }
  if (found === undefined) throw new Failure("unauthenticated", "The bearer key is not known");
  return found;
}

/** `[::1]:8080` → `::1`, `Example.com:80` → `example.com`; anything else odd stays odd and matches nothing. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host);
  if (bracketed?.[1] !== undefined) return bracketed[1];
  const colon = host.indexOf(":");
  if (colon === -1 || host.indexOf(":", colon + 1) !== -1) return host;
  return /^\d*$/.test(host.slice(colon + 1)) ? host.slice(0, colon) : host;
}

function isLoopbackName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || name === "::1" || isLoopbackAddress(name);
}

function isLoopbackAddress(name: string): boolean {
  const octets = /^127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(name);
  return octets?.slice(1).every((octet) => Number(octet) <= 255) ?? false;
}

/** Scheme left out on purpose: behind a TLS proxy the page says https while this server speaks http. */
function isSameOrigin(origin: string, host: string | undefined): boolean {
  const match = /^https?:\/\/([^/]+)$/i.exec(origin);
  return host !== undefined && match?.[1]?.toLowerCase() === host.toLowerCase();
}
