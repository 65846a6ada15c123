/**
 * Which address a request counts for. X-Forwarded-For is believed only as far as trusted proxies wrote it: read from its end, the first
 * address that is no trusted proxy is the client. Other headers of the kind are never believed.
 */
import { type Address, isLoopback, parseAddress } from "../net/address.ts";
import { cidrsContain, parseCidrs } from "../net/cidr.ts";

export type ClientAddress = (socketAddress: string | undefined, forwardedFor: string | undefined) => string;

/** Addresses looked at from the end of the header; no chain of proxies is longer. */
const hopsMax = 16;

/** `trusted`: addresses and CIDRs. Answers `ip 192.0.2.1`; of IPv6 the /64, because one client has all of it. */
export function clientAddresses(trusted: readonly string[]): ClientAddress {
  const proxies = parseCidrs(trusted, "SERVICE_TRUSTED_PROXIES");
  return (socketAddress = "", forwardedFor) => {
    // Nearly every request: nobody is trusted, and an IPv4 address is its own name.
    if (proxies.length === 0 && !socketAddress.includes(":")) return `ip ${socketAddress}`;
    let nearest = parseAddress(socketAddress);
    const hops = forwardedFor?.split(",").slice(-hopsMax) ?? [];
    while (nearest !== undefined && hops.length > 0 && cidrsContain(proxies, nearest)) {
      const hop = parseAddress(withoutPort(hops.pop()?.trim() ?? ""));
      if (hop === undefined) break;
      nearest = hop;
    }
    return `ip ${nearest === undefined ? socketAddress : networkOf(nearest)}`;
  };
}

/** Asked from this machine itself: not by way of a proxy on it, which says so in one of its headers. */
export function isFromHere(
  socketAddress: string | undefined,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): boolean {
  if (proxyHeaders.some((name) => headers[name] !== undefined)) return false;
  const address = parseAddress(socketAddress ?? "");
  return address !== undefined && isLoopback(address);
}

const proxyHeaders = ["forwarded", "via", "x-forwarded-for", "x-real-ip"] as const;

function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(hop);
  if (bracketed?.[1] !== undefined) return bracketed[1];
  return /^[0-9.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(":")) : hop;
}

function networkOf(address: Address): string {
  if (address.kind() === "ipv4") return address.toString();
  const network = address.toByteArray().slice(0, 8);
  return `${Buffer.from(network)
    .toString("hex")
    .replace(/(....)(?=.)/g, "$1:")}::/64`;
}
