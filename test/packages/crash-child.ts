/** A process that adds and removes the same package for ever, until somebody kills it. Tells when it has begun. */
import { openPackages } from "../../src/packages/packages.ts";
import { sha256 } from "./archive-maker.ts";
import { largeArchive } from "./modules.ts";

const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const packages = openPackages({ folder: process.argv[2] ?? "", serverVersion: "1.4.2", log });
const archive = largeArchive();
const hash = sha256(archive);
process.stdout.write("begun");
for (;;) {
  await packages.add(archive, hash);
  await packages.remove("csv-table", hash);
}
