/**
 * The tree that an archive is about to become, known before anything is written.
 *
 * 1. A path is named once, and no two differ only in case or in how their characters are composed: on some file systems the second would
 *    overwrite the first.
 * 2. A file is never the parent of anything.
 * 3. Files and folders together, those only implied by a path included, are at most `packageEntriesMax`.
 */
import { packageEntriesMax } from "../limits.ts";
import { quoted, refuse, refuseSize } from "./refusal.ts";

interface Place {
  readonly path: string;
  readonly kind: "file" | "folder";
}

export class PathTable {
  readonly #places = new Map<string, Place>();

  /** Folders to make before the file can be written, outermost first. Throws Failure. */
  addFile(path: string): readonly string[] {
    const folders = this.addFolder(parentOf(path));
    const known = this.#places.get(folded(path));
    if (known !== undefined) refuse(clash({ path, kind: "file" }, known));
    this.#put({ path, kind: "file" });
    return folders;
  }

  /** Folders to make, outermost first. Naming a folder again is harmless. Throws Failure. */
  addFolder(path: string): readonly string[] {
    if (path === "") return [];
    const known = this.#places.get(folded(path));
    if (known?.kind === "folder" && known.path === path) return [];
    const parents = this.addFolder(parentOf(path));
    if (known !== undefined) refuse(clash({ path, kind: "folder" }, known));
    this.#put({ path, kind: "folder" });
    return [...parents, path];
  }

  #put(place: Place): void {
    if (this.#places.size >= packageEntriesMax) {
      refuseSize(`The archive has more than the ${packageEntriesMax} files and folders allowed`);
    }
    this.#places.set(folded(place.path), place);
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Upper case last: it also makes one of letters that lower case keeps apart, such as the two small sigmas. */
function folded(path: string): string {
  return path.normalize("NFKC").toUpperCase();
}

function clash({ path, kind }: Place, known: Place): string {
  if (known.path !== path)
    return `Entry ${quoted(path)} of the archive differs from ${quoted(known.path)} only in spelling`;
  return `The archive has ${quoted(path)} ${kind === known.kind ? "twice" : "as a file and as a folder"}`;
}
