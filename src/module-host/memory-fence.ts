/**
 * The memory limit that does not depend on the module: `ulimit -d` = the data size of an idle node process of the same kind, plus the
 * module's memory, plus slack. Measured once; undefined where the system has no such sizes, and then resident memory is polled.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { moduleMemoryMb, moduleMemorySlackMb } from "../limits.ts";
import { hasShell, nodeFlags } from "./launch.ts";

/** Loads the TypeScript parser too: a module may be written in it. */
const measuring = `
require("node:module").stripTypeScriptTypes?.("let a: number");
console.log(/^VmData:\\s+(\\d+) kB/m.exec(require("node:fs").readFileSync("/proc/self/status", "utf8"))[1]);
`;
const measureMs = 15_000;

export function dataKbMax(): Promise<number | undefined> {
  return new Promise((resolve) => {
    if (!hasShell) {
      resolve(undefined);
      return;
    }
    const args = [...nodeFlags, "--eval", measuring];
    execFile(process.execPath, args, { env: {}, cwd: "/", timeout: measureMs }, (error, text) => {
      const idleKb = Number(text);
      if (error !== null || !(idleKb > 0)) resolve(undefined);
      else resolve(idleKb + (moduleMemoryMb + moduleMemorySlackMb) * 1024);
    });
  });
}

/** Resident MiB of a process, from /proc, else from `ps`; undefined when it is gone or nobody can say. */
export function residentMb(pid: number): Promise<number | undefined> {
  try {
    const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    if (found !== null) return Promise.resolve(Number(found[1]) / 1024);
  } catch {
    // No /proc here, or the process is gone: `ps` knows which.
  }
  return new Promise((resolve) => {
    execFile("ps", ["-o", "rss=", "-p", String(pid)], { timeout: 1_000 }, (error, text) => {
      resolve(error === null && /^\s*\d+\s*$/.test(text) ? Number(text) / 1024 : undefined);
    });
  });
}
