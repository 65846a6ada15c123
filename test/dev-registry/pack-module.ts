/** A module's folder as an archive, the way `npm pack` makes one but without npm: for tests that publish what the scaffold wrote. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packTgz } from "../../src/dev-registry/offers/tar-writer.ts";
import { packedFiles } from "../../src/sdk/packed-files.ts";

/** The same files always make the same bytes. @throws Error when package.json cannot be read. */
export function packModule(folder: string): Buffer {
  return packTgz(
    packedFiles(folder).map((path) => ({ path: `package/${path}`, content: readFileSync(join(folder, path)) })),
  );
}
