/** The smallest reader there can be, with its rule for credentials given from outside: so that wrong rules can be tried. */
import type { Hop } from "../../../src/egress/egress.ts";
import { Failure } from "../../../src/errors/failure.ts";
import type { RegistryAccess } from "../../../src/ports/registry-reader.ts";
import type { Decision } from "./oracle.ts";
import type { Reader } from "./play.ts";
import type { Parts } from "./stage.ts";

export type Policy = (base: URL, hop: Hop, hopNumber: number) => Decision;

export function policyReader({ egress }: Parts, policy: Policy): Reader {
  async function read(access: RegistryAccess, url: string): Promise<Uint8Array> {
    const credential = await access.credentials.current();
    let hops = 0;
    const headersOf = (hop: Hop): Record<string, string> => {
      const decision = policy(new URL(access.baseUrl), hop, hops++);
      if (decision === "refuse") {
        throw new Failure(
          "upstream_failed",
          `Registry authentication requires https: credentials are not sent to "${hop.url.host}" over plaintext http`,
        );
      }
      if (decision === "anonymous" || credential === null) return {};
      return credential.type === "apiKey"
        ? { [credential.headerName]: credential.key }
        : { authorization: `Bearer ${credential.accessToken}` };
    };
    const { signal } = access;
    const bounds = { redirectsMax: 5, bodyBytesMax: 10_000, timeoutMs: 10_000, signal };
    const answer = await egress.fetchAs({ method: "GET", url, headers: {}, ...bounds }, headersOf);
    if (answer.status !== 200) throw new Failure("upstream_failed", `The registry answered ${answer.status}`);
    return answer.body;
  }

  return {
    async page(access, _kind, capabilityUrl) {
      await read(access, capabilityUrl);
      return { entries: [], nextCursor: null };
    },
    async descriptor(access, source) {
      await read(access, source);
      return { latestVersion: "1.0.0", versions: {} };
    },
    artifact: read,
  };
}
