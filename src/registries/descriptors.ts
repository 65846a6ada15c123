/** Entry descriptors: the versions of one definition or module, and where their bytes are. */
import { valid } from "semver";
import type { DescribedVersion, Descriptor } from "../ports/registry-reader.ts";
import {
  isMembers,
  type Members,
  quotable,
  type Refuse,
  readObject,
  refuseFor,
  textOf,
  urlOf,
} from "./foreign-json.ts";
import { readIcon } from "./pages.ts";

/**
 * Versions that are no semantic versions are left out: nothing could choose them. A fault inside a version that can be chosen
 * is a fault of the descriptor.
 * @param source what relative URLs start from.
 * @throws Failure upstream_failed naming the version.
 */
export function readDescriptor(bytes: Uint8Array, source: string, what: string): Descriptor {
  const document = readObject(bytes, what);
  const refuse = refuseFor(what);
  if (!isMembers(document.versions))
    return refuse(`"versions" is ${document.versions === undefined ? "missing" : "not an object"}`);
  const base = new URL(source);
  // Without a prototype, so that a version somebody asks for is found only if it is described.
  const versions: Record<string, DescribedVersion> = Object.create(null);
  for (const [version, described] of Object.entries(document.versions)) {
    if (!isVersion(version)) continue;
    versions[version] = readVersion(described, base, (fault) => refuse(`in version "${quotable(version)}", ${fault}`));
  }
  const latestVersion = textOf(document, "latestVersion", refuse);
  if (versions[latestVersion] === undefined) refuse('"latestVersion" is not among its valid versions');
  return { latestVersion, versions };
}

/** As semver.org writes them: the library also takes "v1.2.3" and "= 1.2.3". */
function isVersion(text: string): boolean {
  return /^[0-9]\S*$/.test(text) && valid(text) !== null;
}

function readVersion(described: unknown, base: URL, refuse: Refuse): DescribedVersion {
  if (!isMembers(described)) return refuse("there is no object");
  return {
    // May lead anywhere: credentials do not, and modules are held to their hash.
    downloadUrl: urlOf(described, "downloadUrl", refuse, base).href,
    hash: described.hash === undefined ? null : readHash(described, refuse),
    kind: described.kind === undefined ? null : textOf(described, "kind", refuse),
    engines: readEngines(described.engines, refuse),
    icon: described.icon === undefined ? null : readIcon(described.icon, base, refuse),
  };
}

function readHash(described: Members, refuse: Refuse): string {
  const hash = textOf(described, "hash", refuse).toLowerCase();
  return /^[0-9a-f]{64}$/.test(hash) ? hash : refuse('"hash" is not a SHA-256 in hexadecimal');
}

/** A range, or, as package manifests write it, an object of ranges by host: ours is `troupe`. */
function readEngines(engines: unknown, refuse: Refuse): string | null {
  if (engines === undefined) return null;
  const range = isMembers(engines) ? engines.troupe : engines;
  if (range === undefined) return null;
  return typeof range === "string" ? range : refuse('"engines" is neither a range nor an object of ranges');
}
