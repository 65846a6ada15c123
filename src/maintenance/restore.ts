/**
 * A backup into an empty data folder, without a server.
 *
 *   const { header, counts } = await restore({ file: "/backups/monday.troupe", dataDir: "/var/lib/troupe" })
 *   const { header, counts } = await proveBackup("/backups/monday.troupe")        only looks (backup-file.ts)
 *
 * 1. The file is proved before anything is written; a folder with anything in it is refused. `lost+found` and `secrets.key` may be there:
 *    the one comes with a disk, and the other has to be put there by hand, before or after.
 * 2. Until the last step no server opens the folder: its store is marked as unfinished. When something goes wrong, what was made is removed.
 *    What a power cut or SIGKILL leaves is refused by servers and by `troupe verify`, and removed by the next restore.
 * 3. The epoch is higher than that of any server that wrote what is in the backup.
 * 4. Nothing in the file can lead out of the folder: ids, hashes and paths are judged as those of archives are.
 *
 * The secrets key is not in a backup. Keep `secrets.key`, or what SERVICE_SECRETS_KEY was, beside it: the header names the keys by their ids,
 * and a server with another key refuses to start.
 */
import { chmod, mkdir, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isFailure } from "../errors/failure.ts";
import { restoreBatchBytes } from "../limits.ts";
import { syncTree } from "../packages/durable.ts";
import { pathProblem } from "../packages/package-path.ts";
import { type Place, placeOf } from "../packages/place.ts";
import type { RawEntry } from "../ports/snapshot.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { formatCurrent, metaKeys } from "../store/meta.ts";
import { createStore, type NewStore, removeUnfinished } from "../store/offline-store.ts";
import { isUnfinished } from "../store/unfinished.ts";
import { BackupError, backupExitCodes } from "./backup-error.ts";
import { type BackupPart, type BackupSummary, proveBackup, readParts, refused } from "./backup-file.ts";
import { lookAt } from "./package-files.ts";

