/** Certificates and keys as files of one folder. A file appears complete or not at all, and replaces another only when that is asked for. */
import { randomUUID } from "node:crypto";
import { link, lstat, mkdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../errors/failure.ts";
import type { Pair } from "./certificate.ts";

export interface PairPaths {
  readonly cert: string;
  readonly key: string;
}

/** `ca` → `ca.crt` and `ca.key`. */
export function pairPaths(folder: string, name: string): PairPaths {
  return { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
}

export async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw unusable("read", path, error);
  }
}

export async function readPair(paths: PairPaths): Promise<Pair> {
  const [cert, key] = await Promise.all([readText(paths.cert), readText(paths.key)]);
  return { cert, key };
}

export interface PairToWrite {
  readonly paths: PairPaths;
  readonly pair: Pair;
}

/** All of them, or none of the new ones. Throws Failure already_exists when one is there and `replace` is false. */
export async function writePairs(folder: string, pairs: readonly PairToWrite[], replace: boolean): Promise<void> {
  await makeFolder(folder);
  const added: string[] = [];
  try {
    for (const { paths, pair } of pairs) {
      if (await writeText(paths.key, pair.key, 0o600, replace)) added.push(paths.key);
      if (await writeText(paths.cert, pair.cert, 0o644, replace)) added.push(paths.cert);
    }
  } catch (error) {
    await Promise.allSettled(added.map((path) => unlink(path)));
    throw error;
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unusable("make", folder, error);
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unusable("read", path, error);
  }
}

/** Resolves with false when it replaced a file. */
async function writeText(path: string, text: string, mode: number, replace: boolean): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode, flag: "wx", flush: true });
    // A link fails when the file is there already.
    const isNew = await link(draft, path).then(
      () => true,
      (error: unknown) => {
        if (replace && codeOf(error) === "EEXIST") return false;
        throw error;
      },
    );
    if (!isNew) await rename(draft, path);
    return isNew;
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw alreadyThere(path);
    throw unusable("write", path, error);
  } finally {
    await rm(draft, { force: true });
  }
}

export function alreadyThere(path: string): Failure {
  return new Failure("already_exists", `Cannot make "${path}": it is there already; --force replaces it`);
}

function unusable(verb: string, path: string, error: unknown): Failure {
  return new Failure("unavailable", `Cannot ${verb} "${path}": ${codeOf(error)}`, { cause: error });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
