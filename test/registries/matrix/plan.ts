/** One story of the matrix: a registry with a credential, and the hops that its answers lead to. */
import { randomBytes } from "node:crypto";
import type { RegistryCredential } from "../../../src/ports/registry-reader.ts";

export const credentialKinds = ["apiKey", "apiKey under an odd name", "oauth2"] as const;
export type CredentialKind = (typeof credentialKinds)[number];

/** What the reader is asked for. The rules are the same for all of them. */
export const wants = ["page", "descriptor", "artifact"] as const;
export type Want = (typeof wants)[number];

export interface PlannedHop {
  /** Absolute, as resolved, user info included; without query on the first, where the reader adds its own. */
  readonly url: string;
  /** How this hop answers; absent on the last, which answers a page. */
  readonly redirect?: { readonly status: number; readonly location: string };
}

export interface Plan {
  readonly name: string;
  /** What failures are grouped by. */
  readonly group: string;
  readonly base: string;
  readonly kind: CredentialKind;
  readonly headerName: string;
  /** Absent: a page. */
  readonly want?: Want;
  readonly hops: readonly PlannedHop[];
  /** Names beyond the classes of addresses. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  readonly flipsFrom?: "safe" | "unsafe";
  /** The client may decline to follow to these hops (0-based), as long as nothing is sent. */
  readonly mayStopBefore?: readonly number[];
  /** Two readings of the specification are possible: only told, never counted. */
  readonly isOpen?: boolean;
}

const oddNames = ["x!odd#key", "X_Under.Score", "Zz~Auth", "accept-language", "x-forwarded-for", "9"];

export function headerNameFor(kind: CredentialKind, turn: number): string {
  if (kind === "apiKey under an odd name") return oddNames[turn % oddNames.length] ?? "x!odd#key";
  return kind === "apiKey" ? "X-API-Key" : "Authorization";
}

export interface Credential {
  readonly secret: string;
  readonly credential: RegistryCredential;
  /** Name in lower case, and exact value, of the one header that carries it. */
  readonly header: readonly [name: string, value: string];
}

/** A new secret each time, with the characters that encodings change. */
export function issueCredential(kind: CredentialKind, headerName: string): Credential {
  const secret = `k+/=%~${randomBytes(18).toString("base64")}`;
  if (kind === "oauth2") {
    return {
      secret,
      credential: { type: "oauth2", accessToken: secret },
      header: ["authorization", `Bearer ${secret}`],
    };
  }
  return {
    secret,
    credential: { type: "apiKey", headerName, key: secret },
    header: [headerName.toLowerCase(), secret],
  };
}
