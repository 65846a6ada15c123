/** A package in its place: proved against its seal whenever it is opened, and read through it. */
import { lstat } from "node:fs/promises";
import { Failure, isFailure } from "../errors/failure.ts";
import type { ModulePackage } from "../ports/packages.ts";
import { isDiskFault } from "./disk-fault.ts";
import { manifestPath, type ReadManifest, readManifest, requireManifestBytes } from "./manifest.ts";
import type { Place } from "./place.ts";
import { quoted, refuse } from "./refusal.ts";
import { type FileSeals, readSeal, readSealed, sealProblem } from "./seal.ts";

/** Rejects with Failure only: not_found; invalid_request when it is damaged, unreadable or not for this version of the server. */
export function openSealed(place: Place, serverVersion: string): Promise<ModulePackage> {
  return orFailure(place, async () => {
    await requireFolder(place);
    const seals = await sealsOf(place);
    const problem = await sealProblem(place.contents, seals);
    if (problem !== undefined) broken(place, problem);
    const { manifest } = await readSealedManifest(place.contents, seals, serverVersion);
    if (manifest.id !== place.id) broken(place, `it is one of module ${quoted(manifest.id)}`);
    return { manifest, hash: place.hash, folder: place.contents };
  });
}

/** Undefined when it has none. Rejects as `openSealed` does, but proves only what it reads. */
export function readSealedIcon(place: Place, serverVersion: string): Promise<Uint8Array | undefined> {
  return orFailure(place, async () => {
    await requireFolder(place);
    const seals = await sealsOf(place);
    const { iconPath } = await readSealedManifest(place.contents, seals, serverVersion);
    if (iconPath === undefined) return undefined;
    return (await readSealed(place.contents, iconPath, seals)) ?? broken(place, "its icon is missing or was changed");
  });
}

/** Throws Failure invalid_request. */
export async function readSealedManifest(
  contents: string,
  seals: FileSeals,
  serverVersion: string,
): Promise<ReadManifest> {
  requireManifestBytes(seals.get(manifestPath)?.bytes ?? 0);
  const source = await readSealed(contents, manifestPath, seals);
  return readManifest(source ?? refuse("package.json is missing or was changed"), seals, serverVersion);
}

async function requireFolder({ id, hash, root }: Place): Promise<void> {
  const found = await lstat(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new Failure("not_found", `There is no package "${hash}" of module "${id}"`);
    throw error;
  });
  if (!found.isDirectory()) refuse(`The package "${hash}" of module "${id}" is damaged: it is no folder`);
}

async function sealsOf(place: Place): Promise<FileSeals> {
  return (await readSeal(place.seal, place.hash)) ?? broken(place, "its seal is missing or damaged");
}

function broken({ id, hash }: Place, problem: string): never {
  refuse(`The package "${hash}" of module "${id}" is damaged: ${problem}`);
}

async function orFailure<Result>({ id, hash }: Place, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isFailure(error)) throw error;
    const reason = isDiskFault(error) ? error.code : String(error);
    return refuse(`The package "${hash}" of module "${id}" cannot be read: ${reason}`, error);
  }
}
