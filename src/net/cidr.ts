/** Address ranges as settings give them. Strict: an entry that could be read two ways stops the start, it never widens. */
import { isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { Failure } from "../errors/failure.ts";
import { type Address, parseAddress } from "./address.ts";

export interface Cidr {
  readonly network: Address;
  readonly bits: number;
}

/** Bits of an IPv6 address before the IPv4 one that is mapped into it. */
const mappedBits = 96;

/**
 * Entries such as `10.0.0.0/8`, `fd00::/8` or a single address; blank ones are skipped.
 * @param setting where they come from, for the error.
 * @throws Failure refused naming setting and entry.
 */
export function parseCidrs(entries: readonly string[], setting: string): readonly Cidr[] {
  return entries
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry) => {
      const read = readCidr(entry);
      if (typeof read === "string") throw new Failure("refused", `${setting} ${read}`);
      return read;
    });
}

/**
 * The range, or the end of a sentence about who gave it: no address, no whole prefix length, or bits set beyond the prefix. A range of
 * mapped addresses is the IPv4 range inside, with 96 bits fewer.
 */
export function readCidr(entry: string): Cidr | string {
  const refusal = (reason: string): string => `has the entry "${entry}", ${reason}`;
  const [text = "", length, ...more] = entry.split("/");
  const network = parseAddress(text);
  if (network === undefined || text.includes("%") || more.length > 0) return refusal("which is no address range");
  const bitsMax = network.toByteArray().length * 8;
  const before = isIPv6(text) && network.kind() === "ipv4" ? mappedBits : 0;
  const bits = length === undefined ? bitsMax : wholeNumber(length) - before;
  if (!(bits >= 0 && bits <= bitsMax))
    return refusal(`whose prefix length is not a number from ${before} to ${before + bitsMax}`);
  const first = firstAddress(network, bits);
  if (first.toString() !== network.toString())
    return refusal(`which has bits beyond its prefix; the range is "${first.toString()}/${bits}"`);
  return { network, bits };
}

export function cidrsContain(cidrs: readonly Cidr[], address: Address): boolean {
  return cidrs.some(({ network, bits }) => network.kind() === address.kind() && address.match(network, bits));
}

function wholeNumber(text: string): number {
  return /^(?:0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : Number.NaN;
}

function firstAddress(network: Address, bits: number): Address {
  const bytes = network
    .toByteArray()
    .map((byte, at) => byte & (0xff << Math.min(8, Math.max(0, (at + 1) * 8 - bits))) & 0xff);
  return ipaddr.fromByteArray(bytes);
}
