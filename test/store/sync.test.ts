/**
 * acknowledged means synced. The system calls of a real process are read: between any two acknowledgements its log was
 * written and then flushed to the disk.
 */
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./parts.ts";

const script = fileURLToPath(new URL("writer-child.ts", import.meta.url));
const commits = 40;

/** strace may be missing, or tracing forbidden. */
const canTrace = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;

describe.runIf(canTrace)("acknowledgements under strace (needs strace and the right to trace)", () => {
  it("each follows a write and an fdatasync of the log", { timeout: 60_000 }, async () => {
    const folder = await temporaryFolder();
    const trace = join(folder.path, "trace");
    const data = join(folder.path, "data");
    const calls = ["-f", "-y", "-e", "trace=write,fdatasync,fsync", "-s", "16", "-o", trace];
    const run = spawnSync("strace", [...calls, process.execPath, script, data, "1", String(commits)], {
      encoding: "utf8",
    });
    expect(run.status).toBe(0);
    const acknowledged = run.stdout.split("\n").filter((line) => line.startsWith("1-0-"));
    expect(acknowledged).toHaveLength(commits);

    const lines = (await readFile(trace, "utf8")).split("\n");
    let wrote = false;
    let synced = false;
    let seen = 0;
    for (const line of lines) {
      if (/write\(\d+<[^>]*\.log>/.test(line)) {
        wrote = true;
        synced = false;
      } else if (/fdatasync(\(| resumed).*= 0$/.test(line)) {
        synced = wrote;
      } else if (/write\(1<.*"1-0-\d+\\n"/.test(line)) {
        expect([line, wrote, synced]).toEqual([line, true, true]);
        seen += 1;
        wrote = false;
        synced = false;
      }
    }
    expect(seen).toBe(commits);
    await folder.remove();
  });
});
