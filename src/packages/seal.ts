/**
 * What a package was when it was unpacked: every file with its size and digest, in one small file beside the package, where no archive can
 * put anything. Opening a package proves all of it, so what was changed, emptied or half removed since is noticed and named. That is cheap
 * enough to leave nothing out: whoever loads the module is about to read most of it anyway.
 */
import { createHash, hash as digestOf } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { packageFilesTogetherMax, packageSealBytesMax } from "../limits.ts";
import { inLanes } from "./lanes.ts";
import { quoted } from "./refusal.ts";

export interface FileSeal {
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** By path relative to the package. */
export type FileSeals = ReadonlyMap<string, FileSeal>;

/** Rises when the file means something else. */
const format = 1;
const pieceBytes = 256 * 1024;

const sealSchema = z.object({
  format: z.literal(format),
  /** Of the archive. */
  hash: z.string(),
  files: z.array(z.tuple([z.string(), z.int().min(0), z.string()])),
});

export function sealText(hash: string, files: FileSeals): string {
  const seal: z.infer<typeof sealSchema> = {
    format,
    hash,
    files: [...files].map(([path, { bytes, sha256 }]) => [path, bytes, sha256]),
  };
  return JSON.stringify(seal);
}

/** Undefined: there is none for that archive, or it is damaged. */
export async function readSeal(path: string, hash: string): Promise<FileSeals | undefined> {
  const text = await readBounded(path, packageSealBytesMax).catch(undefinedIfMissing);
  const seal = sealSchema.safeParse(jsonOf(text?.toString() ?? ""));
  if (!seal.success || seal.data.hash !== hash) return undefined;
  return new Map(seal.data.files.map(([file, bytes, sha256]) => [file, { bytes, sha256 }]));
}

/** What is not as it was sealed, as the end of a sentence about the package; undefined: nothing. */
export async function sealProblem(root: string, seals: FileSeals): Promise<string | undefined> {
  const missing = new Set(seals.keys());
  const stray = await findStray(root, "", missing);
  if (stray !== undefined) return `${quoted(stray)} does not belong to it`;
  for (const path of missing) return `its file ${quoted(path)} is missing`;
  let changed: string | undefined;
  await inLanes(seals, packageFilesTogetherMax, async ([path, seal]) => {
    if (changed === undefined && !(await isAsSealed(join(root, path), seal))) changed = path;
  });
  return changed === undefined ? undefined : `its file ${quoted(changed)} was changed`;
}

/** Undefined: it is not there, or not as it was sealed. */
export async function readSealed(root: string, path: string, seals: FileSeals): Promise<Buffer | undefined> {
  const seal = seals.get(path);
  if (seal === undefined) return undefined;
  const bytes = await readBounded(join(root, path), seal.bytes).catch(undefinedIfMissing);
  return bytes !== undefined && digestOf("sha256", bytes) === seal.sha256 ? bytes : undefined;
}

/** Strikes what it finds off `missing`; answers the first that was not to be found, or is neither a file nor a folder. */
async function findStray(root: string, folder: string, missing: Set<string>): Promise<string | undefined> {
  for (const found of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = folder === "" ? found.name : `${folder}/${found.name}`;
    const stray = found.isDirectory()
      ? await findStray(root, path, missing)
      : found.isFile() && missing.delete(path)
        ? undefined
        : path;
    if (stray !== undefined) return stray;
  }
  return undefined;
}

async function isAsSealed(path: string, seal: FileSeal): Promise<boolean> {
  const digest = createHash("sha256");
  await readPieces(path, seal.bytes, (piece) => digest.update(piece));
  return digest.digest("hex") === seal.sha256;
}

/** Undefined when it is longer than that. */
async function readBounded(path: string, bytesMax: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  const bytes = await readPieces(path, bytesMax, (piece) => pieces.push(Buffer.from(piece)));
  return bytes > bytesMax ? undefined : Buffer.concat(pieces);
}

/** Answers how many bytes there were, having stopped soon after `bytesMax`. A piece is only good until `take` returns. */
async function readPieces(path: string, bytesMax: number, take: (piece: Uint8Array) => void): Promise<number> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await readAll(file, Buffer.allocUnsafe(Math.min(bytesMax + 1, pieceBytes)), bytesMax, take);
  } finally {
    await file.close();
  }
}

async function readAll(file: FileHandle, piece: Buffer, bytesMax: number, take: (piece: Uint8Array) => void) {
  let bytes = 0;
  while (bytes <= bytesMax) {
    const { bytesRead } = await file.read(piece);
    if (bytesRead === 0) break;
    bytes += bytesRead;
    take(piece.subarray(0, bytesRead));
  }
  return bytes;
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
