/**
 * Reads remote registries: the well-known document, capability pages, entry descriptors, artifacts and icons, and exchanges
 * client credentials for tokens. It keeps nothing: records, credentials, tokens and drift belong to the registry's actor.
 *
 * Rejects with Failure: upstream_failed (unreachable, non-2xx, malformed: the sentence says what is wrong and where), refused
 * (transport rule at setup), timeout, cancelled. No message holds a credential or a foreign body.
 */
export type AdvertisedAuth =
  | { readonly type: "apiKey"; readonly headerName: string }
  | { readonly type: "oauth2"; readonly tokenEndpoint: string; readonly scopes: readonly AdvertisedScope[] }
  /** `declared` is the advertised type; reason is "" when the type itself is not known. */
  | { readonly type: "unsupported"; readonly declared: string; readonly reason: string };

export interface AdvertisedScope {
  readonly id: string;
  readonly description: string;
}

export interface Advertisement {
  readonly id: string;
  /** Absolute URL of the supported capability (version 1), or null. */
  readonly definitions: string | null;
  readonly modules: string | null;
  readonly auth: AdvertisedAuth | null;
}

export type RegistryCredential =
  | { readonly type: "apiKey"; readonly headerName: string; readonly key: string }
  | { readonly type: "oauth2"; readonly accessToken: string };

/** Where the credentials of the registry on whose behalf a request is made come from. */
export interface CredentialSource {
  /** null: the registry is used anonymously. */
  current(): Promise<RegistryCredential | null>;
  /** After a 401: a token proven newer than the refused one, or null when there is none to be had (apiKey never has). */
  renewed(refused: RegistryCredential): Promise<RegistryCredential | null>;
}

export interface RegistryAccess {
  readonly registryId: string;
  readonly baseUrl: string;
  readonly credentials: CredentialSource;
  readonly signal: AbortSignal;
}

export type EntryKind = "definitions" | "modules";

export interface BrowseQuery {
  readonly query?: string | undefined;
  /** Definitions only. */
  readonly kind?: string | undefined;
  /** Modules only. */
  readonly type?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** API document 2.2. */
export interface RegistryEntry {
  readonly id: string;
  readonly source: string;
  readonly name?: string;
  readonly description?: string;
  readonly kind?: string;
  readonly type?: "adapter" | "environment";
  readonly icon?: { readonly url: string; readonly hash: string };
}

export interface EntryPage {
  readonly entries: readonly RegistryEntry[];
  readonly nextCursor: string | null;
}

export interface DescribedVersion {
  /** Absolute; may be on another origin, which then gets no credentials. */
  readonly downloadUrl: string;
  /** SHA-256 of the bytes, lower-case hex. */
  readonly hash: string | null;
  readonly kind: string | null;
  readonly engines: string | null;
  readonly icon: { readonly url: string; readonly hash: string } | null;
}

export interface Descriptor {
  readonly latestVersion: string;
  /** Valid semver only; others a registry lists are left out. */
  readonly versions: Readonly<Record<string, DescribedVersion>>;
}

export interface TokenRequest {
  readonly tokenEndpoint: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Empty: no scope parameter at all. */
  readonly scopes: readonly string[];
}

export interface IssuedToken {
  readonly accessToken: string;
  readonly lifetimeMs: number;
  readonly refreshToken: string | null;
}

export interface RegistryReader {
  /** Anonymous, and never from a cache. */
  advertisement(baseUrl: string, signal: AbortSignal): Promise<Advertisement>;
  page(access: RegistryAccess, kind: EntryKind, capabilityUrl: string, query: BrowseQuery): Promise<EntryPage>;
  descriptor(access: RegistryAccess, source: string): Promise<Descriptor>;
  /** Bytes of a download, at most `bytesMax`; checked against `hash` where given. */
  artifact(access: RegistryAccess, url: string, bytesMax: number, hash: string | null): Promise<Uint8Array>;
  /** Never follows redirects. Transport rule broken: Failure refused. Anything the endpoint does: upstream_failed. */
  exchange(request: TokenRequest, signal: AbortSignal): Promise<IssuedToken>;
  /** Whether credentials may be sent to this URL at all: https, or http to exempt addresses only. Rejects with refused. */
  requireSafeTransport(url: string, signal: AbortSignal): Promise<void>;
}
