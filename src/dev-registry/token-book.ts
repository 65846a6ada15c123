/** The tokens handed out: random, each with its own end, revocable. */
import { randomBytes } from "node:crypto";

export type TokenState = "valid" | "expired" | "revoked" | "unknown";

/** A fixture that is left running must not fill the memory; the oldest are forgotten. */
const tokensMax = 10_000;

export class TokenBook {
  readonly #tokens = new Map<string, { readonly expiresAt: number; revoked: boolean }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  issue(lifetimeSeconds: number): string {
    const token = `dev_${randomBytes(24).toString("base64url")}`;
    this.#tokens.set(token, { expiresAt: this.#now() + lifetimeSeconds * 1_000, revoked: false });
    const [oldest] = this.#tokens.keys();
    if (this.#tokens.size > tokensMax && oldest !== undefined) this.#tokens.delete(oldest);
    return token;
  }

  stateOf(token: string): TokenState {
    const known = this.#tokens.get(token);
    if (known === undefined) return "unknown";
    if (known.revoked) return "revoked";
    return this.#now() < known.expiresAt ? "valid" : "expired";
  }

  /** Without a token: all that were issued so far. */
  revoke(token?: string): void {
    for (const [text, known] of this.#tokens) if (token === undefined || token === text) known.revoked = true;
  }
}
