/** Module packages as a backup has them: which ones the modules of a snapshot need, whether they are whole, and their files. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type ModuleState, moduleKind } from "../actors/module.ts";
import { isFailure } from "../errors/failure.ts";
import { type Place, placeOf } from "../packages/place.ts";
import { type FileSeals, readSeal, sealProblem } from "../packages/seal.ts";
import type { StoreSnapshot } from "../ports/snapshot.ts";
import { recordKey } from "../runtime/keys.ts";
import type { AnyKind } from "../runtime/kind.ts";
import { decodeRecord } from "../runtime/record.ts";
import { decodeRecord as decodeRevision } from "../store/record-text.ts";

export interface PackageName {
  readonly id: string;
  /** SHA-256 of the archive, lower-case hex. */
  readonly hash: string;
}

/** The packages that serve and those to go back to. Records that cannot be read need none. */
export async function* packagesOf(snapshot: StoreSnapshot): AsyncGenerator<PackageName, void, undefined> {
  for await (const entries of snapshot.stretches({ prefix: recordKey({ kind: moduleKind.name, key: "" }) })) {
    for (const [, value] of entries) yield* packagesOfModule(value.toString());
  }
}

function packagesOfModule(text: string): readonly PackageName[] {
  try {
    const { state } = decodeRecord(moduleKind as unknown as AnyKind, decodeRevision(text)?.value ?? "");
    return packagesNeeded(state as ModuleState);
  } catch {
    return [];
  }
}

export function packagesNeeded({ id, isBuiltin, hash, previous }: ModuleState): readonly PackageName[] {
  if (isBuiltin) return [];
  return [{ id, hash }, ...(previous === null ? [] : [{ id, hash: previous.hash }])];
}

export type LookedAt =
  | { readonly place: Place; readonly seals: FileSeals; readonly problem?: undefined }
  /** A sentence without a full stop. */
  | { readonly problem: string };

/** Reads every file of the package. */
export async function lookAt(folder: string, { id, hash }: PackageName): Promise<LookedAt> {
  try {
    const place = placeOf(folder, id, hash, "not_found");
    const seals = await readSeal(place.seal, hash);
    if (seals === undefined) return { problem: "It is gone, or its seal is" };
    const problem = await sealProblem(place.contents, seals);
    return problem === undefined ? { place, seals } : { problem: capitalized(problem) };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return { problem: isFailure(error) ? error.message : `It cannot be read: ${code ?? "unexpected error"}` };
  }
}

export interface PackedFile {
  /** `seal.json`, or below `package/`. */
  readonly path: string;
  readonly bytes: number;
  /** Throws when the file is not as it was sealed. */
  readonly content: AsyncIterable<Buffer>;
}

export async function* filesOf({ root, seal }: Place, seals: FileSeals): AsyncGenerator<PackedFile, void, undefined> {
  const sealBytes = await readWhole(seal);
  yield { path: "seal.json", bytes: sealBytes.length, content: single(sealBytes) };
  for (const [name, { bytes, sha256 }] of seals) {
    const path = `package/${name}`;
    yield { path, bytes, content: asSealed(join(root, path), bytes, sha256) };
  }
}

const pieceBytes = 256 * 1024;

async function* asSealed(path: string, bytes: number, sha256: string): AsyncGenerator<Buffer, void, undefined> {
  const digest = createHash("sha256");
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let left = bytes; left > 0; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(left, pieceBytes)));
      if (bytesRead === 0) break;
      left -= bytesRead;
      const piece = buffer.subarray(0, bytesRead);
      digest.update(piece);
      yield piece;
    }
  } finally {
    await file.close();
  }
  if (digest.digest("hex") !== sha256) throw new Error(`The file "${path}" was changed while it was read`);
}

async function readWhole(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function* single(content: Buffer): AsyncGenerator<Buffer, void, undefined> {
  yield content;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
