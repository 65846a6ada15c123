/**
 * Where a redirect can lead: for each class the Location as it is written and the URL that it means, both by hand. Nothing here
 * resolves URLs, because that is part of what is tested.
 */
import { hosts } from "./network.ts";

export interface Place {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly otherPort: number;
}

export interface Target {
  readonly location: string;
  /** Absolute, as resolved; user info included. */
  readonly means: string;
}

/** `turn` picks one of several spellings. Bases have the path `/api`; relative ones start from `/api/hop?…`. */
type TargetClass = (place: Place, turn: number) => Target;

const evil = "evil.test";

function at(place: Place, path: string, change: Partial<Place & { userInfo: string }> = {}): string {
  const { scheme, host, port, userInfo = "" } = { ...place, ...change };
  return `${scheme}://${userInfo}${host}:${port}${path}`;
}

const straight = (url: string): Target => ({ location: url, means: url });

function pick<T>(choices: readonly [T, ...T[]], turn: number): T {
  return choices[turn % choices.length] ?? choices[0];
}

/** Spelled one way, meaning another path of the same origin. */
function path(
  place: Place,
  spellings: readonly [readonly [string, string], ...(readonly [string, string])[]],
  turn: number,
): Target {
  const [written, meant] = pick(spellings, turn);
  return { location: at(place, written), means: at(place, meant) };
}

export const targetClasses: Readonly<Record<string, TargetClass>> = {
  "same scope": (place, turn) =>
    straight(at(place, pick(["/api/next", "/api", "/api/", "/api?x=1", "/api//next"], turn))),
  "sibling path": (place, turn) =>
    straight(
      at(place, pick(["/api-evil/next", "/apix", "/ap", "/API/next", "/other/api/next", "/", "//api/next"], turn)),
    ),
  "dot path": (place, turn) =>
    path(
      place,
      [
        ["/api/../admin/next", "/admin/next"],
        ["/api/./../admin/next", "/admin/next"],
        ["/api/x/../../admin/next", "/admin/next"],
        ["/api/..", "/"],
      ],
      turn,
    ),
  "dot path into scope": (place, turn) =>
    path(
      place,
      [
        ["/other/../api/next", "/api/next"],
        ["/api/./next", "/api/next"],
        ["/api/x/../next", "/api/next"],
      ],
      turn,
    ),
  "encoded dot path": (place, turn) =>
    path(
      place,
      [
        ["/api/%2e%2e/admin/next", "/admin/next"],
        ["/api/.%2E/admin/next", "/admin/next"],
        ["/api/%2e/%2e%2e/admin/next", "/admin/next"],
      ],
      turn,
    ),
  "encoded slash": (place, turn) =>
    straight(
      at(
        place,
        pick(["/api/..%2fadmin", "/api/%2E%2E%2Fadmin", "/api/..%5cadmin", "/api/x%2F..%2Fadmin", "/api%2fnext"], turn),
      ),
    ),
  "other port": (place) => straight(at(place, "/api/next", { port: place.otherPort })),
  "other scheme": (place) => straight(at(place, "/api/next", { scheme: place.scheme === "http" ? "https" : "http" })),
  "other host": (place) => straight(at(place, "/api/next", { host: evil })),
  "look-alike host": (place, turn) =>
    straight(
      at(place, pick(["/api/next", "/api/next", "/api/next", `/?http://${place.host}/api`], turn), {
        host: pick([`${place.host}.evil.test`, `evil${place.host}`, `${place.host}.`, evil], turn),
      }),
    ),
  "user info": (place, turn) => straight(at(place, "/api/next", { userInfo: pick(["u:p@", "u@", ":p@"], turn) })),
  "user info of another host": (place) => straight(at(place, "/api/next", { userInfo: `${place.host}@`, host: evil })),
  "protocol-relative": (place) => ({
    location: `//${place.host}:${place.port}/api/next`,
    means: at(place, "/api/next"),
  }),
  "protocol-relative to another host": (place, turn) => ({
    location: `${pick(["//", "/\\", "\\\\", "\t//", "/\t/"], turn)}${evil}:${place.port}/api/next`,
    means: at(place, "/api/next", { host: evil }),
  }),
  relative: (place, turn) => {
    const [location, meant] = pick<readonly [string, string]>(
      [
        ["next", "/api/next"],
        ["./next", "/api/next"],
        ["?page=2", "/api/hop?page=2"],
        ["/api/next", "/api/next"],
        [".", "/api/"],
        ["next#part", "/api/next"],
      ],
      turn,
    );
    return { location, means: at(place, meant) };
  },
  "relative out of scope": (place, turn) => {
    const [location, meant] = pick<readonly [string, string]>(
      [
        ["../next", "/next"],
        ["/next", "/next"],
        ["..", "/"],
        ["%2e%2e/next", "/next"],
        ["../../../api-evil", "/api-evil"],
      ],
      turn,
    );
    return { location, means: at(place, meant) };
  },
  "other case of scheme and host": (place) => ({
    location: `${place.scheme.toUpperCase()}://${place.host.toUpperCase()}:${place.port}/api/next`,
    means: at(place, "/api/next"),
  }),
  "default port": (place) => ({
    location: at(place, "/api/next", { port: place.scheme === "http" ? 80 : 443 }),
    means: `${place.scheme}://${place.host}/api/next`,
  }),
  /** The hop before it was elsewhere. */
  "back into scope": (place) => straight(at(place, "/api/next")),
  "back to the origin, out of scope": (place) => straight(at(place, "/open/next")),
};

/** All names a certificate must cover. */
export const certifiedNames: readonly string[] = Object.values(hosts)
  .flatMap((host) => [host, `${host}.`, `${host}.evil.test`, `evil${host}`])
  .concat(evil);
