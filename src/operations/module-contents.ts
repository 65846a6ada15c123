/**
 * Where a module comes from: a URL, a file of this machine, or an entry of a registry. Its package is proved, unpacked and loaded once,
 * in the caller's own time; nothing is put in service here.
 */
import { open } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { satisfies } from "semver";
import type { ModuleContent, ModuleState } from "../actors/module.ts";
import { Failure, isFailure } from "../errors/failure.ts";
import { fieldAtFault } from "../errors/field-at-fault.ts";
import { documentFetchMs, packageBytesMax, redirectsMax } from "../limits.ts";
import type { Fetcher } from "../ports/fetcher.ts";
import type { ModuleHost } from "../ports/module-host.ts";
import type { ModulePackage, PackageManifest, Packages } from "../ports/packages.ts";
import type { Descriptor, RegistryAccess, RegistryReader } from "../ports/registry-reader.ts";
import { findModule, type ModuleActors } from "./module-actors.ts";
import type { CallContext } from "./operation.ts";
import type { Registries } from "./registry-access.ts";
import { findEntry } from "./registry-entries.ts";
import { chooseRelease, isNewer, type Release, type Wanted } from "./releases.ts";

export interface ModuleContentsOptions {
  readonly modules: ModuleActors;
  readonly packages: Packages;
  readonly host: ModuleHost;
  readonly fetcher: Fetcher;
  readonly reader: RegistryReader;
  readonly access: Registries;
  readonly serverVersion: string;
}

export interface ModuleRequest extends Wanted {
  readonly source?: string | undefined;
  readonly hash?: string | undefined;
  readonly registryId?: string | undefined;
  readonly moduleId?: string | undefined;
}

export interface FoundModule {
  readonly id: string;
  readonly type: PackageManifest["type"];
  readonly source: string;
  readonly registry: ModuleState["registry"];
  readonly content: ModuleContent;
}

/** What the package must turn out to be. */
interface Expected {
  readonly id?: string;
  readonly version?: string;
  readonly type?: PackageManifest["type"];
}

export class ModuleContents {
  readonly #options: ModuleContentsOptions;

  constructor(options: ModuleContentsOptions) {
    this.#options = options;
  }

  async find(request: ModuleRequest, context: CallContext): Promise<FoundModule> {
    const { registryId, moduleId } = request;
    if (registryId !== undefined && moduleId !== undefined) {
      return this.#fromRegistry(registryId, moduleId, request, context);
    }
    const { url, hash } = readSource(request);
    const archive = url.protocol === "file:" ? await readArchive(url) : await this.#download(url.href, context);
    return this.#prove(archive, hash, {}, { source: url.href, registry: null });
  }

  /** The newest release within the constraint, or undefined when that is not newer. `skip`: a version that is left alone. */
  async newer(state: ModuleState, context: CallContext, skip: string | null = null): Promise<FoundModule | undefined> {
    const { id, type, registry } = state;
    if (registry === null) {
      throw new Failure("conflict", `Module "${id}" was not installed from a registry: it has nothing to update from`);
    }
    const { access } = this.#options;
    const reach = access.access(await access.find(registry.registryId), context);
    const { descriptor, source } = await this.#descriptor(reach, registry, context);
    const release = chooseRelease(descriptor, { constraint: state.autoUpdateConstraint }, `Module "${id}"`);
    if (!isNewer(release.version, state.version) || release.version === skip) return undefined;
    return this.#load(reach, release, { id, type }, { ...registry, descriptor: source });
  }

  /** Removes a package that was unpacked and is not used after all. */
  async discard(id: string, hash: string): Promise<void> {
    const { state } = await this.#options.modules.query(id);
    if (state?.hash === hash || state?.previous?.hash === hash) return;
    await this.#options.packages.remove(id, hash);
  }

  /** Why the package of an installed module cannot be used, or null. */
  async fault({ id, hash }: ModuleState): Promise<string | null> {
    const { host, packages } = this.#options;
    if (host.unavailable !== null) return host.unavailable;
    try {
      await packages.open(id, hash);
      return null;
    } catch (error) {
      if (isFailure(error)) return error.message;
      throw error;
    }
  }

