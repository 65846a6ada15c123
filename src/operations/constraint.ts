/** A semver range that pins what a registry may update to; null means latest. Checked before anything is stored. */
import semver from "semver";
import { z } from "zod";
import { constraintCharactersMax } from "../limits.ts";

export const constraint = z
  .string()
  // Before anything else looks at it, and then nothing else does: a range of 90,000 characters costs seconds.
  .max(constraintCharactersMax, { error: `must have at most ${constraintCharactersMax} characters`, abort: true })
  .trim()
  .min(1, "must not be blank")
  .refine((range) => semver.validRange(range) !== null, "must be a semver range")
  .meta({ description: "Semver range of versions to update to; null: the newest", example: "^1.0.0" });

/** The newest of `versions` within the range; pre-releases only when the range names one. Null: none. */
export function newestWithin(versions: readonly string[], latest: string, range: string | null): string | null {
  return range === null ? latest : semver.maxSatisfying(versions, range);
}
