/** Module packages on disk: proved, unpacked into folders of their own, and found again. It knows nothing of what they do. */
export type ModuleType = "adapter" | "environment";

/** What a package says of itself: `version` of its package.json, the rest of the member `troupe`. */
export interface PackageManifest {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly type: ModuleType;
  readonly description: string;
  /** Range of server versions it runs in. */
  readonly engines: string;
  /** File to load, relative to the folder. */
  readonly main: string;
  readonly hasIcon: boolean;
}

export interface ModulePackage {
  readonly manifest: PackageManifest;
  /** SHA-256 of the archive, lower-case hex. */
  readonly hash: string;
  /** Absolute; read-only by convention: nothing of ours writes into it after unpacking. */
  readonly folder: string;
}

export interface Packages {
  /**
   * Proves the digest before anything is unpacked, unpacks safely, checks the manifest. The same bytes again give the same folder.
   * Rejects with Failure: invalid_request (what is wrong with it), too_large, timeout, unavailable (what the disk says), conflict (others
   * keep adding and removing the same one), overloaded (too many are being added).
   */
  add(archive: Uint8Array, hash: string): Promise<ModulePackage>;
  /** What is there now. Rejects with Failure not_found (no folder) or invalid_request (broken), saying why. */
  open(id: string, hash: string): Promise<ModulePackage>;
  /** Bytes of the icon; undefined when the package has none. */
  icon(modulePackage: ModulePackage): Promise<Uint8Array | undefined>;
  remove(id: string, hash: string): Promise<void>;
  /** Removes every folder that is not among these, such as those of an install that a crash cut off. */
  keepOnly(kept: readonly { readonly id: string; readonly hash: string }[]): Promise<void>;
}