export interface RestoreOptions {
  readonly file: string;
  /** Made with mode 0700 where missing. */
  readonly dataDir: string;
  /** Told now and then; `of` is what there is in all. */
  readonly onProgress?: ((progress: { readonly entries: number; readonly of: number }) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Paths {
  readonly store: string;
  readonly modules: string;
}

const mayBeThere = new Set(["lost+found", "secrets.key"]);

/** Throws BackupError, StoreOpenError or the reason of `signal`; then nothing of the backup is in the folder. */
export async function restore({ file, dataDir, onProgress, signal }: RestoreOptions): Promise<BackupSummary> {
  const summary = await proveBackup(file, file, signal);
  const { storeFormat, epoch } = summary.header;
  if (storeFormat > formatCurrent) {
    const why = `its store is of format ${storeFormat}, newer than the ${formatCurrent} this version reads`;
    throw refused(file, `${why}. Restore it with the newer version`);
  }
  const folder = resolve(dataDir);
  const paths = { store: join(folder, "store"), modules: join(folder, "modules") };
  const madeFolder = await makeEmpty(folder, paths);
  const store = await createStore(paths.store);
  try {
    try {
      await fill(until(readParts(file), signal), store, paths.modules, file, (entries) =>
        onProgress?.({ entries, of: summary.counts.entries }),
      );
      signal?.throwIfAborted();
      await store.finish({ format: storeFormat, epoch: epoch + 1 });
    } finally {
      await store.close();
    }
    await syncTree(folder, []);
    await syncTree(dirname(folder), []);
    return summary;
  } catch (error) {
    await removeMade(paths);
    if (madeFolder !== undefined) await rm(madeFolder, { recursive: true, force: true });
    throw isOurs(error) || signal?.aborted === true ? error : notWritten(folder, error);
  }
}

/** The first folder that had to be made for it; undefined: none. */
async function makeEmpty(folder: string, paths: Paths): Promise<string | undefined> {
  try {
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    await removeCutOff(paths);
    const [stray] = (await readdir(folder)).filter((name) => !mayBeThere.has(name));
    if (stray === undefined) return made;
    const advice = "Restore into an empty folder";
    throw new BackupError(backupExitCodes.target, `Cannot restore into "${folder}": "${stray}" is there. ${advice}`);
  } catch (error) {
    throw isOurs(error) ? error : notWritten(folder, error);
  }
}

/** The store goes last: its mark says that the rest is of no use. */
async function removeMade({ store, modules }: Paths): Promise<void> {
  await rm(modules, { recursive: true, force: true });
  if (!(await removeUnfinished(store, systemClock))) await rm(store, { recursive: true, force: true });
}

/** Of a restore that ended without a chance to do so itself. */
async function removeCutOff(paths: Paths): Promise<void> {
  if (await isUnfinished(paths.store)) await removeMade(paths);
  // Cut off even before the mark; a folder with anything in it stays.
  await rmdir(paths.store).catch(() => undefined);
}

async function* until<Item>(items: AsyncIterable<Item>, signal: AbortSignal | undefined): AsyncGenerator<Item> {
  for await (const item of items) {
    signal?.throwIfAborted();
    yield item;
  }
}

async function fill(
  parts: AsyncIterable<BackupPart>,
  store: NewStore,
  modules: string,
  file: string,
  onEntries: (entries: number) => void,
): Promise<void> {
  const batch = new Batch(store, onEntries);
  let filling: PackageFilling | undefined;
  for await (const part of parts) {
    switch (part.kind) {
      case "header":
        break;
      case "package":
        await filling?.finish();
        filling = await PackageFilling.begin(modules, part.packed, file);
        break;
      case "file":
        if (filling === undefined) throw refused(file, "it has a file that belongs to no package");
        await filling.add(part.path, part.content);
        break;
      case "entry":
        if (metaKeys.has(part.entry[0].toString())) throw refused(file, "it has an entry that belongs to the store");
        await batch.add(part.entry);
        break;
    }
  }
  await filling?.finish();
  await batch.write();
}

/** Entries in pieces that neither the memory nor LevelDB minds. */
class Batch {
  readonly #store: NewStore;
  readonly #told: (entries: number) => void;
  #entries: RawEntry[] = [];
  #bytes = 0;
  #written = 0;

  constructor(store: NewStore, told: (entries: number) => void) {
    this.#store = store;
    this.#told = told;
  }

  async add(entry: RawEntry): Promise<void> {
    this.#entries.push(entry);
    this.#bytes += entry[0].length + entry[1].length;
    if (this.#bytes >= restoreBatchBytes) await this.write();
  }

  async write(): Promise<void> {
    await this.#store.add(this.#entries);
    this.#written += this.#entries.length;
    [this.#entries, this.#bytes] = [[], 0];
    this.#told(this.#written);
  }
}

/** One package into its place. Modes as when it was unpacked: 0644 and 0755, whatever the umask is. */
class PackageFilling {
  readonly #modules: string;
  readonly #place: Place;
  readonly #file: string;
  readonly #folders = new Set<string>();
  readonly #files: string[] = [];
  #left: number;

  static async begin(
    modules: string,
    { id, hash, files }: { readonly id: string; readonly hash: string; readonly files: number },
    file: string,
  ): Promise<PackageFilling> {
    const place = placeIn(modules, id, hash, file);
    await mkdir(modules, { mode: 0o700, recursive: true });
    await mkdir(place.contents, { recursive: true });
    await chmod(place.contents, 0o755);
    return new PackageFilling(modules, place, files, file);
  }

  private constructor(modules: string, place: Place, files: number, file: string) {
    this.#modules = modules;
    this.#place = place;
    this.#left = files;
    this.#file = file;
    this.#folders.add(place.contents);
  }

  async add(path: string, content: Buffer): Promise<void> {
    const inPackage = path.startsWith("package/") ? path.slice("package/".length) : undefined;
    const problem = inPackage === undefined ? undefined : pathProblem(inPackage);
    if (problem !== undefined || (inPackage === undefined && path !== "seal.json")) {
      throw refused(this.#file, `a file of module "${this.#place.id}" has a path that no package has`);
    }
    const target = join(this.#place.root, path);
    if (inPackage !== undefined) await this.#makeFolders(dirname(target));
    await writeFile(target, content, { flag: "wx", mode: 0o644 });
    await chmod(target, 0o644);
    this.#files.push(target);
    this.#left -= 1;
  }

  async finish(): Promise<void> {
    const { id, hash } = this.#place;
    const { problem } = await lookAt(this.#modules, { id, hash });
    if (problem !== undefined || this.#left !== 0) {
      throw refused(this.#file, `the package "${hash}" of module "${id}" in it is damaged`);
    }
    await syncTree(dirname(this.#modules), this.#files);
  }

  async #makeFolders(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    await this.#makeFolders(dirname(folder));
    await mkdir(folder);
    await chmod(folder, 0o755);
    this.#folders.add(folder);
  }
}

function placeIn(modules: string, id: string, hash: string, file: string): Place {
  try {
    return placeOf(modules, id, hash, "invalid_request");
  } catch (error) {
    throw isFailure(error) ? refused(file, error.message) : error;
  }
}

function isOurs(error: unknown): boolean {
  return error instanceof BackupError || (error instanceof Error && error.name === "StoreOpenError");
}

function notWritten(folder: string, cause: unknown): BackupError {
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  return new BackupError(backupExitCodes.io, `Cannot write into "${folder}": ${code}`, cause);
}
