/** Child processes as the system sees them (Linux). */
import { readdirSync, readFileSync } from "node:fs";

/** All processes below `pid`, children of children too. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = parentOf(Number(entry));
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const below = (parent: number): number[] => (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

/** Those that run the executor's child program; the watchers beside them do not. */
export function executorChildren(pid: number): number[] {
  return descendants(pid).filter(
    (child) => /node\0.*portable\/child\/main/.test(procFile(child, "cmdline")) && !isShell(child),
  );
}

export function isAlive(pid: number): boolean {
  const state = /^State:\s+(\w)/m.exec(procFile(pid, "status"))?.[1];
  return state !== undefined && state !== "Z" && state !== "X";
}

export function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}

function isShell(pid: number): boolean {
  return procFile(pid, "comm").trim() === "sh";
}

function parentOf(pid: number): number | undefined {
  const found = /^PPid:\s+(\d+)/m.exec(procFile(pid, "status"));
  return found === null ? undefined : Number(found[1]);
}
