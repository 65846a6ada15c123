/**
 * A backup, from the server's side and from that of whoever keeps it.
 *
 *   for await (const message of backupOf({ snapshots, packages, folder, … })) …   in the server: header, chunks, trailer
 *   await writeBackup(chunks, "/backups/monday.troupe")                           on the operator's machine: chunks → a proved file
 *
 * 1. It is the store at one moment: everything acknowledged before the call is in it, and nothing written later.
 * 2. Writers wait for nothing: the engine keeps the moment, and the event loop is free between stretches of some 256 KiB.
 * 3. The packages that the modules of that moment need are held until they are in it.
 * 4. A file gets its name when all of it is on disk and was read back and found whole. Until then it is `<name>.partial-<id>`, and goes
 *    with whatever ends the work but SIGKILL and a power cut.
 */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Failure, isFailure } from "../errors/failure.ts";
import type { Clock } from "../ports/clock.ts";
import type { BackupHeader, BackupMessage } from "../ports/maintenance.ts";
import type { SnapshotSource, StoreSnapshot } from "../ports/snapshot.ts";
import { BackupError, backupExitCodes } from "./backup-error.ts";
import { type BackupSummary, proveBackup } from "./backup-file.ts";
import type { HeldPackages } from "./held-packages.ts";
import { filesOf, type LookedAt, lookAt, type PackageName, packagesOf } from "./package-files.ts";
import { keyIdsOf } from "./sealed-values.ts";
import { entryFrames, fileFrameStart, headerFrame, magic, packageFrame, sealedChunks } from "./snapshot-format.ts";

export interface BackupOptions {
  readonly snapshots: SnapshotSource;
  readonly packages: Pick<HeldPackages, "hold">;
  /** Of the packages. */
  readonly folder: string;
  readonly serverVersion: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function* backupOf(options: BackupOptions): AsyncGenerator<BackupMessage, void, undefined> {
  // Before the moment is taken: what its modules need cannot go any more.
  const release = options.packages.hold();
  try {
    const takenAt = new Date(options.clock.now()).toISOString();
    const snapshot = await options.snapshots.snapshot();
    try {
      yield* messagesOf(snapshot, takenAt, options);
    } finally {
      await snapshot.close();
    }
  } finally {
    release();
  }
}

async function* messagesOf(
  snapshot: StoreSnapshot,
  takenAt: string,
  { folder, serverVersion, signal }: BackupOptions,
): AsyncGenerator<BackupMessage, void, undefined> {
  const { whole, leftOut } = await sortPackages(snapshot, folder, signal);
  const header: BackupHeader = {
    serverVersion,
    storeFormat: snapshot.format,
    epoch: snapshot.epoch,
    takenAt,
    secretsKeyIds: [...(await keyIdsOf(snapshot))],
    packages: whole.length,
    packagesLeftOut: leftOut,
  };
  yield { header };
  const counts = { entries: 0, packages: 0, files: 0, bytes: 0 };
  for await (const chunk of sealedChunks(pieces(header, snapshot, whole, counts), counts)) {
    signal.throwIfAborted();
    yield { chunk };
  }
  yield { trailer: counts };
}

type Whole = PackageName & Extract<LookedAt, { place: unknown }>;

async function sortPackages(snapshot: StoreSnapshot, folder: string, signal: AbortSignal) {
  const whole: Whole[] = [];
  const leftOut: { id: string; hash: string; reason: string }[] = [];
  for await (const name of packagesOf(snapshot)) {
    signal.throwIfAborted();
    const found = await lookAt(folder, name);
    if (found.problem === undefined) whole.push({ ...name, ...found });
    else leftOut.push({ ...name, reason: found.problem });
  }
  return { whole, leftOut };
}

async function* pieces(
  header: BackupHeader,
  snapshot: StoreSnapshot,
  packages: readonly Whole[],
  counts: { entries: number; packages: number; files: number },
): AsyncGenerator<Buffer, void, undefined> {
  yield magic;
  yield headerFrame(header);
  for (const { id, hash, place, seals } of packages) {
    yield packageFrame({ id, hash, files: seals.size + 1 });
    for await (const { path, bytes, content } of filesOf(place, seals)) {
      yield fileFrameStart(path, bytes);
      yield* unchanged(content, id);
      counts.files += 1;
    }
    counts.packages += 1;
  }
  for await (const entries of snapshot.stretches()) {
    yield entryFrames(entries);
    counts.entries += entries.length;
  }
}

async function* unchanged(content: AsyncIterable<Buffer>, moduleId: string): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* content;
  } catch (cause) {
    if (isFailure(cause)) throw cause;
    const message = `The package of module "${moduleId}" was changed while it was read: begin the backup again`;
    throw new Failure("unavailable", message, { cause });
  }
}

export interface WriteBackupOptions {
  /** Told after each chunk. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * @param chunks those of the messages, in order. Read no faster than the disk takes them.
 * @param file replaced if it is there, in one step and only by a whole backup. Its mode is 0600: it has everybody's data in it.
 * @throws BackupError; whatever `chunks` throws; the reason of `signal`. No file of that name is made then.
 */
export async function writeBackup(
  chunks: AsyncIterable<Uint8Array>,
  file: string,
  { onProgress, signal }: WriteBackupOptions = {},
): Promise<BackupSummary> {
  await requireFile(file);
  const partial = `${file}.partial-${randomUUID()}`;
  const handle = await open(partial, "wx", 0o600).catch((cause: unknown) => notMade(file, cause));
  // Whoever will not wait ends the process, and what is left to do then cannot wait either.
  const removeNow = (): void => rmSync(partial, { force: true });
  process.once("exit", removeNow);
  try {
    try {
      await fill(handle, chunks, file, onProgress);
    } finally {
      await handle.close();
    }
    const summary = await proveBackup(partial, file, signal);
    signal?.throwIfAborted();
    await rename(partial, file).catch((cause: unknown) => notMade(file, cause));
    await syncFolder(dirname(file));
    return summary;
  } finally {
    await rm(partial, { force: true });
    process.removeListener("exit", removeNow);
  }
}

/** Found out before everything was sent, not after. A rename would put the file in the place of a link or device. */
async function requireFile(file: string): Promise<void> {
  const found = await lstat(file).catch(() => undefined);
  if (found === undefined || found.isFile()) return;
  throw new BackupError(backupExitCodes.target, `Cannot make the file "${file}": what is there is no regular file`);
}

async function fill(
  handle: FileHandle,
  chunks: AsyncIterable<Uint8Array>,
  file: string,
  onProgress: WriteBackupOptions["onProgress"],
): Promise<void> {
  let bytes = 0;
  for await (const chunk of chunks) {
    await handle.writeFile(chunk).catch((cause: unknown) => notWritten(file, cause));
    bytes += chunk.length;
    onProgress?.(bytes);
  }
  await handle.sync().catch((cause: unknown) => notWritten(file, cause));
}

function notMade(file: string, cause: unknown): never {
  throw new BackupError(backupExitCodes.target, `Cannot make the file "${file}": ${reasonOf(cause)}`, cause);
}

function notWritten(file: string, cause: unknown): never {
  throw new BackupError(backupExitCodes.io, `Cannot write "${file}": ${reasonOf(cause)}`, cause);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
