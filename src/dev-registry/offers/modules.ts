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

export interface ModuleToPack extends ModuleDescription {
  readonly version: string;
  /** Of index.js, its main file. */
  readonly source: string;
  /** `>=0.1.0` when not given. */
  readonly engines?: string;
}

/** The range of servers the modules run in. */
const enginesDefault = ">=0.1.0";

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
  const content = moduleArchive({ ...module, version, source });
  return release({ version, ...moduleFile(module.id, version), content, engines: enginesDefault });
}

export function moduleFile(id: string, version: string): Pick<Release, "fileName" | "mediaType"> {
  return { fileName: `${id}-${version}.tgz`, mediaType: "application/gzip" };
}

/** The package as bytes: package.json, index.js and an icon. */
export function moduleArchive({ version, source, engines = enginesDefault, ...module }: ModuleToPack): Buffer {
  const { id, name, type, description } = module;
  const manifest = {
    name: `troupe-module-${id}`,
    version,
    description,
    license: "Apache-2.0",
    type: "module",
    exports: "./index.js",
    troupe: { id, name, type, description, engines, main: "index.js", icon: "icon.png" },
  };
  return packTgz([
    { path: "package/package.json", content: `${JSON.stringify(manifest, null, 2)}\n` },
    { path: "package/index.js", content: source },
    { path: "package/icon.png", content: pngIcon(id) },
  ]);
}
