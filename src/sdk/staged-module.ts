/** A module as a server would have it after installing: the files that would be packed, in a folder of their own, and its manifest. */
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageUnpackedBytesMax } from "../limits.ts";
import { manifestPath, readManifest } from "../packages/manifest.ts";
import type { ModulePackage } from "../ports/packages.ts";
import { missingDependencies, packedFiles } from "./packed-files.ts";
import { troupeVersion } from "./troupe-package.ts";

export interface StagedModule {
  readonly modulePackage: ModulePackage;
  remove(): void;
}

/** @throws Error that says why a server would refuse the package. */
export function stageModule(source: string): StagedModule {
  const packageJson = readPackageJson(source);
  const paths = packedFiles(source);
  const files = new Map(paths.map((path) => [path, { bytes: statSync(join(source, path)).size }]));
  const { manifest } = readManifest(packageJson, files, troupeVersion());
  const bytes = [...files.values()].reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > packageUnpackedBytesMax) {
    throw new Error(`The package holds ${bytes} bytes, more than the ${packageUnpackedBytesMax} allowed`);
  }
  const missing = missingDependencies(JSON.parse(packageJson.toString()));
  if (missing.length > 0) {
    throw new Error(
      `package.json has dependencies that are not in the package, and a server installs none: ${missing.join(", ")}; ` +
        `name them in "bundleDependencies", or do without`,
    );
  }
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "troupe-module-")));
  const hash = createHash("sha256");
  for (const path of paths) {
    cpSync(join(source, path), join(folder, path));
    hash.update(`${path}\n`).update(readFileSync(join(folder, path)));
  }
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { modulePackage: { manifest, hash: hash.digest("hex"), folder }, remove };
}

function readPackageJson(source: string): Buffer {
  try {
    return readFileSync(join(source, manifestPath));
  } catch (error) {
    throw new Error(`There is no ${manifestPath} in "${source}"`, { cause: error });
  }
}
