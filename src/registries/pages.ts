/** Capability pages: the URL that asks for one, and the check of what comes back (API document 2.2, 2.3 and 4.1). */
import type { BrowseQuery, EntryKind, EntryPage, RegistryEntry } from "../ports/registry-reader.ts";
import {
  isMembers,
  isSlug,
  type Members,
  quotable,
  type Refuse,
  readObject,
  refuseFor,
  slugOf,
  textOf,
  urlOnOrigin,
} from "./foreign-json.ts";

/**
 * The caller's parameters, unchanged, behind those the capability URL carries; of the same name the caller's counts. The
 * others keep their exact spelling: they may be signed.
 */
export function pageUrl(capabilityUrl: string, { query, kind, type, cursor, limit }: BrowseQuery): string {
  const given = { query, kind, type, cursor, limit: String(limit) };
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) asked.set(name, value);
  const url = new URL(capabilityUrl);
  const carried = url.search
    .slice(1)
    .split("&")
    .filter((pair) => pair !== "" && ![...new URLSearchParams(pair).keys()].some((name) => asked.has(name)));
  url.search = [...carried, asked.toString()].join("&");
  return url.href;
}

/**
 * One bad entry spoils the page: leaving it out would hide it from everyone who could mend it.
 * @param what names the page in errors.
 * @param capabilityUrl what relative URLs start from and which origin they keep, also when the page was redirected.
 * @throws Failure upstream_failed naming the entry.
 */
export function readPage(bytes: Uint8Array, kind: EntryKind, capabilityUrl: string, what: string): EntryPage {
  const page = readObject(bytes, what);
  const refuse = refuseFor(what);
  const entries = page[kind];
  if (!Array.isArray(entries)) return refuse(`"${kind}" is ${entries === undefined ? "missing" : "not an array"}`);
  const base = new URL(capabilityUrl);
  return {
    entries: entries.map((entry: unknown, at) =>
      readEntry(entry, kind, base, (fault) => refuse(`in ${entryName(entry, at)}, ${fault}`)),
    ),
    nextCursor: readCursor(page.nextCursor, refuse),
  };
}

function entryName(entry: unknown, at: number): string {
  const id = isMembers(entry) && typeof entry.id === "string" && isSlug(entry.id) ? ` ("${quotable(entry.id)}")` : "";
  return `entry ${at + 1}${id}`;
}

function readEntry(entry: unknown, kind: EntryKind, base: URL, refuse: Refuse): RegistryEntry {
  if (!isMembers(entry)) return refuse("there is no object");
  return {
    id: slugOf(entry, "id", refuse),
    source: urlOnOrigin(entry, "source", refuse, base).href,
    ...optionalText(entry, "name", refuse),
    ...optionalText(entry, "description", refuse),
    ...(kind === "definitions" ? readKind(entry, refuse) : { type: readType(entry, refuse) }),
    ...(entry.icon === undefined ? {} : { icon: readIcon(entry.icon, base, refuse) }),
  };
}

function readKind(entry: Members, refuse: Refuse): { readonly kind?: string } {
  if (entry.kind === "") refuse('"kind" is blank');
  return optionalText(entry, "kind", refuse);
}

function readType(entry: Members, refuse: Refuse): "adapter" | "environment" {
  const { type } = entry;
  return type === "adapter" || type === "environment" ? type : refuse('"type" is neither "adapter" nor "environment"');
}

export function readIcon(icon: unknown, base: URL, refuse: Refuse): { readonly url: string; readonly hash: string } {
  if (!isMembers(icon)) return refuse('"icon" is not an object');
  const refuseField: Refuse = (fault) => refuse(`in "icon", ${fault}`);
  return { url: urlOnOrigin(icon, "url", refuseField, base).href, hash: textOf(icon, "hash", refuseField) };
}

/** As the registry gives it, blanks included. */
function optionalText<Name extends string>(
  entry: Members,
  name: Name,
  refuse: Refuse,
): { readonly [Key in Name]?: string } {
  const value = entry[name];
  if (value === undefined) return {};
  if (typeof value !== "string") return refuse(`"${name}" is not a string`);
  return { [name]: value } as { readonly [Key in Name]?: string };
}

/** An empty cursor leads nowhere: whoever followed it would be refused. */
function readCursor(cursor: unknown, refuse: Refuse): string | null {
  if (cursor === undefined || cursor === null || cursor === "") return null;
  return typeof cursor === "string" ? cursor : refuse('"nextCursor" is neither a string nor null');
}
