/** Pages of entries and the descriptors of single ones, as the registry tells them. */
import type { Behaviour, Lie } from "./behaviour.ts";
import type { Offer, Release } from "./offers/offer.ts";
import { errorReply, jsonReply, type Reply } from "./reply.ts";
import { type EntryKind, paths } from "./routes.ts";

export interface Listing {
  readonly kind: EntryKind;
  /** Links in the answer are below it. */
  readonly base: string;
  readonly origin: string;
  readonly behaviour: Behaviour;
}

const limitDefault = 50;
const limitMax = 200;
const wrongHash = "0".repeat(64);

/** Text is looked for in id, name and description; kind and type must be equal; a larger limit is cut to 200. */
export function pageReply(offers: readonly Offer[], query: URLSearchParams, listing: Listing): Reply {
  const limit = query.get("limit") ?? String(limitDefault);
  if (!/^[1-9][0-9]{0,8}$/.test(limit)) {
    return errorReply(400, "invalid_request", '"limit" must be a whole number above 0');
  }
  const cursor = query.get("cursor");
  const start = cursor === null ? 0 : positionOf(cursor);
  if (start === undefined) return errorReply(400, "invalid_cursor", "The cursor is not one of this registry");
  const { kind, behaviour } = listing;
  const found = offers.filter((offer) => matches(offer, query));
  const end = start + Math.min(Number(limit), limitMax);
  const isLying = liar(behaviour);
  const entries = found.slice(start, end).map((offer, index) => entryOf(offer, listing, index === 0));
  const honestCursor = end < found.length ? cursorOf(end) : null;
  const nextCursor = isLying("repeated-cursor") ? cursorOf(0) : honestCursor;
  return jsonReply(200, isLying("page-without-entries") ? { nextCursor } : { [kind]: entries, nextCursor });
}

export function descriptorReply(offer: Offer, listing: Listing): Reply {
  const isLying = liar(listing.behaviour);
  const versions = offer.releases.map((release) => [release.version, versionOf(offer, release, listing)] as const);
  const odd = isLying("odd-versions") ? ["latest", "1.0", "v2.0.0", "01.2.3", ""] : [];
  return jsonReply(200, {
    id: offer.id,
    latestVersion: isLying("missing-latest") ? "99.0.0" : offer.latestVersion,
    versions: Object.fromEntries([...versions, ...odd.map((version) => [version, versions[0]?.[1]])]),
  });
}

/** Faults of entries are put into the first one of a page: one bad entry must be enough. */
function entryOf(offer: Offer, listing: Listing, isFirst: boolean): Record<string, unknown> {
  const { kind, base, behaviour } = listing;
  const isLying = liar(behaviour);
  const sourceOrigin = isFirst && isLying("off-origin-source") ? behaviour.foreignOrigin : "";
  return {
    ...(isFirst && isLying("entry-without-id") ? {} : { id: offer.id }),
    ...(isFirst && isLying("entry-without-source")
      ? {}
      : { source: `${sourceOrigin}${paths.descriptor(base, kind, offer.id)}` }),
    name: offer.name,
    description: offer.description,
    ...(offer.kind === undefined ? {} : { kind: offer.kind }),
    ...(offer.type === undefined ? {} : { type: offer.type }),
    icon: iconOf(offer, listing, isFirst && isLying("off-origin-icon") ? behaviour.foreignOrigin : ""),
  };
}

function versionOf(offer: Offer, release: Release, listing: Listing): Record<string, unknown> {
  const { kind, base, origin, behaviour } = listing;
  const isLying = liar(behaviour);
  const path = paths.download(base, kind, offer.id, release.version, release.fileName);
  return {
    downloadUrl: `${behaviour.downloadOrigin ?? origin}${path}`,
    ...(isLying("no-hash") || release.hash === null ? {} : { hash: isLying("wrong-hash") ? wrongHash : release.hash }),
    ...(offer.kind === undefined ? {} : { kind: offer.kind }),
    ...(release.engines === undefined ? {} : { engines: release.engines }),
    icon: iconOf(offer, listing, ""),
  };
}

/** Relative to the origin when honest. */
function iconOf(offer: Offer, { kind, base, behaviour }: Listing, iconOrigin: string) {
  const hash = behaviour.lies.includes("wrong-icon-hash") ? wrongHash : offer.icon.hash;
  return { url: `${iconOrigin}${paths.icon(base, kind, offer.id)}`, hash };
}

function matches(offer: Offer, query: URLSearchParams): boolean {
  const text = (query.get("query") ?? "").toLowerCase();
  return (
    [offer.id, offer.name, offer.description].some((field) => field.toLowerCase().includes(text)) &&
    ["kind", "type"].every((name) => !query.has(name) || query.get(name) === offer[name as "kind" | "type"])
  );
}

function liar({ lies }: Behaviour): (lie: Lie) => boolean {
  return (lie) => lies.includes(lie);
}

/** Opaque to clients, and nothing they could build from a number by accident. */
function cursorOf(position: number): string {
  return Buffer.from(`at:${position}`).toString("base64url");
}

function positionOf(cursor: string): number | undefined {
  const digits = /^at:([0-9]{1,9})$/.exec(Buffer.from(cursor, "base64url").toString("latin1"))?.[1];
  return digits === undefined || cursorOf(Number(digits)) !== cursor ? undefined : Number(digits);
}
