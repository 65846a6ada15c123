/** The well-known document: who this is, where its capabilities are, and how it wants to be asked. Always public. */
import type { AuthMode, Behaviour } from "./behaviour.ts";
import { type EntryKind, paths, siblingOf } from "./routes.ts";

export interface Place {
  readonly origin: string;
  readonly basePath: string;
}

export function advertisement(behaviour: Behaviour, place: Place): Record<string, unknown> {
  const auth = advertisedAuth(behaviour, place);
  return {
    id: behaviour.id,
    name: "Development registry",
    definitions: { v1: capability(behaviour, place, "definitions") },
    modules: { v1: capability(behaviour, place, "modules") },
    ...(auth === undefined ? {} : { auth }),
  };
}

/** Relative to the origin when honest. */
function capability({ lies, foreignOrigin }: Behaviour, { basePath }: Place, kind: EntryKind): string {
  if (lies.includes("off-origin-capability")) return `${foreignOrigin}${paths.page(basePath, kind)}`;
  return paths.page(lies.includes("sibling-path") ? siblingOf(basePath) : basePath, kind);
}

function advertisedAuth(behaviour: Behaviour, place: Place): unknown {
  if (behaviour.advertisedAuth !== undefined) return behaviour.advertisedAuth;
  const drifted = behaviour.drift === "values";
  switch (advertisedMode(behaviour)) {
    case "none":
      return undefined;
    case "apikey":
      return { type: "apiKey", name: drifted ? `${behaviour.headerName}-Drift` : behaviour.headerName, in: "header" };
    case "oauth2":
      return {
        type: "oauth2",
        grantType: "client_credentials",
        tokenEndpoint: `${place.origin}${(drifted ? paths.driftToken : paths.token)(place.basePath)}`,
        ...(behaviour.scopes.length === 0 ? {} : { scopes: behaviour.scopes }),
      };
  }
}

function advertisedMode({ auth, drift }: Behaviour): AuthMode {
  if (drift === "removed") return "none";
  if (drift === "type") return auth === "apikey" ? "oauth2" : "apikey";
  return auth;
}
