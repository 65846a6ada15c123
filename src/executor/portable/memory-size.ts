/** Sizes of a process as the system tells them, in KiB; undefined where it does not. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";

/** Private writable memory, what `ulimit -d` counts. */
export function dataKb(pid: number): number | undefined {
  return statusField(pid, "VmData");
}

/** Resident memory: from /proc, else from `ps`. */
export async function residentKb(pid: number): Promise<number | undefined> {
  return statusField(pid, "VmRSS") ?? (await askPs(pid));
}

function statusField(pid: number, field: string): number | undefined {
  try {
    const found = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}

function askPs(pid: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    execFile("ps", ["-o", "rss=", "-p", String(pid)], { timeout: 1_000 }, (error, text) => {
      resolve(error === null && /^\s*\d+\s*$/.test(text) ? Number(text) : undefined);
    });
  });
}
