/** One reading of IP addresses, for settings and for what names resolve to. Only ordinary spellings: `127.1` and `0x7f.1` are none. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Undefined unless the text is one address; a zone (`%eth0`) is dropped. An IPv4 address mapped into IPv6 (`::ffff:10.0.0.1`) is that
 * IPv4 address: the system connects to nothing else, so no rule may tell the two apart.
 */
export function parseAddress(text: string): Address | undefined {
  const [bare = ""] = text.split("%");
  switch (isIP(bare)) {
    case 4:
      return ipaddr.IPv4.parse(bare);
    case 6: {
      // By way of a URL, which knows hexadecimal only: the library takes ::10.0.0.1 for ::ffff:10.0.0.1.
      const address = ipaddr.IPv6.parse(new URL(`http://[${bare}]/`).hostname.slice(1, -1));
      return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
    }
    default:
      return undefined;
  }
}

export function isLoopback(address: Address): boolean {
  return address.range() === "loopback";
}
