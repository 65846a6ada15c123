/** A registry whose capability endpoint serves only those with a token that the token server calls active. */
import { createServer, type Server } from "node:http";
import type { RegistryAccess, RegistryCredential, RegistryReader } from "../../../src/ports/registry-reader.ts";
import { type ClientAccount, closed, listen, type TokenServer } from "./token-server.ts";

export interface Visit {
  readonly authorization: readonly string[];
  readonly status: number;
}

export interface ProtectedRegistry {
  readonly baseUrl: string;
  readonly definitionsUrl: string;
  readonly visits: Visit[];
  close(): Promise<void>;
}

/** `verdict` overrules the token server with a status of its own. */
export async function openProtectedRegistry(
  tokens: TokenServer,
  verdict?: () => number | undefined,
): Promise<ProtectedRegistry> {
  const visits: Visit[] = [];
  const server: Server = createServer(async (incoming, response) => {
    const authorization = incoming.headersDistinct.authorization ?? [];
    const token = /^Bearer (\S+)$/.exec(authorization.join())?.[1] ?? "";
    const isActive = token !== "" && (await tokens.introspect(token)).active;
    const status = verdict?.() ?? (isActive ? 200 : 401);
    visits.push({ authorization, status });
    const entry = { id: "petstore", source: "/api/petstore" };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(status === 200 ? { definitions: [entry], nextCursor: null } : { error: token }));
  });
  const port = await listen(server, 0);
  const baseUrl = `http://127.0.0.1:${port}/api`;
  return { baseUrl, definitionsUrl: `${baseUrl}/definitions`, visits, close: () => closed(server) };
}

export interface Holder {
  readonly access: RegistryAccess;
  /** How often a token was asked for anew after a 401. */
  readonly renewals: RegistryCredential[];
}

/** Holds one token as the actor of a registry does: fetched when first needed, and again when one was refused. */
export function holdToken(
  reader: RegistryReader,
  registry: ProtectedRegistry,
  tokenEndpoint: string,
  account: ClientAccount,
  requested: readonly string[] = [],
): Holder {
  let held: RegistryCredential | undefined;
  const renewals: RegistryCredential[] = [];
  const { signal } = new AbortController();
  const request = { tokenEndpoint, clientId: account.id, clientSecret: account.secret, scopes: requested };
  const fetchToken = async (): Promise<RegistryCredential> => {
    const { accessToken } = await reader.exchange(request, signal);
    held = { type: "oauth2", accessToken };
    return held;
  };
  const credentials = {
    current: async () => held ?? (await fetchToken()),
    renewed: async (refused: RegistryCredential) => {
      renewals.push(refused);
      return fetchToken();
    },
  };
  return { access: { registryId: "peer", baseUrl: registry.baseUrl, credentials, signal }, renewals };
}
