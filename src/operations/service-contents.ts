/**
 * Where the content of a service comes from: a URL, the request itself, or an entry of a registry. Fetched and defined in the
 * caller's own context; nothing is stored here.
 */
import { createHash } from "node:crypto";
import type { ServiceContent, ServiceState } from "../actors/service.ts";
import { Failure } from "../errors/failure.ts";
import { documentBytesMax, documentFetchMs, redirectsMax } from "../limits.ts";
import type { Adapter } from "../ports/adapter.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { Descriptor, RegistryAccess, RegistryEntry, RegistryReader } from "../ports/registry-reader.ts";
import { newestWithin } from "./constraint.ts";
import type { CallContext } from "./operation.ts";
import type { Registries } from "./registry-access.ts";
import { findEntry } from "./registry-entries.ts";

export interface ServiceContentsOptions {
  readonly adapters: ReadonlyMap<string, Adapter>;
  readonly fetcher: Fetcher;
  readonly reader: RegistryReader;
  readonly access: Registries;
  readonly log: Log;
}

export interface ContentRequest {
  readonly adapter?: string | undefined;
  readonly url?: string | undefined;
  readonly definition?: string | Record<string, unknown> | undefined;
  readonly registryId?: string | undefined;
  readonly definitionId?: string | undefined;
  readonly version?: string | undefined;
  readonly constraint: string | null;
}

export interface FoundContent {
  readonly adapter: string;
  readonly source: string;
  readonly registry: ServiceState["registry"];
  readonly suggestedId: string;
  readonly content: ServiceContent;
}

interface Release {
  readonly version: string;
  readonly downloadUrl: string;
  readonly hash: string | null;
  readonly kind: string | null;
  readonly access: RegistryAccess;
}

/** Without an adapter named by the caller or by the entry's kind. */
const defaultAdapter = "openapi";

export class ServiceContents {
  readonly #options: ServiceContentsOptions;

  constructor(options: ServiceContentsOptions) {
    this.#options = options;
  }

  async find(request: ContentRequest, context: CallContext): Promise<FoundContent> {
    const { registryId, definitionId } = request;
    if (registryId !== undefined && definitionId !== undefined) {
      return this.#fromRegistry({ registryId, definitionId }, request, context);
    }
    const adapter = this.adapter(request.adapter);
    const { text, url } =
      request.url === undefined ? inline(request.definition) : await this.#download(request.url, context);
    const content = await define(adapter, text, url, undefined);
    return {
      adapter: adapter.id,
      source: url ?? "",
      registry: null,
      suggestedId: content.definition.title,
      content,
    };
  }

  /** The newest release within the constraint, or undefined when that is not newer than `version`. */
  async newer(
    state: ServiceState,
    registry: NonNullable<ServiceState["registry"]>,
    isNewer: (version: string) => boolean,
    context: CallContext,
  ): Promise<ServiceContent | undefined> {
    const release = await this.#release(registry, { constraint: state.autoUpdateConstraint }, context);
    return isNewer(release.version) ? this.#load(this.adapter(state.adapter), release) : undefined;
  }

  /** The content that the stored document makes now. */
  again(state: ServiceState, document: string): Promise<ServiceContent> {
    const url = state.registry === null && state.source !== "" ? state.source : undefined;
    return define(this.adapter(state.adapter), document, url, state.version);
  }

  adapter(id = defaultAdapter): Adapter {
    const adapter = this.#options.adapters.get(id);
    if (adapter === undefined) {
      const known = [...this.#options.adapters.keys()].join(", ");
      throw new Failure("invalid_request", `There is no adapter "${id}"; known: ${known}`);
    }
    return adapter;
  }

  async #fromRegistry(
    registry: NonNullable<ServiceState["registry"]>,
    request: ContentRequest,
    context: CallContext,
  ): Promise<FoundContent> {
    const release = await this.#release(registry, request, context);
    const adapter = this.adapter(request.adapter ?? (release.kind === null ? undefined : adapterOfKind(release.kind)));
    const content = await this.#load(adapter, release);
    return {
      adapter: adapter.id,
      source: release.downloadUrl,
      registry,
      suggestedId: registry.definitionId,
      content,
    };
  }

