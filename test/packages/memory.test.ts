/** What archives cost the server in memory, measured in a process of its own: the bombs, and the largest that are allowed. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { packageUnpackedBytesMax } from "../../src/limits.ts";
import { endMark, entry, file, flags, gzipBomb, tgz } from "./archive-maker.ts";
import { goodBytes, goodFiles, moduleWith } from "./modules.ts";
import { openStage } from "./stage.ts";

const child = join(import.meta.dirname, "adding-child.ts");
const grownMibMax = 100;
const tar = Buffer.concat([...goodFiles, endMark]);
const largest = packageUnpackedBytesMax - goodBytes;
const noise = randomBytes(9 * 2 ** 20);

it.each<[title: string, archive: () => Buffer, outcome: string]>([
  ["a file of 1 GiB", () => gzipBomb(entry({ name: "package/x", size: 2 ** 30 }), 1024), "too_large"],
  ["1 GiB behind the end", () => gzipBomb(tar, 1024), "too_large"],
  [
    "a name of 1 GiB",
    () => gzipBomb(entry({ name: "x", flag: flags.gnuLongName, size: 2 ** 30 }), 1024),
    "invalid_request",
  ],
  [
    "pax records of 1 GiB",
    () => gzipBomb(entry({ name: "x", flag: flags.pax, size: 2 ** 30 }), 1024),
    "invalid_request",
  ],
  ["1 GiB of no tar", () => gzipBomb(Buffer.alloc(512, "x"), 1024), "invalid_request"],
  ["one file as large as may be", () => moduleWith(file("package/x", Buffer.alloc(largest))), "added"],
  ["an archive as large as may be", () => moduleWith(file("package/x", noise)), "added"],
  [
    "a thousand files",
    () => tgz(...goodFiles, ...Array.from({ length: 1_000 }, (_, at) => file(`package/${at}`, Buffer.alloc(40_000)))),
    "added",
  ],
])("%s takes less than 100 MiB of memory", async (_title, archive, outcome) => {
  const { outside } = openStage();
  writeFileSync(join(outside, "archive"), archive());
  const { stdout } = await promisify(execFile)(process.execPath, [child, join(outside, "archive")]);
  const told = JSON.parse(stdout);
  expect(told).toMatchObject({ outcome });
  expect(told.grownMib).toBeLessThan(grownMibMax);
});
