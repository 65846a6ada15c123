/**
 * The paths of the fixture. Discovery is at the root of the origin; everything else is below the base path:
 *
 *   /.well-known/registry.json
 *   BASE/oauth/token
 *   BASE/v1/{definitions,modules}                     a page
 *   BASE/v1/{definitions,modules}/ID                  the descriptor of an entry
 *   BASE/v1/{definitions,modules}/ID/icon.png
 *   BASE/v1/{definitions,modules}/ID/VERSION/FILE     a download
 *
 * With a base path, BASE-sibling/v1/… answers the same without asking for credentials: a client must not offer any there.
 */
const routeNames = [
  "advertisement",
  "token",
  "definitions",
  "modules",
  "descriptor",
  "download",
  "icon",
  "unknown",
] as const;

export type RouteName = (typeof routeNames)[number];
export type EntryKind = "definitions" | "modules";

export type Route =
  | { readonly name: "advertisement" }
  | { readonly name: "token" }
  | { readonly name: "unknown" }
  | EntryRoute;

export type EntryRoute = EntryPlace &
  (
    | { readonly name: "definitions" }
    | { readonly name: "modules" }
    | { readonly name: "descriptor"; readonly id: string }
    | { readonly name: "icon"; readonly id: string }
    | { readonly name: "download"; readonly id: string; readonly version: string; readonly fileName: string }
  );

interface EntryPlace {
  readonly kind: EntryKind;
  /** The base path, or its sibling: links in the answer stay there. */
  readonly base: string;
  readonly isProtected: boolean;
}

export const wellKnownPath = "/.well-known/registry.json";

export const paths = {
  token: (base: string) => `${base}/oauth/token`,
  driftToken: (base: string) => `${base}/oauth/drift-token`,
  page: (base: string, kind: EntryKind) => `${base}/v1/${kind}`,
  descriptor: (base: string, kind: EntryKind, id: string) => `${base}/v1/${kind}/${id}`,
  icon: (base: string, kind: EntryKind, id: string) => `${base}/v1/${kind}/${id}/icon.png`,
  download: (base: string, kind: EntryKind, id: string, version: string, fileName: string) =>
    `${base}/v1/${kind}/${id}/${version}/${fileName}`,
};

/** `/some/path` → `/some/path-sibling`: what a comparison by prefix alone would take for a part of it. */
export function siblingOf(basePath: string): string {
  return `${basePath}-sibling`;
}

export function routeOf(path: string, basePath: string): Route {
  if (path === wellKnownPath) return { name: "advertisement" };
  if (path === paths.token(basePath)) return { name: "token" };
  return (
    entryRoute(path, basePath, true) ??
    (basePath === "" ? undefined : entryRoute(path, siblingOf(basePath), false)) ?? { name: "unknown" }
  );
}

function entryRoute(path: string, base: string, isProtected: boolean): EntryRoute | undefined {
  const match = /^\/v1\/(definitions|modules)(?:\/([^/]+)(?:\/([^/]+)(?:\/([^/]+))?)?)?$/.exec(
    path.startsWith(base) ? path.slice(base.length) : "",
  );
  if (match === null) return undefined;
  const kind = match[1] as EntryKind;
  const [, , id, part, fileName] = match;
  const place = { kind, base, isProtected };
  if (id === undefined) return { ...place, name: kind };
  if (part === undefined) return { ...place, name: "descriptor", id };
  if (fileName !== undefined) return { ...place, name: "download", id, version: part, fileName };
  return part === "icon.png" ? { ...place, name: "icon", id } : undefined;
}
