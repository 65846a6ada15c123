/**
 * Where the content of a service comes from: a URL, the request itself, or an entry of a registry. Fetched and defined in the
 * caller's own context; nothing is stored here.
 */
import { createHash } from "node:crypto";
import type { OpenSettings } from "../actors/configured.ts";
import type { ServiceContent, ServiceState } from "../actors/service.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import { fieldAtFault } from "../errors/field-at-fault.ts";
import { documentBytesMax, documentFetchMs, iconBytesMax, redirectsMax } from "../limits.ts";
import type { Adapter, Adapters, ToolSummary } from "../ports/adapter.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { Log } from "../ports/log.ts";
import type { RegistryAccess, RegistryReader } from "../ports/registry-reader.ts";
import { toIcon } from "./icons.ts";
import type { ModuleActors } from "./module-actors.ts";
import type { CallContext } from "./operation.ts";
import type { Registries } from "./registry-access.ts";
import { findEntry } from "./registry-entries.ts";
import { chooseRelease, type Release, type Wanted } from "./releases.ts";
import type { ServiceActors } from "./service-actors.ts";

export interface ServiceContentsOptions {
  readonly adapters: Adapters;
  readonly modules: ModuleActors;
  readonly services: ServiceActors;
  readonly fetcher: Fetcher;
  readonly reader: RegistryReader;
  readonly access: Registries;
  readonly log: Log;
}

export interface ContentRequest extends Wanted {
  readonly adapter?: string | undefined;
  readonly url?: string | undefined;
  readonly definition?: string | Record<string, unknown> | undefined;
  readonly registryId?: string | undefined;
  readonly definitionId?: string | undefined;
}

export interface FoundContent {
  readonly adapter: string;
  readonly source: string;
  readonly registry: ServiceState["registry"];
  readonly suggestedId: string;
  readonly content: ServiceContent;
}

/** A release, and how its registry is reached. */
interface ReachedRelease extends Release {
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
    const adapter = await this.adapter(request.adapter);
    const { text, url } = await this.#document(adapter, request, context);
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
    if (!isNewer(release.version)) return undefined;
    return this.#succeeding(state, await this.#load(await this.adapter(state.adapter), release));
  }

  /** The content as the target says it is now where it can be asked, else what the stored document makes. */
  async again(
    state: ServiceState,
    document: string,
    settings: OpenSettings,
    context: CallContext,
  ): Promise<ServiceContent> {
    const adapter = await this.adapter(state.adapter);
    if (state.registry !== null || adapter.discover === undefined) return this.remade(state, document);
    const url = state.source === "" ? undefined : state.source;
    const found = await adapter.discover({ url, document, ...settings, signal: context.signal });
    return this.#succeeding(state, await define(adapter, found, url, undefined));
  }

  /** The content that the stored document makes now. */
  async remade(state: ServiceState, document: string): Promise<ServiceContent> {
    const url = state.registry === null && state.source !== "" ? state.source : undefined;
    return this.#succeeding(state, await define(await this.adapter(state.adapter), document, url, state.version));
  }

  /** Knows which tools were there before. */
  async #succeeding({ id }: ServiceState, content: ServiceContent): Promise<ServiceContent> {
    const tools = JSON.parse((await this.#options.services.blob(id, "tools")) ?? "[]") as readonly ToolSummary[];
    return { ...content, formerTools: tools.map((tool) => tool.id) };
  }

  async adapter(id = defaultAdapter): Promise<Adapter> {
    const { adapters, modules } = this.#options;
    const adapter = adapters.get(id);
    if (adapter !== undefined) return adapter;
    const { state } = await modules.query(id);
    if (state?.type === "adapter") throw new Failure("unavailable", `Adapter "${id}" is not in service`);
    throw fieldAtFault("adapter", `There is no adapter "${id}"; in service: ${adapters.ids().join(", ")}`);
  }

  async #fromRegistry(
    registry: NonNullable<ServiceState["registry"]>,
    request: ContentRequest,
    context: CallContext,
  ): Promise<FoundContent> {
    const release = await this.#release(registry, request, context);
    const adapter = await this.adapter(
      request.adapter ?? (release.kind === null ? undefined : adapterOfKind(release.kind)),
    );
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
    wanted: Wanted,
    context: CallContext,
  ): Promise<ReachedRelease> {
    const lookup = { registryId, kind: "definitions", entryId: definitionId } as const;
    const { entry, reach } = await findEntry(this.#options, lookup, context);
    const descriptor = await this.#options.reader.descriptor(reach, entry.source);
    const release = chooseRelease(descriptor, wanted, `Definition "${entry.id}"`);
    return {
      ...release,
      kind: release.kind ?? entry.kind ?? null,
      icon: release.icon ?? entry.icon ?? null,
      access: reach,
    };
  }

  async #load(adapter: Adapter, release: ReachedRelease): Promise<ServiceContent> {
    const { downloadUrl, hash, version, access } = release;
    if (hash === null) {
      const message = `A definition of registry "${access.registryId}" has no hash: what was downloaded cannot be proved`;
      this.#options.log.warn("definition-without-hash", message, { registryId: access.registryId });
    }
    const bytes = await this.#options.reader.artifact(access, downloadUrl, documentBytesMax, hash);
    const content = await define(adapter, decoded(bytes), downloadUrl, version);
    return { ...content, icon: await this.#icon(release) };
  }

  /** A service without its icon is better than none: one that cannot be had, or is no image, is left out. */
  async #icon({ icon, access }: ReachedRelease): Promise<ServiceContent["icon"]> {
    if (icon === null) return null;
    try {
      const read = toIcon(await this.#options.reader.artifact(access, icon.url, iconBytesMax, icon.hash));
      return read === undefined ? null : { hash: read.hash, base64: Buffer.from(read.content).toString("base64") };
    } catch (error) {
      if (!isFailure(error)) throw error;
      const message = "The icon of a definition could not be had; what was there before stays";
      this.#options.log.warn("definition-icon-failed", message, { registryId: access.registryId, error });
      return undefined;
    }
  }

  /** Given, asked of the target itself, or downloaded. */
  async #document(
    adapter: Adapter,
    { url, definition }: ContentRequest,
    context: CallContext,
  ): Promise<{ text: string; url: string | undefined }> {
    if (url === undefined) return inline(definition);
    if (adapter.discover === undefined) return this.#download(url, context);
    return { text: await adapter.discover({ url, config: {}, secrets: {}, signal: context.signal }), url };
  }

  async #download(url: string, context: CallContext): Promise<{ text: string; url: string }> {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw fieldAtFault("url", 'Field "url" must be an absolute http or https URL');
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

/** `openapi@3.1.0` names a format and its version; the format's adapter has its name. */
function adapterOfKind(kind: string): string {
  const match = /^([A-Za-z0-9][A-Za-z0-9_-]*)@\d+(\.\d+){0,2}$/.exec(kind);
  if (match?.[1] === undefined) {
    throw fieldAtFault("adapter", `The entry's kind "${kind}" names no adapter: give one in field "adapter"`);
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
