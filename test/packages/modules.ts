/** Modules that are as they should be. */
import { file, sha256, tgz } from "./archive-maker.ts";

export const troupe = {
  id: "csv-table",
  name: "CSV tables",
  type: "adapter",
  description: "Turns tables into tools",
  engines: ">=1.0.0",
  main: "index.js",
} as const;

/** package.json of a module, with these members of `troupe` in place of the usual ones. */
export function manifest(changes: Readonly<Record<string, unknown>> = {}, version: unknown = "1.0.0"): string {
  return JSON.stringify({ name: "troupe-module", version, type: "module", troupe: { ...troupe, ...changes } });
}

const main = "export default 1;\n";
export const goodFiles: readonly Buffer[] = [file("package/package.json", manifest()), file("package/index.js", main)];
/** Of what they hold. */
export const goodBytes = Buffer.byteLength(manifest() + main);

export const icon = Buffer.from("not really a picture");

/** A module with everything: an icon, a folder. */
export const archive = tgz(
  file("package/package.json", manifest({ icon: "icon.png" })),
  file("package/index.js", "export default 1;\n"),
  file("package/lib/rows.js", "export const rows = [];\n"),
  file("package/icon.png", icon),
);
export const hash = sha256(archive);

/** A module as it should be, with these entries behind it. */
export function moduleWith(...entries: readonly Buffer[]): Buffer {
  return tgz(...goodFiles, ...entries);
}

/** Of many files, so that there is time to die in the middle. */
export function largeArchive(): Buffer {
  return moduleWith(...Array.from({ length: 300 }, (_, at) => file(`package/lib/${at}.js`, "x".repeat(2_000))));
}
