/**
 * Whether credentials may go to a URL at all, asked before they are stored. Every address of a name must pass: which of them a
 * later connection takes is not ours to say. The connection itself is judged again when it is made.
 */
import { Failure, isFailure } from "../errors/failure.ts";
import { registryExchangeMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { CredentialedFetcher } from "../ports/fetcher.ts";
import { isSafeTransport, plaintextRefusal } from "./credential-headers.ts";
import type { PlaintextExemption } from "./plaintext-exemption.ts";
import { timeLimit } from "./time-limit.ts";

/** @throws Failure refused; cancelled; upstream_failed when the look-up does not end. */
export async function requireSafeTransport(
  egress: CredentialedFetcher,
  exemption: PlaintextExemption,
  clock: Clock,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const url = URL.parse(text);
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    throw new Failure("refused", "Registry authentication requires https; this is no URL of a web server");
  const limit = timeLimit(clock, registryExchangeMs, signal, `Looking up "${url.host}"`);
  const addresses = await limit.race(addressesOf(egress, url));
  if (addresses.some((address) => !isSafeTransport({ url, address, addresses }, exemption)))
    throw new Failure("refused", plaintextRefusal(url));
}

async function addressesOf(egress: CredentialedFetcher, url: URL): Promise<readonly string[]> {
  try {
    return await egress.approve(url.href);
  } catch (error) {
    if (!isFailure(error) || error.kind !== "upstream_failed") throw error;
    // Of a name that leads nowhere, plain http cannot be shown to be exempt, while https is safe wherever it leads later.
    if (url.protocol === "http:") throw new Failure("refused", plaintextRefusal(url), { cause: error });
    if (error.details.cause !== undefined) return [];
    throw new Failure("refused", error.message, { cause: error });
  }
}
