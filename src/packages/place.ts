/** Where a package lies. Ids and hashes come from records, archives and requests, and become paths only here, after being judged. */
import { join } from "node:path";
import { Failure, type FailureKind } from "../errors/failure.ts";
import { moduleIdProblem } from "./manifest.ts";
import { quoted } from "./refusal.ts";

export interface Place {
  readonly id: string;
  /** SHA-256 of the archive, lower-case hex. */
  readonly hash: string;
  /** Of every package of this module. */
  readonly module: string;
  /** Of this one: `<module>/<hash>`. */
  readonly root: string;
  /** What was in the archive; the module's own folder. */
  readonly contents: string;
  readonly seal: string;
}

/** Throws Failure of this kind. */
export function placeOf(folder: string, id: string, hash: string, kind: FailureKind): Place {
  const problem = moduleIdProblem(id);
  if (problem !== undefined) throw new Failure(kind, `There is no module package ${quoted(id)}: an id ${problem}`);
  if (!isPackageHash(hash)) {
    throw new Failure(
      kind,
      `There is no package ${quoted(hash)} of module "${id}": that is not a SHA-256 in hexadecimal`,
    );
  }
  const module = join(folder, id);
  return { id, hash, module, ...partsOf(join(module, hash)) };
}

export function partsOf(root: string): Pick<Place, "root" | "contents" | "seal"> {
  return { root, contents: join(root, "package"), seal: join(root, "seal.json") };
}

/** Lower case only, as folders are named. */
export function isPackageHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
