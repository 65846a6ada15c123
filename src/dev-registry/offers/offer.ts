/** One thing the registry offers, in several releases. */
import { createHash } from "node:crypto";
import { pngIcon } from "./png-icon.ts";

export interface Offer {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** Definitions only. */
  readonly kind?: string;
  /** Modules only. */
  readonly type?: "adapter" | "environment";
  readonly icon: { readonly bytes: Buffer; readonly hash: string };
  /** Not the highest: pre-releases may follow it. */
  readonly latestVersion: string;
  readonly releases: readonly Release[];
}

export interface Release {
  readonly version: string;
  readonly fileName: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
  /** As the descriptor says: SHA-256 of the bytes in lower-case hex, unless it was published otherwise; null: left out. */
  readonly hash: string | null;
  /** Modules only: a semver range of the server. */
  readonly engines?: string;
}

export function offer(given: Omit<Offer, "icon">): Offer {
  const bytes = pngIcon(given.id);
  return { ...given, icon: { bytes, hash: sha256(bytes) } };
}

export function release(
  given: Omit<Release, "hash" | "bytes"> & { readonly content: string | Buffer; readonly hash?: string | null },
): Release {
  const { content, hash, ...others } = given;
  const bytes = Buffer.from(content);
  return { ...others, bytes, hash: hash === undefined ? sha256(bytes) : hash };
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
