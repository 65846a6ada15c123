/** One entry of a registry by its id. Registries have no such look-up: they answer pages, and what a search matches is theirs to say. */
import { Failure } from "../errors/failure.ts";
import { browseLimitMax, entryPagesMax } from "../limits.ts";
import type { EntryKind, RegistryAccess, RegistryEntry, RegistryReader } from "../ports/registry-reader.ts";
import type { CallContext } from "./operation.ts";
import type { Registries } from "./registry-access.ts";

export interface EntryLookup {
  readonly registryId: string;
  readonly kind: EntryKind;
  readonly entryId: string;
}

export interface FoundEntry {
  readonly entry: RegistryEntry;
  /** For what else is asked of the same registry in the same call. */
  readonly reach: RegistryAccess;
}

/** Rejects with Failure: not_found (registry, capability or entry), or what reading the registry fails with. */
export async function findEntry(
  { access, reader }: { readonly access: Registries; readonly reader: RegistryReader },
  { registryId, kind, entryId }: EntryLookup,
  context: CallContext,
): Promise<FoundEntry> {
  const state = await access.find(registryId);
  const reach = access.access(state, context);
  const capabilityUrl = await access.capability(state, kind);
  // The registry's own search first, and then the whole list, both within bounds.
  for (const query of [entryId, undefined]) {
    const entry = await searchPages(reader, reach, kind, capabilityUrl, query, entryId);
    if (entry !== undefined) return { entry, reach };
  }
  throw new Failure("not_found", `Registry "${registryId}" has no ${singular[kind]} "${entryId}"`);
}

const singular: Readonly<Record<EntryKind, string>> = { definitions: "definition", modules: "module" };

async function searchPages(
  reader: RegistryReader,
  reach: RegistryAccess,
  kind: EntryKind,
  capabilityUrl: string,
  query: string | undefined,
  entryId: string,
): Promise<RegistryEntry | undefined> {
  let cursor: string | undefined;
  const seen = new Set<string>();
  for (let page = 0; page < entryPagesMax; page++) {
    const asked = { query, cursor, limit: browseLimitMax };
    const { entries, nextCursor } = await reader.page(reach, kind, capabilityUrl, asked);
    const found = entries.find(({ id }) => id === entryId);
    if (found !== undefined || nextCursor === null || seen.has(nextCursor)) return found;
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return undefined;
}
