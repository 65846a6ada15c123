/**
 * Added means it survives a power cut. The system calls of a real process are read: everything in the package is on disk before it gets its
 * name, and the name before it is answered.
 */
import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sha256 } from "./archive-maker.ts";
import { moduleWith } from "./modules.ts";
import { openStage } from "./stage.ts";

const child = join(import.meta.dirname, "adding-child.ts");

/** strace may be missing, or tracing forbidden. */
const canTrace = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;

describe.runIf(canTrace)("adding under strace (needs strace and the right to trace)", () => {
  it("syncs every file and folder before the rename, and the folders around it after", async () => {
    const { outside, folder } = openStage();
    const archive = moduleWith();
    await writeFile(join(outside, "archive"), archive);
    const trace = join(outside, "trace");
    const calls = ["-f", "-y", "-e", "trace=fsync,rename", "-s", "4096", "-o", trace];
    expect(spawnSync("strace", [...calls, process.execPath, child, join(outside, "archive")]).status).toBe(0);
    const lines = (await readFile(trace, "utf8")).split("\n");
    const place = join(folder, "csv-table", sha256(archive));
    const named = lines.findIndex((line) => line.includes(`, "${place}")`));
    const made = /rename\("([^"]+)"/.exec(lines[named] ?? "")?.[1] ?? "";
    const before = syncedIn(lines.slice(0, named));
    for (const path of ["", "seal.json", "package", "package/package.json", "package/index.js"]) {
      expect(before).toContain(join(made, path));
    }
    expect(syncedIn(lines.slice(named))).toEqual([join(folder, "csv-table"), folder, outside]);
  });
});

function syncedIn(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => /fsync\(\d+<([^>]+)>/.exec(line)?.slice(1) ?? []);
}
