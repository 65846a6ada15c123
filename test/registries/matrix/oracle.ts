/**
 * Where a credential of a registry may be seen, worked out from the API document 5.2 and decisions 7 alone. Knows nothing of
 * the product: what the product sends is held against this.
 *
 * 1. Scope: same scheme, host and port as the base URL, and below its path in whole segments, case-sensitive, after the URL
 *    was parsed. User info, and segments with an encoded slash, backslash or dot segment, are never in scope.
 * 2. Outside scope a request is anonymous, whatever the transport.
 * 3. In scope: https always; http only when every address of the host is loopback or listed. Else the request is refused.
 */
import { BlockList, isIP } from "node:net";

export type Decision = "attach" | "anonymous" | "refuse";

export interface Question {
  /** Base URL of the registry. */
  readonly base: string;
  /** Absolute URL of the hop, as resolved, user info included. */
  readonly hop: string;
  /** The address the connection goes to. */
  readonly connected: string;
  /** All addresses the host had when it was resolved for this hop. */
  readonly resolved: readonly string[];
  /** SERVICE_REGISTRY_AUTH_INSECURE_CIDRS. */
  readonly insecureCidrs: readonly string[];
}

export function decide({ base, hop, connected, resolved, insecureCidrs }: Question): Decision {
  if (!isInScope(new URL(base), new URL(hop))) return "anonymous";
  if (new URL(hop).protocol === "https:") return "attach";
  const isSafe = resolved.includes(connected) && resolved.every((address) => isExempt(address, insecureCidrs));
  return isSafe ? "attach" : "refuse";
}

function isInScope(base: URL, hop: URL): boolean {
  if (hop.username !== "" || hop.password !== "") return false;
  if (hop.protocol !== base.protocol || hop.hostname !== base.hostname || hop.port !== base.port) return false;
  const below = hop.pathname.split("/");
  if (below.some((segment) => /%2f|%5c|\\/i.test(segment) || /^(?:\.|%2e){1,2}$/i.test(segment))) return false;
  const prefix = base.pathname.replace(/\/+$/, "").split("/");
  return prefix.every((segment, at) => below[at] === segment);
}

/** Loopback, or in a listed range. An IPv4 address inside an IPv6 one (`::ffff:…`) is that IPv4 address. */
export function isExempt(address: string, cidrs: readonly string[]): boolean {
  const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  const list = new BlockList();
  list.addSubnet("127.0.0.0", 8, "ipv4");
  list.addAddress("::1", "ipv6");
  for (const cidr of cidrs) {
    const [network = "", bits] = cidr.split("/");
    list.addSubnet(network, Number(bits), isIP(network) === 6 ? "ipv6" : "ipv4");
  }
  return list.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
}