  async #release(
    { registryId, definitionId }: NonNullable<ServiceState["registry"]>,
    { version, constraint }: Pick<ContentRequest, "version" | "constraint">,
    context: CallContext,
  ): Promise<Release> {
    const lookup = { registryId, kind: "definitions", entryId: definitionId } as const;
    const { entry, reach } = await findEntry(this.#options, lookup, context);
    const descriptor = await this.#options.reader.descriptor(reach, entry.source);
    const chosen = version ?? newestWithin(Object.keys(descriptor.versions), descriptor.latestVersion, constraint);
    return { ...releaseOf(descriptor, chosen, entry), access: reach };
  }

  async #load(adapter: Adapter, { downloadUrl, hash, version, access }: Release): Promise<ServiceContent> {
    if (hash === null) {
      const message = `A definition of registry "${access.registryId}" has no hash: what was downloaded cannot be proved`;
      this.#options.log.warn("definition-without-hash", message, { registryId: access.registryId });
    }
    const bytes = await this.#options.reader.artifact(access, downloadUrl, documentBytesMax, hash);
    return define(adapter, decoded(bytes), downloadUrl, version);
  }

  async #download(url: string, context: CallContext): Promise<{ text: string; url: string }> {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new Failure("invalid_request", 'Field "url" must be an absolute http or https URL');
    }
    const answer = await this.#options.fetcher.fetch({
      method: "GET",
      url,
      headers: { accept: "application/json, application/yaml, text/yaml, */*;q=0.5" },
      redirectsMax,
      bodyBytesMax: documentBytesMax,
      timeoutMs: documentFetchMs,
      signal: context.signal,
    });
    if (answer.status < 200 || answer.status > 299) {
      throw new Failure(
        "upstream_failed",
        `The server of the definition document answered with status ${answer.status}`,
      );
    }
    return { text: decoded(answer.body), url: answer.url };
  }
}

function releaseOf(descriptor: Descriptor, version: string | null, entry: RegistryEntry): Omit<Release, "access"> {
  const release = version === null ? undefined : descriptor.versions[version];
  if (version === null || release === undefined) {
    const wanted = version === null ? "within the constraint" : `"${version}"`;
    throw new Failure("not_found", `Definition "${entry.id}" has no version ${wanted}`);
  }
  const { downloadUrl, hash, kind } = release;
  return { version, downloadUrl, hash, kind: kind ?? entry.kind ?? null };
}

/** `openapi@3.1.0` names a format and its version; the format's adapter has its name. */
function adapterOfKind(kind: string): string {
  const match = /^([A-Za-z0-9][A-Za-z0-9_-]*)@\d+(\.\d+){0,2}$/.exec(kind);
  if (match?.[1] === undefined) {
    throw new Failure("invalid_request", `The entry's kind "${kind}" names no adapter: give one in field "adapter"`);
  }
  return match[1];
}

function inline(definition: ContentRequest["definition"]): { text: string; url: undefined } {
  return { text: typeof definition === "string" ? definition : JSON.stringify(definition), url: undefined };
}

async function define(
  adapter: Adapter,
  document: string,
  url: string | undefined,
  version: string | undefined,
): Promise<ServiceContent> {
  const definition = await adapter.define({ text: document, url });
  return {
    document,
    definition,
    version: version ?? definition.version,
    hash: sha256(document),
    planHash: sha256(definition.plan),
  };
}

function decoded(bytes: Uint8Array): string {
  if (bytes.length === 0) throw new Failure("invalid_request", "The definition document is empty");
  return new TextDecoder().decode(bytes);
}

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}
