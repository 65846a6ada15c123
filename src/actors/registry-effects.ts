/** What a registry asks of the world: one token for one set of credentials, seals made again. Expected failures come back as messages. */
import { Failure, isFailure } from "../errors/failure.ts";
import { tokenExchangeMs } from "../limits.ts";
import type { RegistryReader } from "../ports/registry-reader.ts";
import type { SealContext, Vault } from "../ports/vault.ts";
import type { Self } from "../runtime/kind.ts";
import type { RegistryAuth, RegistryEffect, RegistryMessage, RegistryState, SealedToken } from "./registry.ts";
import { reseal, type Sealed } from "./reseal.ts";

export interface RegistryPorts {
  readonly vault: Vault;
  readonly reader: RegistryReader;
}

/** Sealed as JSON; the scopes are those resolved at setup and are sent with every renewal. */
export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
}

export async function performRegistryEffect(
  effect: RegistryEffect,
  self: Self<RegistryMessage>,
  ports: RegistryPorts,
): Promise<RegistryMessage | undefined> {
  switch (effect.type) {
    case "exchange":
      return exchange(effect.auth, self, ports);
    case "reseal":
      return reseal(sealedInRegistry(effect.state), ports.vault);
  }
}

async function exchange(
  auth: RegistryAuth,
  self: Self<RegistryMessage>,
  { vault, reader }: RegistryPorts,
): Promise<RegistryMessage | undefined> {
  if (auth.type !== "oauth2") return undefined;
  const { generation, tokenEndpoint } = auth;
  try {
    const credentials = openCredentials(vault, self.key, auth.credentials);
    const token = await exchangeAndSeal(reader, vault, self.key, tokenEndpoint, credentials);
    return { type: "tokenIssued", generation, token };
  } catch (error) {
    const failure = isFailure(error)
      ? error
      : new Failure("internal", "The exchange failed inside the server", { cause: error });
    return { type: "exchangeFailed", generation, failure };
  }
}

export async function exchangeAndSeal(
  reader: RegistryReader,
  vault: Vault,
  registryId: string,
  tokenEndpoint: string,
  credentials: ClientCredentials,
): Promise<SealedToken> {
  const { accessToken, refreshToken, lifetimeMs } = await reader.exchange(
    { tokenEndpoint, ...credentials },
    AbortSignal.timeout(tokenExchangeMs),
  );
  const envelope = vault.seal(JSON.stringify({ accessToken, refreshToken }), tokenContext(registryId));
  return { envelope, lifetimeMs };
}

/** @throws Failure internal: unreadable credentials fail closed, never anonymous. */
export function openCredentials(vault: Vault, registryId: string, envelope: string): ClientCredentials {
  return JSON.parse(vault.open(envelope, credentialsContext(registryId))) as ClientCredentials;
}

export function openApiKey(vault: Vault, registryId: string, envelope: string): string {
  return (JSON.parse(vault.open(envelope, credentialsContext(registryId))) as { key: string }).key;
}

export function openAccessToken(vault: Vault, registryId: string, envelope: string): string {
  return (JSON.parse(vault.open(envelope, tokenContext(registryId))) as { accessToken: string }).accessToken;
}

export function sealCredentials(
  vault: Vault,
  registryId: string,
  credentials: ClientCredentials | { key: string },
): string {
  return vault.seal(JSON.stringify(credentials), credentialsContext(registryId));
}

/** Also credentials whose setup has not ended, and a token of former ones that nobody is given any more. */
export function sealedInRegistry({ id, auth, setup, token }: RegistryState): readonly Sealed[] {
  const credentials = [auth, setup].flatMap((each) => (each === null ? [] : [each.credentials]));
  return [
    ...credentials.map((envelope) => ({ envelope, context: credentialsContext(id) })),
    ...(token === null ? [] : [{ envelope: token.envelope, context: tokenContext(id) }]),
  ];
}

function credentialsContext(id: string): SealContext {
  return { kind: "registry", id, field: "credentials" };
}

function tokenContext(id: string): SealContext {
  return { kind: "registry", id, field: "token" };
}
