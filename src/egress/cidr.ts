/** Address ranges as settings give them. Strict: an entry that could be read two ways stops the start, it never widens. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { Failure } from "../errors/failure.ts";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface Cidr {
  readonly network: Address;
  readonly bits: number;
}

/**
 * Entries such as `10.0.0.0/8`, `fd00::/8` or a single address; blank ones are skipped.
 * @param setting where they come from, for the error.
 * @throws Failure refused naming the entry: no address, no whole prefix length, or bits set beyond the prefix.
 */
export function parseCidrs(entries: readonly string[], setting: string): readonly Cidr[] {
  return entries
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry) => parseCidr(entry, setting));
}

export function cidrsContain(cidrs: readonly Cidr[], address: Address): boolean {
  return cidrs.some(({ network, bits }) => network.kind() === address.kind() && address.match(network, bits));
}

/** Undefined unless the text is one address in its ordinary spelling; a zone (`%eth0`) is dropped. */
export function parseAddress(text: string): Address | undefined {
  const [bare = ""] = text.split("%");
  switch (isIP(bare)) {
    case 4:
      return ipaddr.IPv4.parse(bare);
    case 6:
      // By way of a URL, which knows hexadecimal only: the library takes ::10.0.0.1 for ::ffff:10.0.0.1.
      return ipaddr.IPv6.parse(new URL(`http://[${bare}]/`).hostname.slice(1, -1));
    default:
      return undefined;
  }
}

function parseCidr(entry: string, setting: string): Cidr {
  const refuse = (reason: string): never => {
    throw new Failure("refused", `${setting} has the entry "${entry}", ${reason}`);
  };
  const [text = "", length, ...more] = entry.split("/");
  const network = parseAddress(text);
  if (network === undefined || text.includes("%") || more.length > 0) return refuse("which is no address range");
  const bitsMax = network.kind() === "ipv4" ? 32 : 128;
  const bits = length === undefined ? bitsMax : /^(?:0|[1-9][0-9]{0,2})$/.test(length) ? Number(length) : -1;
  if (bits < 0 || bits > bitsMax) return refuse(`whose prefix length is not a number from 0 to ${bitsMax}`);
  const first = firstAddress(network, bits);
  if (first.toString() !== network.toString())
    return refuse(`which has bits beyond its prefix; the range is "${first.toString()}/${bits}"`);
  return { network, bits };
}

function firstAddress(network: Address, bits: number): Address {
  const bytes = network
    .toByteArray()
    .map((byte, at) => byte & (0xff << Math.min(8, Math.max(0, (at + 1) * 8 - bits))) & 0xff);
  return ipaddr.fromByteArray(bytes);
}
