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

/**
 * Resident memory of a process and of all that it has started: a sandbox is a process that waits for the one inside. Where the system does
 * not tell who started whom, of the process alone.
 */
export async function residentTreeKb(pid: number): Promise<number | undefined> {
  let sumKb = await residentKb(pid);
  if (sumKb === undefined) return undefined;
  const family = childrenOf(pid);
  for (let looked = 0; looked < Math.min(family.length, familyMax); looked += 1) {
    const child = family[looked] as number;
    sumKb += statusField(child, "VmRSS") ?? 0;
    family.push(...childrenOf(child));
  }
  return sumKb;
}

/** Processes looked at below one. */
const familyMax = 512;

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
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
