/**
 * A backup as a file: proved as a whole, then read part by part.
 *
 *   const { header, counts } = await proveBackup("/backups/monday.troupe")
 *   for await (const part of readParts("/backups/monday.troupe")) …
 *
 * Proving comes first: its checksum covers every byte, so what is read after it can only be as it was written. Reading judges the parts all
 * the same: a file may have been made by somebody else.
 */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { backupHeaderBytesMax, backupKeyBytesMax } from "../limits.ts";
import type { BackupCounts, BackupHeader } from "../ports/maintenance.ts";
import type { RawEntry } from "../ports/snapshot.ts";
import { BackupError, backupExitCodes } from "./backup-error.ts";
import {
  backupFormat,
  frameHeadBytes,
  magic,
  magicWord,
  type PackedPackage,
  readFrameHead,
  readHeader,
  readNamed,
  readPackage,
  readTrailer,
  trailerBytes,
  trailerBytesDigested,
} from "./snapshot-format.ts";

export interface BackupSummary {
  readonly header: BackupHeader;
  readonly counts: BackupCounts;
  /** Lower-case hex. */
  readonly sha256: string;
}

export type BackupPart =
  | { readonly kind: "header"; readonly header: BackupHeader }
  | { readonly kind: "package"; readonly packed: PackedPackage }
  | { readonly kind: "file"; readonly path: string; readonly content: Buffer }
  | { readonly kind: "entry"; readonly entry: RawEntry };

const pieceBytes = 1024 * 1024;

/**
 * @param name what to call the file in errors.
 * @throws BackupError naming what is wrong: no backup, another format, incomplete, changed; the reason of `signal`.
 */
export async function proveBackup(file: string, name = file, signal?: AbortSignal): Promise<BackupSummary> {
  const source = await FileSource.open(file, name);
  try {
    await requireMagic(source, name);
    const trailer = await requireTrailer(source, name);
    source.moveTo(0);
    const digest = createHash("sha256");
    for (let left = source.size - trailerBytes + trailerBytesDigested; left > 0; ) {
      signal?.throwIfAborted();
      const piece = await source.take(Math.min(left, pieceBytes));
      digest.update(piece);
      left -= piece.length;
    }
    if (digest.digest("hex") !== trailer.sha256) {
      throw refused(name, "it was changed since it was written: it does not have the SHA-256 that it ends with");
    }
    source.moveTo(magic.length);
    const header = await requireHeader(source, name);
    return { header, ...trailer };
  } finally {
    await source.close();
  }
}

/** In the order of the file, and with the counts of its trailer. Throws BackupError. */
export async function* readParts(file: string): AsyncGenerator<BackupPart, void, undefined> {
  const source = await FileSource.open(file, file);
  try {
    await requireMagic(source, file);
    const { counts } = await requireTrailer(source, file);
    source.moveTo(magic.length);
    yield { kind: "header", header: await requireHeader(source, file) };
    const found = { entries: 0, packages: 0, files: 0 };
    while (source.at < source.size - trailerBytes) {
      const part = partOf(await nextFrame(source, file), file);
      if (part.kind === "entry") found.entries += 1;
      if (part.kind === "package") found.packages += 1;
      if (part.kind === "file") found.files += 1;
      yield part;
    }
    const { entries, packages, files } = counts;
    if (entries !== found.entries || packages !== found.packages || files !== found.files) {
      throw refused(file, "it has not as much in it as it says");
    }
  } finally {
    await source.close();
  }
}

async function requireMagic(source: FileSource, name: string): Promise<void> {
  if (source.size === 0) throw refused(name, "it is empty");
  const start = await source.take(Math.min(source.size, magic.length));
  if (magic.subarray(0, start.length).equals(start)) {
    if (start.length < magic.length) throw incomplete(name);
    return;
  }
  const other = new RegExp(`^${magicWord}([0-9]+)`).exec(start.toString("latin1"))?.[1];
  if (other === undefined) throw refused(name, "it is no backup of a Troupe server");
  throw refused(name, `it is of format ${other}, and this version reads format ${backupFormat}`);
}

