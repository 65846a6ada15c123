/** An archive into a sealed and synced package, in a folder that nobody looks into yet. */
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PackageManifest } from "../ports/packages.ts";
import { syncTree } from "./durable.ts";
import { manifestPath } from "./manifest.ts";
import { partsOf } from "./place.ts";
import { refuse } from "./refusal.ts";
import { type FileSeals, sealText } from "./seal.ts";
import { readSealedManifest } from "./sealed-package.ts";
import { makeFolder, unpack } from "./unpack.ts";

export interface MadePackage {
  readonly manifest: PackageManifest;
  /** To be renamed into its place. */
  readonly root: string;
}

/**
 * @param workshop an empty folder of our own, on the file system of the package's place.
 * @throws Failure invalid_request, too_large; whatever the disk refuses as it is.
 */
export async function makePackage(
  archive: Uint8Array,
  hash: string,
  workshop: string,
  serverVersion: string,
): Promise<MadePackage> {
  const unpacked = join(workshop, "unpacked");
  await makeFolder(unpacked);
  const all = await unpack(archive, unpacked);
  const top = topFolder(all);
  const files = filesWithin(top, all);
  const { root, contents, seal } = partsOf(join(workshop, "made"));
  await makeFolder(root);
  await rename(join(unpacked, top), contents);
  const { manifest } = await readSealedManifest(contents, files, serverVersion);
  await writeFile(seal, sealText(hash, files));
  await syncTree(workshop, [seal, ...[...files.keys()].map((path) => join(contents, path))]);
  return { manifest, root };
}

/** npm packs everything in `package`, other tools in a folder named for the project, or in none (""). */
function topFolder(files: FileSeals): string {
  if (files.has(manifestPath)) return "";
  const tops = new Set([...files.keys()].map((path) => path.slice(0, path.indexOf("/"))));
  const [top = ""] = tops;
  if (tops.size === 1 && files.has(`${top}/${manifestPath}`)) return top;
  return refuse("The archive has no package.json, neither at its top nor in a top folder that holds everything");
}

function filesWithin(top: string, files: FileSeals): FileSeals {
  if (top === "") return files;
  return new Map([...files].map(([path, seal]) => [path.slice(top.length + 1), seal]));
}
