/**
 * How the fixture behaves, as plain data that a test may change while it runs. The defaults are an honest, open registry; every
 * other value is one way in which registries differ or go wrong.
 */
import type { Fault } from "./faults.ts";
import type { RouteName } from "./routes.ts";

export type AuthMode = "none" | "apikey" | "oauth2";

export interface Scope {
  readonly id: string;
  readonly description?: string;
}

/** What is advertised while something else is enforced: other values, another method, or nothing at all. */
export type Drift = "off" | "values" | "type" | "removed";

/** Well-formed HTTP with untrue or broken content. */
export type Lie =
  /** The advertisement points to `foreignOrigin`. */
  | "off-origin-capability"
  /** The advertisement points beside the base path, to a folder whose name begins the same; anonymous there. */
  | "sibling-path"
  | "page-without-entries"
  | "repeated-cursor"
  | "entry-without-id"
  | "entry-without-source"
  | "off-origin-source"
  | "off-origin-icon"
  /** Of downloads. */
  | "wrong-hash"
  | "no-hash"
  | "wrong-icon-hash"
  /** The descriptor also lists versions that are not semver. */
  | "odd-versions"
  /** `latestVersion` is not among the versions. */
  | "missing-latest";

export interface Behaviour {
  /** As advertised. */
  readonly id: string;
  readonly auth: AuthMode;
  readonly headerName: string;
  readonly apiKey: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Advertised, and the only ones a token can be had for. An empty list is not advertised at all. */
  readonly scopes: readonly Scope[];
  readonly tokenLifetimeSeconds: number;
  /** How the token answer tells the lifetime: 3600, "3600", or not at all. */
  readonly expiresIn: "number" | "text" | "absent";
  readonly refreshToken: "absent" | "sent";
  readonly drift: Drift;
  /** Sent in place of the advertised `auth`, as it is; undefined: what `auth` and `drift` say. */
  readonly advertisedAuth: unknown;
  /** Generated entries after the real ones, of each kind: hundreds make many pages. */
  readonly samples: number;
  /** Where downloads are said to be; null: here. Paths stay the same, so another fixture can serve them. */
  readonly downloadOrigin: string | null;
  /** Where the off-origin lies point to. */
  readonly foreignOrigin: string;
  readonly lies: readonly Lie[];
  readonly faults: Readonly<Partial<Record<RouteName, Fault>>>;
}

/** Credentials for development, printed at start: they protect nothing. */
export const defaultBehaviour: Behaviour = {
  id: "dev-registry",
  auth: "none",
  headerName: "X-Dev-Registry-Key",
  apiKey: "dev-registry-key",
  clientId: "dev-client",
  clientSecret: "dev-secret",
  scopes: [
    { id: "definitions:read", description: "Browse and download service definitions" },
    { id: "modules:read", description: "Browse and download modules" },
  ],
  tokenLifetimeSeconds: 3_600,
  expiresIn: "number",
  refreshToken: "absent",
  drift: "off",
  advertisedAuth: undefined,
  samples: 0,
  downloadOrigin: null,
  foreignOrigin: "http://registry.invalid",
  lies: [],
  faults: {},
};
