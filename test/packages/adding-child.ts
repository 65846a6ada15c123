/** A process that adds the archive in the file named, and tells how it fared and how much larger the process became meanwhile, in MiB. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isFailure } from "../../src/errors/failure.ts";
import { openPackages } from "../../src/packages/packages.ts";
import { sha256 } from "./archive-maker.ts";
import { archive as warm, hash as warmHash } from "./modules.ts";

const [path = ""] = process.argv.slice(2);
const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const packages = openPackages({ folder: join(path, "../modules"), serverVersion: "1.4.2", log });
// The code is loaded and warm before anything is measured.
await packages.add(warm, warmHash);
const archive = readFileSync(path);
const hash = sha256(archive);
const before = process.memoryUsage.rss();
let peak = before;
const look = () => {
  peak = Math.max(peak, process.memoryUsage.rss());
};
const looking = setInterval(look, 5);
const outcome = await packages.add(archive, hash).then(
  () => "added",
  (error: unknown) => (isFailure(error) ? error.kind : String(error)),
);
clearInterval(looking);
look();
process.stdout.write(JSON.stringify({ outcome, grownMib: (peak - before) / 2 ** 20 }));
