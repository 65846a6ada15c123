/** What is put on offer while the fixture runs, besides what it ships: one release at a time, true or untrue. */
import { moduleFile } from "./offers/modules.ts";
import { type Offer, offer, type Release, release } from "./offers/offer.ts";
import type { EntryKind } from "./routes.ts";

interface PublishedRelease {
  /** Becomes a part of paths. */
  readonly id: string;
  /** The same id again is one more release; the same version again has other bytes in its place. */
  readonly version: string;
  readonly content: string | Buffer;
  /** As the descriptor says; the right one when not given; null: none. */
  readonly hash?: string | null;
  /** Whether it is the latest version from now on; when not given: unless it is a pre-release. A first release always is. */
  readonly isLatest?: boolean;
  /** When not given: what it was, and at first the id. */
  readonly name?: string;
  readonly description?: string;
}

export interface PublishedDefinition extends PublishedRelease {
  /** When not given: what it was, and at first `openapi@3.1.0`. */
  readonly kind?: string;
}

export interface PublishedModule extends PublishedRelease {
  /** When not given: what it was, and at first `adapter`. */
  readonly type?: "adapter" | "environment";
  /** Of the release; `>=0.1.0` when not given. */
  readonly engines?: string;
}

export interface Publications {
  readonly definitions: PublishedDefinition;
  readonly modules: PublishedModule;
}

/** What other releases of an offer say. @throws Error when id or version cannot be part of a path. */
export function publishedOffer<Kind extends EntryKind>(
  kind: Kind,
  given: Publications[Kind],
  known: Offer | undefined,
): Offer {
  for (const part of [given.id, given.version]) {
    if (!/^[A-Za-z0-9._~$+-]+$/.test(part)) throw new Error(`Cannot publish "${part}": it cannot be part of a path`);
  }
  const { id, version, isLatest = !version.includes("-"), name = known?.name ?? id } = given;
  const made = publishedRelease(kind, given);
  const others = known?.releases.filter((release) => release.version !== version) ?? [];
  return offer({
    id,
    name,
    description: given.description ?? known?.description ?? `Published as "${id}"`,
    ...(kind === "modules"
      ? { type: (given as PublishedModule).type ?? known?.type ?? "adapter" }
      : { kind: (given as PublishedDefinition).kind ?? known?.kind ?? "openapi@3.1.0" }),
    latestVersion: isLatest || known === undefined ? version : known.latestVersion,
    releases: [...others, made],
  });
}

function publishedRelease(kind: EntryKind, given: PublishedDefinition | PublishedModule): Release {
  const { id, version, content } = given;
  const hash = given.hash === undefined ? {} : { hash: given.hash };
  if (kind === "definitions") {
    const fileName = content.toString().trimStart().startsWith("{") ? "openapi.json" : "openapi.yaml";
    const mediaType = `application/${fileName.endsWith(".json") ? "json" : "yaml"}`;
    return release({ version, fileName, mediaType, content, ...hash });
  }
  const { engines = ">=0.1.0" } = given as PublishedModule;
  return release({ version, ...moduleFile(id, version), content, engines, ...hash });
}

/** Without the release; undefined when none is left. The last one that is left takes the place of the latest. */
export function withdrawn(known: Offer, version: string | undefined): Offer | undefined {
  const releases = version === undefined ? [] : known.releases.filter((release) => release.version !== version);
  const last = releases.at(-1);
  if (last === undefined) return undefined;
  return { ...known, releases, latestVersion: known.latestVersion === version ? last.version : known.latestVersion };
}
