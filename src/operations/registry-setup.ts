/**
 * Whether credentials may be set up for a registry: everything API document 5.2 calls a safety refusal, held against the live
 * advertisement. A refusal stores nothing.
 */
import { Failure } from "../errors/failure.ts";
import type { AdvertisedAuth, RegistryReader } from "../ports/registry-reader.ts";
import type { AuthSetup } from "./registry-shapes.ts";

export type AcceptedSetup =
  | { readonly type: "apiKey"; readonly headerName: string; readonly key: string }
  | {
      readonly type: "oauth2";
      readonly tokenEndpoint: string;
      readonly clientId: string;
      readonly clientSecret: string;
      /** Resolved: what is stored and sent on every renewal. */
      readonly scopes: readonly string[];
    };

/** Rejects with Failure refused. */
export async function acceptSetup(
  setup: AuthSetup,
  advertised: AdvertisedAuth | null,
  baseUrl: string,
  reader: RegistryReader,
  signal: AbortSignal,
): Promise<AcceptedSetup> {
  if (advertised === null) throw refused("The registry does not advertise an auth method");
  if (advertised.type === "unsupported") {
    const reason = advertised.reason === "" ? "" : `: ${advertised.reason}`;
    throw refused(`The registry advertises unsupported auth "${advertised.declared}"${reason}`);
  }
  if (advertised.type === "apiKey" && setup.type === "apiKey") {
    await reader.requireSafeTransport(baseUrl, signal);
    return { type: "apiKey", headerName: advertised.headerName, key: setup.apiKey };
  }
  if (advertised.type === "oauth2" && setup.type === "oauth2") {
    const offered = advertised.scopes.map(({ id }) => id);
    const scopes = setup.scopes ?? offered;
    const unknown = scopes.filter((scope) => !offered.includes(scope));
    if (unknown.length > 0) {
      throw refused(`Requested scope(s) not advertised by the registry: ${unknown.join(", ")}`);
    }
    await reader.requireSafeTransport(baseUrl, signal);
    await reader.requireSafeTransport(advertised.tokenEndpoint, signal);
    const { clientId, clientSecret } = setup;
    return {
      type: "oauth2",
      tokenEndpoint: advertised.tokenEndpoint,
      clientId,
      clientSecret,
      scopes: [...new Set(scopes)],
    };
  }
  throw refused(`The registry advertises ${advertised.type} auth; ${setup.type} credentials cannot be used`);
}

function refused(message: string): Failure {
  return new Failure("refused", message);
}
