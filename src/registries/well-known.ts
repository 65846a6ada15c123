/** `/.well-known/registry.json`: what a registry says about itself. Always at the root of the origin, whatever the base URL's path. */
import type { Advertisement, EntryKind } from "../ports/registry-reader.ts";
import { readAdvertisedAuth } from "./advertised-auth.ts";
import { isMembers, type Members, type Refuse, readObject, refuseFor, slugOf, urlOnOrigin } from "./foreign-json.ts";

export function wellKnownUrl(baseUrl: string): string {
  return new URL("/.well-known/registry.json", baseUrl).href;
}

/**
 * @param from where the document came from after redirects: relative URLs start there, and no capability leaves its origin.
 * @throws Failure upstream_failed naming what is wrong.
 */
export function readWellKnown(bytes: Uint8Array, from: URL): Advertisement {
  const what = `The well-known document of "${from.host}"`;
  const document = readObject(bytes, what);
  const refuse = refuseFor(what);
  return {
    id: slugOf(document, "id", refuse),
    definitions: readCapability(document, "definitions", from, refuse),
    modules: readCapability(document, "modules", from, refuse),
    auth: readAdvertisedAuth(document.auth, refuse),
  };
}

/** Version 1 is the only one there is so far; a registry that offers later ones beside it is no less usable. */
function readCapability(document: Members, kind: EntryKind, from: URL, refuse: Refuse): string | null {
  const versions = document[kind];
  if (versions === undefined) return null;
  if (!isMembers(versions)) return refuse(`"${kind}" is not an object`);
  if (versions.v1 === undefined) return null;
  return urlOnOrigin(versions, "v1", (fault) => refuse(`in "${kind}", ${fault}`), from).href;
}
