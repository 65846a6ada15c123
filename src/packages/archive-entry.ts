/**
 * What an archive may hold: files and folders, told plainly. The header is judged as the reader gives it, after every way tar has to replace a
 * path or a size: the prefix field, pax records, GNU long names.
 */
import { pathProblem, withoutDot } from "./package-path.ts";
import { quoted, refuse } from "./refusal.ts";

/** Tar archives are made of these. */
export const blockBytes = 512;

/** What the tar reader gives; its own types leave some of it out. */
export interface TarHeader {
  readonly name: string;
  /** Null: not one of those it knows. */
  readonly type: string | null;
  /** Null: neither octal nor a positive or negative number of GNU's; the content then never ends. */
  readonly size: number | null;
  /** Where its content starts in the tar archive. */
  readonly byteOffset: number;
  /** Records of the pax header before it, and of a global one before that. */
  readonly pax: Readonly<Record<string, string>> | null;
}

export interface ArchiveEntry {
  readonly kind: "file" | "folder";
  /** Passes `pathProblem`. */
  readonly path: string;
  /** Of the content that follows, to be believed: exactly as many bytes come, or reading fails. */
  readonly bytes: number;
}

/** Throws Failure invalid_request. */
export function checkedEntry({ name, type, size, pax }: TarHeader): ArchiveEntry {
  const shown = `Entry ${quoted(name)} of the archive`;
  if (type !== "file" && type !== "directory") {
    refuse(`${shown} is ${kindNames[type ?? ""] ?? "of a kind not known"}; only files and folders are allowed`);
  }
  if (size === null || !Number.isFinite(size) || size < 0) refuse(`${shown} has a size that is none`);
  requirePlainRecords(shown, Object.entries(pax ?? {}));
  const kind = type === "directory" ? "folder" : "file";
  // What follows a folder is read as the next entry by some and skipped by others.
  if (kind === "folder" && size !== 0) refuse(`${shown} is a folder with content`);
  const bare = withoutDot(name);
  if (kind === "folder" && bare === "" && name !== "") return { kind, path: bare, bytes: 0 };
  const path = kind === "folder" ? bare.replace(/\/$/, "") : bare;
  const problem = pathProblem(path);
  if (problem !== undefined) refuse(`${shown} ${problem}`);
  return { kind, path, bytes: size };
}

/** Sparse files are put together from pieces of their content; a size that others read differently moves what follows. */
function requirePlainRecords(shown: string, records: readonly (readonly [string, string])[]): void {
  for (const [key, value] of records) {
    if (key.startsWith("GNU.sparse")) refuse(`${shown} is a sparse file; only whole files are allowed`);
    if (key === "size" && !/^\d{1,15}$/.test(value)) refuse(`${shown} has the size ${quoted(value)}, which is none`);
  }
}

const kindNames: Readonly<Record<string, string>> = {
  link: "a hard link",
  symlink: "a symbolic link",
  "character-device": "a device",
  "block-device": "a device",
  fifo: "a pipe",
};

/** Where the content ends in the tar archive: it is filled up to whole blocks. */
export function contentEndOf({ byteOffset, size }: TarHeader): number {
  return byteOffset + Math.ceil((size ?? 0) / blockBytes) * blockBytes;
}
