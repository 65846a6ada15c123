/** A client of registries as a stranger would write it: it knows the documents of a registry, and nothing of the fixture. */
import { createHash } from "node:crypto";
import { onTestFinished } from "vitest";
import { type DevRegistry, type DevRegistryOptions, startDevRegistry } from "../../src/dev-registry/dev-registry.ts";

export async function startRegistry(options: DevRegistryOptions = {}): Promise<DevRegistry> {
  const registry = await startDevRegistry(options);
  onTestFinished(() => registry.close());
  return registry;
}

export type Headers = Readonly<Record<string, string>>;
export type Kind = "definitions" | "modules";

export interface Entry {
  readonly id: string;
  readonly source: string;
  readonly name: string;
  readonly description: string;
  readonly kind?: string;
  readonly type?: string;
  readonly icon: { readonly url: string; readonly hash: string };
}

export interface Page {
  readonly entries: readonly Entry[];
  readonly nextCursor: string | null;
}

export interface Version {
  readonly downloadUrl: string;
  readonly hash?: string;
  readonly kind?: string;
  readonly engines?: string;
  readonly icon: Entry["icon"];
}

export interface Descriptor {
  readonly latestVersion: string;
  readonly versions: Readonly<Record<string, Version>>;
}

export interface Advertisement {
  readonly id: string;
  readonly definitions: { readonly v1: string };
  readonly modules: { readonly v1: string };
  readonly auth?: Readonly<Record<string, unknown>>;
}

export async function json<Shape>(url: string | URL, init: RequestInit = {}): Promise<Shape> {
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Shape;
}

export function advertisementOf({ origin }: DevRegistry): Promise<Advertisement> {
  return json<Advertisement>(`${origin}/.well-known/registry.json`);
}

export async function capabilityOf(registry: DevRegistry, kind: Kind): Promise<string> {
  return new URL((await advertisementOf(registry))[kind].v1, registry.origin).href;
}

export async function pageOf(registry: DevRegistry, kind: Kind, query: Headers = {}, headers: Headers = {}) {
  const url = new URL(await capabilityOf(registry, kind));
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const page = await json<Record<string, unknown>>(url, { headers });
  return { entries: page[kind], nextCursor: page.nextCursor } as Page;
}

export async function allEntries(registry: DevRegistry, kind: Kind, query: Headers = {}): Promise<Entry[]> {
  const entries: Entry[] = [];
  let cursor: string | null = null;
  do {
    const page: Page = await pageOf(registry, kind, cursor === null ? query : { ...query, cursor });
    entries.push(...page.entries);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return entries;
}

export function descriptorOf(registry: DevRegistry, entry: Entry, headers: Headers = {}): Promise<Descriptor> {
  return json<Descriptor>(new URL(entry.source, registry.origin), { headers });
}

export interface Download {
  readonly id: string;
  readonly version: string;
  readonly described: Version;
  readonly mediaType: string | null;
  readonly bytes: Buffer;
}

/** Every version of every entry. */
export async function allDownloads(registry: DevRegistry, kind: Kind): Promise<Download[]> {
  const downloads: Download[] = [];
  for (const entry of await allEntries(registry, kind)) {
    const { versions } = await descriptorOf(registry, entry);
    for (const [version, described] of Object.entries(versions)) {
      const response = await fetch(described.downloadUrl);
      const bytes = Buffer.from(await response.arrayBuffer());
      const mediaType = response.headers.get("content-type");
      downloads.push({ id: entry.id, version, described, mediaType, bytes });
    }
  }
  return downloads;
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** undefined leaves a field out. */
export function requestToken(registry: DevRegistry, fields: Readonly<Record<string, string | undefined>> = {}) {
  const all = {
    grant_type: "client_credentials",
    client_id: "dev-client",
    client_secret: "dev-secret",
    ...fields,
  };
  const given = Object.entries(all).filter((field): field is [string, string] => field[1] !== undefined);
  return fetch(registry.tokenEndpoint, { method: "POST", body: new URLSearchParams(given) });
}

export interface Token {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: unknown;
  readonly scope?: string;
  readonly refresh_token?: string;
}

export async function tokenOf(registry: DevRegistry, fields: Readonly<Record<string, string>> = {}): Promise<Token> {
  const response = await requestToken(registry, fields);
  if (!response.ok) throw new Error(`The token endpoint answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Token;
}
