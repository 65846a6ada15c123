/**
 * Where the server may connect to. Pure: an address and the settings in, a verdict out; whoever dials asks here first.
 *
 * 1. SERVICE_EGRESS_BLOCKED_CIDRS refuses, whatever else is set.
 * 2. SERVICE_EGRESS_ALLOWED_CIDRS allows.
 * 3. Loopback is allowed unless the allowed list says `none`.
 * 4. Public unicast is allowed, everything else (private, link-local, shared, multicast, reserved, metadata) is refused.
 *
 * A mapped IPv4 address is the IPv4 address. An IPv6 address by which a gateway reaches an IPv4 one (NAT64, 6to4) is judged by what it
 * carries as well, in all four steps.
 */
import ipaddr from "ipaddr.js";
import { type Address, isLoopback, parseAddress } from "../net/address.ts";
import { type Cidr, cidrsContain, parseCidrs } from "../net/cidr.ts";

export interface AddressRules {
  readonly allowed: readonly Cidr[];
  readonly blocked: readonly Cidr[];
  readonly loopback: boolean;
}

export type Verdict =
  | { readonly allowed: true; readonly loopback: boolean }
  /** Completes "it is …". */
  | { readonly allowed: false; readonly reason: string };

/** @throws Failure refused naming the setting and the entry. */
export function addressRules(settings: {
  readonly allowedCidrs: readonly string[];
  readonly blockedCidrs: readonly string[];
}): AddressRules {
  const isNone = (entry: string): boolean => entry.trim().toLowerCase() === "none";
  return {
    allowed: parseCidrs(
      settings.allowedCidrs.filter((entry) => !isNone(entry)),
      "SERVICE_EGRESS_ALLOWED_CIDRS",
    ),
    blocked: parseCidrs(settings.blockedCidrs, "SERVICE_EGRESS_BLOCKED_CIDRS"),
    loopback: !settings.allowedCidrs.some(isNone),
  };
}

export function judgeAddress(text: string, rules: AddressRules): Verdict {
  const address = parseAddress(text);
  if (address === undefined) return { allowed: false, reason: "no address" };
  const carried = carriedBy(address);
  const forms = carried === undefined ? [address] : [address, carried];
  const loopback = isLoopback(address);
  if (forms.some((form) => cidrsContain(rules.blocked, form)))
    return { allowed: false, reason: "listed in SERVICE_EGRESS_BLOCKED_CIDRS" };
  if (forms.some((form) => cidrsContain(rules.allowed, form))) return { allowed: true, loopback };
  if (loopback && rules.loopback) return { allowed: true, loopback };
  const range = rangeOf(carried ?? address);
  if (range === "unicast") return { allowed: true, loopback: false };
  return {
    allowed: false,
    reason: `${rangeNames[range] ?? "a reserved address"}, which SERVICE_EGRESS_ALLOWED_CIDRS does not list`,
  };
}

const rangeNames: Readonly<Record<string, string>> = {
  private: "a private address",
  uniqueLocal: "a private address",
  deprecatedSiteLocal: "a private address",
  linkLocal: "a link-local address",
  loopback: "a loopback address",
  carrierGradeNat: "a shared (carrier-grade NAT) address",
  multicast: "a multicast address",
  broadcast: "a broadcast address",
  unspecified: "an unspecified address",
  metadata: "a cloud metadata address",
};

/** Metadata services on addresses that look public. The others are link-local, private or shared already. */
const metadata = parseCidrs(["168.63.129.16"], "metadata");
/** IANA hands out public IPv6 addresses from here only; the library calls the rest unicast as well. */
const globalUnicast = parseCidrs(["2000::/3"], "global unicast");

function rangeOf(address: Address): string {
  if (cidrsContain(metadata, address)) return "metadata";
  const range: string = address.range();
  return range === "unicast" && address.kind() === "ipv6" && !cidrsContain(globalUnicast, address) ? "reserved" : range;
}

const translated = parseCidrs(["64:ff9b::/96"], "translated");
const sixToFour = parseCidrs(["2002::/16"], "6to4");

/** The IPv4 address that a gateway reaches for an IPv6 one. */
function carriedBy(address: Address): Address | undefined {
  const bytes = address.toByteArray();
  if (cidrsContain(translated, address)) return new ipaddr.IPv4(bytes.slice(12));
  if (cidrsContain(sixToFour, address)) return new ipaddr.IPv4(bytes.slice(2, 6));
  return undefined;
}