async function requireTrailer(source: FileSource, name: string): Promise<{ counts: BackupCounts; sha256: string }> {
  if (source.size < magic.length + trailerBytes) throw incomplete(name);
  source.moveTo(source.size - trailerBytes);
  const trailer = readTrailer(await source.take(trailerBytes));
  if (trailer === undefined || trailer.counts.bytes !== source.size) throw incomplete(name);
  return trailer;
}

async function requireHeader(source: FileSource, name: string): Promise<BackupHeader> {
  const { kind, content } = await nextFrame(source, name);
  const header = kind === "header" ? readHeader(content) : undefined;
  if (header === undefined) throw refused(name, "its header cannot be read");
  return header;
}

interface Frame {
  readonly kind: string;
  readonly content: Buffer;
}

async function nextFrame(source: FileSource, name: string): Promise<Frame> {
  const end = source.size - trailerBytes;
  const head = source.at + frameHeadBytes > end ? undefined : readFrameHead(await source.take(frameHeadBytes));
  if (head === undefined || source.at + head.bytes > end) throw refused(name, "one of its parts cannot be read");
  const { kind, bytes } = head;
  if ((kind === "header" || kind === "package") && bytes > backupHeaderBytesMax) {
    throw refused(name, `one of its parts has more than the ${backupHeaderBytesMax} bytes allowed`);
  }
  return { kind, content: await source.take(bytes) };
}

function partOf({ kind, content }: Frame, name: string): BackupPart {
  if (kind === "package") {
    const packed = readPackage(content);
    if (packed !== undefined) return { kind, packed };
  }
  if (kind === "file" || kind === "entry") {
    const parts = readNamed(content);
    if (parts !== undefined && parts[0].length > 0 && parts[0].length <= backupKeyBytesMax) {
      return kind === "entry" ? { kind, entry: parts } : { kind, path: parts[0].toString(), content: parts[1] };
    }
  }
  throw refused(name, "one of its parts cannot be read");
}

/** Reads on from where it is, in pieces: a file may be larger than memory. */
class FileSource {
  readonly size: number;
  at = 0;
  readonly #file: FileHandle;
  readonly #name: string;
  #held: Buffer = Buffer.alloc(0);

  static async open(path: string, name: string): Promise<FileSource> {
    let file: FileHandle | undefined;
    try {
      file = await open(path, "r");
      const found = await file.stat();
      if (!found.isFile()) throw new BackupError(backupExitCodes.data, `Cannot read "${name}": it is no file`);
      return new FileSource(file, found.size, name);
    } catch (error) {
      await file?.close();
      throw error instanceof BackupError ? error : notRead(name, error);
    }
  }

  private constructor(file: FileHandle, size: number, name: string) {
    this.#file = file;
    this.size = size;
    this.#name = name;
  }

  moveTo(at: number): void {
    this.at = at;
    this.#held = Buffer.alloc(0);
  }

  /** What it answers stays as it is. */
  async take(bytes: number): Promise<Buffer> {
    while (this.#held.length < bytes) await this.#readOn(bytes - this.#held.length);
    const taken = this.#held.subarray(0, bytes);
    this.#held = this.#held.subarray(bytes);
    this.at += bytes;
    return taken;
  }

  async #readOn(missing: number): Promise<void> {
    const more = Buffer.allocUnsafe(Math.max(missing, pieceBytes));
    const { bytesRead } = await this.#file
      .read(more, 0, more.length, this.at + this.#held.length)
      .catch((error: unknown) => {
        throw notRead(this.#name, error);
      });
    if (bytesRead === 0) throw incomplete(this.#name);
    this.#held = Buffer.concat([this.#held, more.subarray(0, bytesRead)]);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

export function refused(name: string, why: string): BackupError {
  return new BackupError(backupExitCodes.data, `Cannot use the backup "${name}": ${why}`);
}

function incomplete(name: string): BackupError {
  return refused(name, "it is incomplete: it was cut off, or something follows its end");
}

function notRead(name: string, cause: unknown): BackupError {
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  const exitCode = code === "ENOENT" ? backupExitCodes.noInput : backupExitCodes.io;
  return new BackupError(exitCode, `Cannot read the backup "${name}": ${code}`, cause);
}
