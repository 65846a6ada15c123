/** A host name to addresses that were all judged; the only look-up of a hop, so that no second answer can differ. */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { Failure } from "../errors/failure.ts";
import type { Log } from "../ports/log.ts";
import { type AddressRules, judgeAddress } from "./address-judge.ts";

/** All addresses of a name, in the order to try them; rejects with an error that has a `code`. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

export const systemResolver: Lookup = async (hostname) => {
  const found = await systemLookup(hostname, { all: true, order: "verbatim" });
  return found.map(({ address }) => address);
};

/**
 * Every address must be allowed: a name that leads to both a public and an internal address is not half trustworthy.
 * @throws Failure upstream_failed.
 */
export async function approvedAddresses(
  url: URL,
  lookup: Lookup,
  rules: AddressRules,
  log: Log,
): Promise<readonly string[]> {
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(hostname) === 0 ? await resolve(hostname, url, lookup) : [hostname];
  for (const address of addresses) {
    const verdict = judgeAddress(address, rules);
    if (verdict.allowed) continue;
    const subject = address === hostname ? "it" : `its address "${address}"`;
    const message = `Cannot reach "${url.host}": ${subject} is ${verdict.reason}`;
    log.warn("egress-refused", message);
    throw new Failure("upstream_failed", message);
  }
  return [...new Set(addresses)];
}

async function resolve(hostname: string, url: URL, lookup: Lookup): Promise<readonly string[]> {
  let addresses: readonly string[];
  try {
    addresses = await lookup(hostname);
  } catch (error) {
    throw new Failure("upstream_failed", `Cannot reach "${url.host}": its name cannot be resolved`, { cause: error });
  }
  if (addresses.length === 0)
    throw new Failure("upstream_failed", `Cannot reach "${url.host}": its name has no address`);
  return addresses;
}
