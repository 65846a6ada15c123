/**
 * Module packages in a folder of their own: `<folder>/<id>/<hash>/` holds the unpacked `package` and its `seal.json`.
 *
 * 1. A package is unpacked, judged and synced in a folder `.unpacking-…` and renamed into its place last: whatever has the name of a package
 *    is whole, or was damaged later, which its seal shows. It leaves the same way, by being renamed first.
 * 2. Renames are the only steps that others can see, so any number may add and remove at once, the same package included.
 * 3. Only what can be ours is ever removed: folders named as in 1, and folders named by a hash in a folder named by an id.
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Failure, isFailure } from "../errors/failure.ts";
import { packageBytesMax, packagePlacingsMax, packagesAddedAtOnce, packagesWaitingMax } from "../limits.ts";
import type { Log } from "../ports/log.ts";
import type { ModulePackage, Packages } from "../ports/packages.ts";
import { ignoring, isDiskFault, notStored } from "./disk-fault.ts";
import { sync } from "./durable.ts";
import { type MadePackage, makePackage } from "./make-package.ts";
import { moduleIdProblem } from "./manifest.ts";
import { isPackageHash, type Place, placeOf } from "./place.ts";
import { quoted, refuse, refuseSize } from "./refusal.ts";
import { openSealed, readSealedIcon } from "./sealed-package.ts";
import { Turns } from "./turns.ts";

export interface PackagesOptions {
  /** Made when the first package is added. */
  readonly folder: string;
  /** Semver, held against `engines` whenever a package is added or opened. */
  readonly serverVersion: string;
  readonly log: Log;
}

export function openPackages(options: PackagesOptions): Packages {
  return new PackageFolder(options);
}

/** Neither can start an id, so neither is ever taken for a package. */
const unpackingPrefix = ".unpacking-";
const removingPrefix = ".removing-";

