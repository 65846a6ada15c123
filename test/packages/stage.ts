/** A package folder within a folder that the test can see all of, and a log that remembers. */
import { mkdtempSync, rmSync } from "node:fs";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Failure } from "../../src/errors/failure.ts";
import { openPackages } from "../../src/packages/packages.ts";
import type { Log, LogFields } from "../../src/ports/log.ts";
import type { ModulePackage, Packages } from "../../src/ports/packages.ts";
import { sha256 } from "./archive-maker.ts";

export const serverVersion = "1.4.2";

export interface Stage {
  /** Around the package folder: what leaves that one lands here. */
  readonly outside: string;
  readonly folder: string;
  readonly packages: Packages;
  readonly events: readonly { readonly event: string; readonly fields: LogFields }[];
  /** With the digest it has. */
  add(archive: Uint8Array): Promise<ModulePackage>;
  /** The same folder, seen by another version of the server. */
  openAs(version: string): Packages;
}

export function openStage(): Stage {
  const outside = mkdtempSync(join(tmpdir(), "packages-"));
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  const events: { event: string; fields: LogFields }[] = [];
  const note = (event: string, _message: string, fields: LogFields = {}) => void events.push({ event, fields });
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const folder = join(outside, "modules");
  const openAs = (version: string) => openPackages({ folder, serverVersion: version, log });
  const packages = openAs(serverVersion);
  return { outside, folder, packages, events, openAs, add: (archive) => packages.add(archive, sha256(archive)) };
}

export async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => new Error("It was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof Failure) return error;
  throw error;
}

/** Everything below a folder: path, kind, mode and content. */
export async function treeOf(root: string): Promise<Readonly<Record<string, string>>> {
  // A file may be called `__proto__`.
  const tree: Record<string, string> = Object.create(null);
  for (const path of (await readdir(root, { recursive: true })).sort()) {
    const found = await lstat(join(root, path));
    const mode = (found.mode & 0o7777).toString(8);
    if (found.isDirectory()) tree[path] = `folder ${mode}`;
    else if (found.isFile()) tree[path] = `file ${mode} ${await readFile(join(root, path), "latin1")}`;
    else tree[path] = found.isSymbolicLink() ? `link ${await readlink(join(root, path))}` : "something else";
  }
  return tree;
}
