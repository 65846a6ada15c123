/** The addresses to which credentials may travel over plain http: loopback, and those the operator listed. */
import { isLoopback, parseAddress } from "../net/address.ts";
import { cidrsContain, parseCidrs } from "../net/cidr.ts";

export interface PlaintextExemption {
  covers(address: string): boolean;
}

/**
 * @param cidrs entries such as `10.0.0.0/8` or a single address; blank ones are skipped.
 * @throws Failure refused naming an entry that could be read two ways: better no start than a wider exemption than meant.
 */
export function plaintextExemption(cidrs: readonly string[]): PlaintextExemption {
  const ranges = parseCidrs(cidrs, "SERVICE_REGISTRY_AUTH_INSECURE_CIDRS");
  return {
    covers(text) {
      const address = parseAddress(text);
      return address !== undefined && (isLoopback(address) || cidrsContain(ranges, address));
    },
  };
}