  async icon(id: string): Promise<Uint8Array | undefined> {
    const { hash, isBuiltin, hasIcon } = await findModule(this.#options.modules, id);
    if (isBuiltin || !hasIcon) return undefined;
    const { packages } = this.#options;
    return packages.icon(await packages.open(id, hash));
  }

  async #fromRegistry(
    registryId: string,
    moduleId: string,
    wanted: Wanted,
    context: CallContext,
  ): Promise<FoundModule> {
    const lookup = { registryId, kind: "modules", entryId: moduleId } as const;
    const { entry, reach } = await findEntry(this.#options, lookup, context);
    const descriptor = await this.#options.reader.descriptor(reach, entry.source);
    const release = chooseRelease(descriptor, wanted, `Module "${moduleId}"`);
    const registry = { registryId, entryId: moduleId, descriptor: entry.source };
    const { type } = entry;
    return this.#load(reach, release, { id: moduleId, ...(type === undefined ? {} : { type }) }, registry);
  }

  /** Where it was last; an entry whose descriptor has moved is looked up again. */
  async #descriptor(
    reach: RegistryAccess,
    { registryId, entryId, descriptor: source }: NonNullable<ModuleState["registry"]>,
    context: CallContext,
  ): Promise<{ descriptor: Descriptor; source: string }> {
    const { reader } = this.#options;
    try {
      return { descriptor: await reader.descriptor(reach, source), source };
    } catch (error) {
      if (!isFailure(error) || error.kind !== "upstream_failed") throw error;
      const { entry } = await findEntry(this.#options, { registryId, kind: "modules", entryId }, context);
      if (entry.source === source) throw error;
      return { descriptor: await reader.descriptor(reach, entry.source), source: entry.source };
    }
  }

  async #load(
    reach: RegistryAccess,
    { version, downloadUrl, hash, engines }: Release,
    expected: Expected,
    registry: ModuleState["registry"],
  ): Promise<FoundModule> {
    const what = `Module "${expected.id}" version ${version}`;
    if (hash === null) throw new Failure("refused", `${what} has no hash in its registry: it cannot be proved`);
    const { serverVersion, reader } = this.#options;
    if (engines !== null && !satisfies(serverVersion, engines, { includePrerelease: true })) {
      throw new Failure("invalid_request", `${what} runs in Troupe ${engines}, this is ${serverVersion}`);
    }
    const archive = await reader.artifact(reach, downloadUrl, packageBytesMax, hash);
    return this.#prove(archive, hash, { ...expected, version }, { source: downloadUrl, registry });
  }

  async #prove(
    archive: Uint8Array,
    hash: string,
    expected: Expected,
    origin: Pick<FoundModule, "source" | "registry">,
  ): Promise<FoundModule> {
    const { packages, host } = this.#options;
    if (host.unavailable !== null) throw new Failure("conflict", host.unavailable);
    const modulePackage = await packages.add(archive, hash);
    const { manifest } = modulePackage;
    try {
      requireExpected(manifest, expected);
      const declaration = await host.inspect(modulePackage);
      return {
        id: manifest.id,
        type: manifest.type,
        ...origin,
        content: { ...contentOf(modulePackage), ...declaration },
      };
    } catch (error) {
      await this.discard(manifest.id, hash);
      throw error;
    }
  }

  async #download(url: string, context: CallContext): Promise<Uint8Array> {
    const answer = await this.#options.fetcher.fetch({
      method: "GET",
      url,
      headers: { accept: "application/gzip, application/octet-stream, */*;q=0.5" },
      redirectsMax,
      bodyBytesMax: packageBytesMax,
      timeoutMs: documentFetchMs,
      signal: context.signal,
    });
    if (answer.status < 200 || answer.status > 299) {
      throw new Failure("upstream_failed", `The server of the package answered with status ${answer.status}`);
    }
    return answer.body;
  }
}

function contentOf({ manifest, hash }: ModulePackage): Omit<ModuleContent, "configSchema" | "secretsSchema"> {
  const { name, description, version, hasIcon } = manifest;
  return { name, description, version, hasIcon, hash };
}

function requireExpected(manifest: PackageManifest, expected: Expected): void {
  for (const field of ["id", "version", "type"] as const) {
    const wanted = expected[field];
    if (wanted !== undefined && manifest[field] !== wanted) {
      const message = `The package says that its ${field} is "${manifest[field]}", it should be "${wanted}"`;
      throw new Failure("invalid_request", message);
    }
  }
}

/** The hash is given beside the URL, or as its fragment: `https://…/module.tgz#sha256=…`. */
function readSource({ source = "", hash }: ModuleRequest): { url: URL; hash: string } {
  if (!URL.canParse(source) || !/^(https?|file):$/.test(new URL(source).protocol)) {
    throw fieldAtFault("source", 'Field "source" must be an absolute http, https or file URL');
  }
  const url = new URL(source);
  const given = hash ?? /^#sha256=([0-9a-f]{64})$/i.exec(url.hash)?.[1];
  if (given === undefined) {
    throw fieldAtFault("hash", 'Field "hash" must be the SHA-256 of the package, or end "source" as "#sha256=…"');
  }
  url.hash = "";
  return { url, hash: given.toLowerCase() };
}

async function readArchive(url: URL): Promise<Uint8Array> {
  try {
    const file = await open(fileURLToPath(url), "r");
    try {
      const { size } = await file.stat();
      if (size > packageBytesMax) {
        throw new Failure("too_large", `A module package has at most ${packageBytesMax} bytes`);
      }
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isFailure(error)) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw fieldAtFault("source", `The file of field "source" cannot be read (${code})`);
  }
}
