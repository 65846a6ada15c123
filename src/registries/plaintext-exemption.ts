/**
 * The addresses to which credentials may travel over plain http: loopback, and those the operator listed. Addresses are
 * compared as bytes; an IPv4 address inside an IPv6 one is the IPv4 address when it is mapped, and a stranger otherwise.
 */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { Failure } from "../errors/failure.ts";

export interface PlaintextExemption {
  covers(address: string): boolean;
}

interface Range {
  readonly network: readonly number[];
  readonly bits: number;
}

const setting = "SERVICE_REGISTRY_AUTH_INSECURE_CIDRS";

/**
 * @param cidrs entries such as `10.0.0.0/8` or a single address; blank ones are skipped.
 * @throws Failure refused naming an entry that could be read two ways: better no start than a wider exemption than meant.
 */
export function plaintextExemption(cidrs: readonly string[]): PlaintextExemption {
  const ranges = cidrs
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map(parseRange);
  return {
    covers(text) {
      const address = bytesOf(text.split("%")[0] ?? "");
      return address !== undefined && (isLoopback(address) || ranges.some((range) => contains(range, address)));
    },
  };
}

function parseRange(entry: string): Range {
  const refuse = (reason: string): never => {
    throw new Failure("refused", `${setting} has the entry "${entry}", ${reason}`);
  };
  const [text = "", length, ...more] = entry.split("/");
  const network = bytesOf(text);
  if (network === undefined || more.length > 0) return refuse("which is no address range");
  // A mapped network is read as the IPv4 one inside, so its first 96 bits are spoken for.
  const bitsUsed = isIP(text) === 6 && network.length === 4 ? 96 : 0;
  const bitsMax = network.length * 8;
  const told = length === undefined ? bitsMax + bitsUsed : /^(?:0|[1-9][0-9]{0,2})$/.test(length) ? Number(length) : -1;
  const bits = told - bitsUsed;
  if (bits < 0 || bits > bitsMax)
    return refuse(`whose prefix length is not a number from ${bitsUsed} to ${bitsMax + bitsUsed}`);
  if (network.some((byte, at) => (byte & ~mask(bits, at)) !== 0)) return refuse("which has bits beyond its prefix");
  return { network, bits };
}

/** Undefined unless the text is one address in its ordinary spelling. */
function bytesOf(text: string): readonly number[] | undefined {
  if (text.includes("%")) return undefined;
  switch (isIP(text)) {
    case 4:
      return text.split(".").map(Number);
    case 6: {
      // By way of a URL, which knows hexadecimal only: the library reads ::10.0.0.1 as a mapped address.
      const bytes = ipaddr.IPv6.parse(new URL(`http://[${text}]/`).hostname.slice(1, -1)).toByteArray();
      const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
      return isMapped ? bytes.slice(12) : bytes;
    }
    default:
      return undefined;
  }
}

function isLoopback(address: readonly number[]): boolean {
  if (address.length === 4) return address[0] === 127;
  return address.every((byte, at) => byte === (at === 15 ? 1 : 0));
}

function contains({ network, bits }: Range, address: readonly number[]): boolean {
  if (network.length !== address.length) return false;
  return network.every((byte, at) => ((byte ^ (address[at] ?? 0)) & mask(bits, at)) === 0);
}

/** The part of byte `at` that a prefix of `bits` covers. */
function mask(bits: number, at: number): number {
  const covered = Math.min(8, Math.max(0, bits - at * 8));
  return (0xff << (8 - covered)) & 0xff;
}