class PackageFolder implements Packages {
  readonly #folder: string;
  readonly #serverVersion: string;
  readonly #log: Log;
  readonly #turns = new Turns({
    atOnce: packagesAddedAtOnce,
    waitingMax: packagesWaitingMax,
    subject: "Cannot add a module package",
  });

  constructor({ folder, serverVersion, log }: PackagesOptions) {
    this.#folder = resolve(folder);
    this.#serverVersion = serverVersion;
    this.#log = log;
  }

  async add(archive: Uint8Array, hash: string): Promise<ModulePackage> {
    // Before the digest, which costs time for every byte.
    if (archive.length > packageBytesMax) {
      refuseSize(`The archive has ${archive.length} bytes, more than the ${packageBytesMax} allowed`);
    }
    return this.#turns.take(async () => {
      const proved = await requireDigest(archive, hash);
      try {
        return await this.#unpack(archive, proved);
      } catch (error) {
        throw isDiskFault(error) ? notStored(error) : error;
      }
    });
  }

  async open(id: string, hash: string): Promise<ModulePackage> {
    return openSealed(placeOf(this.#folder, id, hash, "not_found"), this.#serverVersion);
  }

  async icon({ manifest, hash }: ModulePackage): Promise<Uint8Array | undefined> {
    return readSealedIcon(placeOf(this.#folder, manifest.id, hash, "not_found"), this.#serverVersion);
  }

  async remove(id: string, hash: string): Promise<void> {
    const { root, module } = placeOf(this.#folder, id, hash, "invalid_request");
    await this.#discard(root);
    await removeIfEmpty(module);
  }

  /** For the start, before anything is added. What cannot be listed or removed is logged and stays: it is no reason not to start. */
  async keepOnly(kept: readonly { readonly id: string; readonly hash: string }[]): Promise<void> {
    const names = new Set(kept.map(({ id, hash }) => join(id, hash)));
    for (const name of await this.#foldersIn(this.#folder)) {
      if (name.startsWith(unpackingPrefix) || name.startsWith(removingPrefix))
        await this.#clear(join(this.#folder, name));
      else if (moduleIdProblem(name) === undefined) await this.#keepOfModule(name, names);
    }
  }

  async #keepOfModule(id: string, kept: ReadonlySet<string>): Promise<void> {
    const module = join(this.#folder, id);
    for (const hash of await this.#foldersIn(module)) {
      if (!isPackageHash(hash) || kept.has(join(id, hash))) continue;
      this.#log.info("package-removed", "A package that nothing refers to was removed", { moduleId: id, hash });
      await this.#discard(join(module, hash)).catch((error: unknown) => this.#reportLeft(join(module, hash), error));
    }
    await removeIfEmpty(module).catch((error: unknown) => this.#reportLeft(module, error));
  }

  async #unpack(archive: Uint8Array, hash: string): Promise<ModulePackage> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const workshop = await mkdtemp(join(this.#folder, unpackingPrefix));
    try {
      const made = await makePackage(archive, hash, workshop, this.#serverVersion);
      return await this.#put(made, placeOf(this.#folder, made.manifest.id, hash, "invalid_request"));
    } finally {
      await this.#clear(workshop);
    }
  }

  /** Whoever comes second finds the same package there and uses it; what is there in a damaged state makes room. */
  async #put({ manifest, root }: MadePackage, place: Place): Promise<ModulePackage> {
    for (let tries = 0; tries < packagePlacingsMax; tries += 1) {
      await mkdir(place.module, { recursive: true });
      if (await renamed(root, place.root)) {
        // Each of them may be new.
        for (const folder of [place.module, this.#folder, dirname(this.#folder)]) await sync(folder);
        return { manifest, hash: place.hash, folder: place.contents };
      }
      const there = await openSealed(place, this.#serverVersion).catch((error: unknown) =>
        this.#makeRoom(place, error),
      );
      if (there !== undefined) return there;
    }
    throw new Failure(
      "conflict",
      `Cannot put module package "${place.id}" in its place: others keep adding and removing it`,
    );
  }

  async #makeRoom({ id, root }: Place, error: unknown): Promise<undefined> {
    if (!isFailure(error)) throw error;
    if (error.kind === "not_found") return;
    this.#log.warn("package-replaced", "A damaged package makes room for the same one", { moduleId: id, error });
    await this.#discard(root);
  }

  /** Gone for others in one step. */
  async #discard(path: string): Promise<void> {
    const leaving = join(this.#folder, `${removingPrefix}${randomUUID()}`);
    await rename(path, leaving).then(() => this.#clear(leaving), ignoring("ENOENT", "ENOTDIR"));
  }

  /** What stays is found by the next start: no reason to fail what was done. */
  async #clear(path: string): Promise<void> {
    await rm(path, { recursive: true, force: true }).catch((error: unknown) => this.#reportLeft(path, error));
  }

  /** Links to folders are none. */
  async #foldersIn(folder: string): Promise<readonly string[]> {
    const found = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      if (!isDiskFault(error) || error.code !== "ENOENT") this.#reportLeft(folder, error);
      return [];
    });
    return found.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  #reportLeft(path: string, error: unknown): void {
    this.#log.warn("package-not-removed", `Folder "${path}" of a module package could not be removed`, { error });
  }
}

/** Answers the digest as folders are named. */
async function requireDigest(archive: Uint8Array, hash: string): Promise<string> {
  const expected = hash.toLowerCase();
  if (!isPackageHash(expected)) refuse(`The hash ${quoted(hash)} is not a SHA-256 in hexadecimal`);
  // In another thread: 10 MiB would hold everybody up for some 10 ms.
  const actual = Buffer.from(await crypto.subtle.digest("SHA-256", new Uint8Array(archive))).toString("hex");
  if (actual !== expected) refuse(`The archive has the SHA-256 "${actual}", and "${expected}" was expected`);
  return expected;
}

/** False: something is there already, or the folder around it was removed meanwhile. */
async function renamed(from: string, to: string): Promise<boolean> {
  const inTheWay = ignoring("ENOTEMPTY", "EEXIST", "ENOTDIR", "ENOENT");
  return rename(from, to).then(
    () => true,
    (error: unknown) => {
      inTheWay(error);
      return false;
    },
  );
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch(ignoring("ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"));
}
