/** This package as it lies on disk, from sources (src/sdk) and built (dist/sdk) alike: the version modules are made for. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Absolute: the folder of package.json. */
export const troupeFolder = join(import.meta.dirname, "../..");

let version: string | undefined;

export function troupeVersion(): string {
  version ??= (JSON.parse(readFileSync(join(troupeFolder, "package.json"), "utf8")) as { version: string }).version;
  return version;
}
