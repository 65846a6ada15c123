/** Which version of a registry entry is taken: the one asked for, or the newest within the constraint. */
import semver from "semver";
import { Failure } from "../errors/failure.ts";
import type { DescribedVersion, Descriptor } from "../ports/registry-reader.ts";
import { newestWithin } from "./constraint.ts";

export interface Release extends DescribedVersion {
  readonly version: string;
}

export interface Wanted {
  readonly version?: string | undefined;
  readonly constraint: string | null;
}

/** `what` opens the error: `Definition "petstore"`. Throws Failure not_found. */
export function chooseRelease(descriptor: Descriptor, { version, constraint }: Wanted, what: string): Release {
  const chosen = version ?? newestWithin(Object.keys(descriptor.versions), descriptor.latestVersion, constraint);
  const release = chosen === null ? undefined : descriptor.versions[chosen];
  if (chosen === null || release === undefined) {
    const wanted = chosen === null ? "within the constraint" : `"${chosen}"`;
    throw new Failure("not_found", `${what} has no version ${wanted}`);
  }
  return { ...release, version: chosen };
}

/** A version that is no semver, as documents may have, is older than any that is. */
export function isNewer(version: string, than: string): boolean {
  return semver.valid(than) === null || semver.gt(version, than);
}
