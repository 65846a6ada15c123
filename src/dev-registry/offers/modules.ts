/** The modules on offer, packed the way npm packs: everything in the folder `package`. */
import { csvModuleSource } from "./csv-module.ts";
import { type Offer, offer, type Release, release } from "./offer.ts";
import { pngIcon } from "./png-icon.ts";
import { packTgz } from "./tar-writer.ts";

export interface ModuleDescription {
  readonly id: string;
  readonly name: string;
  readonly type: "adapter" | "environment";
  readonly description: string;
}

/** The range of servers the modules run in. */
const engines = ">=0.1.0";

const csvTable: ModuleDescription = {
  id: "csv-table",
  name: "CSV tables",
  type: "adapter",
  description: "Turns a CSV table into tools that find and count its rows",
};

export const moduleOffers: readonly Offer[] = [
  offer({
    ...csvTable,
    latestVersion: "1.1.0",
    releases: [
      moduleRelease(csvTable, "1.0.0", csvModuleSource({ counts: false })),
      moduleRelease(csvTable, "1.1.0", csvModuleSource({ counts: true })),
      moduleRelease(csvTable, "2.0.0-beta.1", csvModuleSource({ counts: true })),
    ],
  }),
];

export function moduleRelease(module: ModuleDescription, version: string, source: string): Release {
  const manifest = {
    name: `troupe-module-${module.id}`,
    version,
    description: module.description,
    license: "Apache-2.0",
    type: "module",
    exports: "./index.js",
    troupe: { ...module, engines, main: "index.js", icon: "icon.png" },
  };
  const content = packTgz([
    { path: "package/package.json", content: `${JSON.stringify(manifest, null, 2)}\n` },
    { path: "package/index.js", content: source },
    { path: "package/icon.png", content: pngIcon(module.id) },
  ]);
  const fileName = `${module.id}-${version}.tgz`;
  return release({ version, fileName, mediaType: "application/gzip", content, engines });
}
