/** Peak memory of processes and which process started which, from /proc; NaN and nothing where there is none. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Most that the process ever held in memory, or since `forgetPeak`; MiB. */
export function peakMemoryMb(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(statusOf(pid)) ?? [];
  return Number(kilobytes ?? Number.NaN) / 1_024;
}

/** The peak begins anew, at what the process holds now. */
export function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // Not Linux, or it ended: the peak is then NaN or that of its whole life.
  }
}

export function childrenOf(parent: number): readonly number[] {
  return pids().filter((pid) => /^PPid:\s+(\d+)$/m.exec(statusOf(pid))?.[1] === String(parent));
}

/** Those it started, those they started, and so on. */
export function descendantsOf(ancestor: number): readonly number[] {
  return childrenOf(ancestor).flatMap((child) => [child, ...descendantsOf(child)]);
}

function pids(): readonly number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}
