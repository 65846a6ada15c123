/**
 * An archive into a new folder. What the archive says of modes, owners and times is not believed: files get 0644, folders 0755. The folder
 * is ours alone and holds no links, so a path that passed `pathProblem` cannot lead out of it.
 */
import { createHash } from "node:crypto";
import { chmod, type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { packageUnpackedBytesMax } from "../limits.ts";
import { readArchive } from "./archive.ts";
import { PathTable } from "./path-table.ts";
import { refuseSize } from "./refusal.ts";
import type { FileSeal, FileSeals } from "./seal.ts";

const fileMode = 0o644;
const folderMode = 0o755;

/**
 * @param folder exists and is empty. Part of the archive is in it when this rejects.
 * @throws Failure invalid_request, too_large; whatever the disk refuses as it is.
 */
export async function unpack(archive: Uint8Array, folder: string): Promise<FileSeals> {
  const table = new PathTable();
  const seals = new Map<string, FileSeal>();
  let bytesLeft = packageUnpackedBytesMax;
  await readArchive(archive, async (entry, content) => {
    bytesLeft -= entry.bytes;
    if (bytesLeft < 0) refuseSize(`The archive unpacks to more than the ${packageUnpackedBytesMax} bytes allowed`);
    await makeFolders(folder, entry.kind === "file" ? table.addFile(entry.path) : table.addFolder(entry.path));
    if (entry.kind === "file") seals.set(entry.path, await writeFile(join(folder, entry.path), content));
  });
  return seals;
}

async function makeFolders(folder: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) await makeFolder(join(folder, path));
}

/** Modes hold whatever the umask of the server is. */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, folderMode);
}

async function writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<FileSeal> {
  const file = await open(path, "wx", fileMode);
  try {
    await file.chmod(fileMode);
    return await fill(file, content);
  } finally {
    await file.close();
  }
}

async function fill(file: FileHandle, content: AsyncIterable<Uint8Array>): Promise<FileSeal> {
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const piece of content) {
    digest.update(piece);
    bytes += piece.length;
    await file.writeFile(piece);
  }
  return { bytes, sha256: digest.digest("hex") };
}
