/** What a registry advertises, held against what is pinned. Pure; pinned values are kept whatever this says. */
import type { AdvertisedAuth } from "../ports/registry-reader.ts";
import type { RegistryAuth } from "./registry.ts";

export interface DriftEvent {
  readonly event:
    | "registry-auth-unsupported"
    | "registry-auth-unconfigured"
    | "registry-auth-type-drift"
    | "registry-auth-token-endpoint-drift"
    | "registry-auth-header-drift";
  readonly message: string;
}

export function driftOf(auth: RegistryAuth | null, advertised: AdvertisedAuth | null): readonly DriftEvent[] {
  if (advertised?.type === "unsupported") {
    const reason = advertised.reason === "" ? "" : ` (${advertised.reason})`;
    const message = `The registry advertises unsupported auth "${advertised.declared}"${reason}`;
    return [{ event: "registry-auth-unsupported", message }];
  }
  if (auth === null) {
    if (advertised === null) return [];
    const message = `The registry advertises ${advertised.type} auth and none is configured; it is used anonymously`;
    return [{ event: "registry-auth-unconfigured", message }];
  }
  if (advertised?.type !== auth.type) {
    const now = advertised === null ? "no auth" : advertised.type;
    const message = `The registry now advertises ${now}; the configured ${auth.type} credentials are retained`;
    return [{ event: "registry-auth-type-drift", message }];
  }
  if (auth.type === "oauth2" && advertised.type === "oauth2" && advertised.tokenEndpoint !== auth.tokenEndpoint) {
    const message = `The registry now advertises token endpoint "${advertised.tokenEndpoint}"; the pinned endpoint is retained`;
    return [{ event: "registry-auth-token-endpoint-drift", message }];
  }
  if (
    auth.type === "apiKey" &&
    advertised.type === "apiKey" &&
    advertised.headerName.toLowerCase() !== auth.headerName.toLowerCase()
  ) {
    const message = `The registry now advertises header "${advertised.headerName}"; the pinned header is retained`;
    return [{ event: "registry-auth-header-drift", message }];
  }
  return [];
}
