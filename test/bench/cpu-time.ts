/** CPU time of a process and all it started, from /proc: fair between ways even while others use the same cores. */
import { readdirSync, readFileSync } from "node:fs";

/** Of /proc; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

interface Usage {
  readonly parent: number;
  /** Its own, and that of children that have ended and were waited for. */
  readonly ticks: number;
}

/** Milliseconds of user and system time, in steps of 10; NaN where there is no /proc. */
export function cpuMs(pid: number): number {
  let pids: number[];
  try {
    pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return Number.NaN;
  }
  const usages = new Map(pids.flatMap((each) => usageOf(each)));
  let ticks = 0;
  for (const [each, usage] of usages) if (descends(each, pid, usages)) ticks += usage.ticks;
  return (ticks * 1_000) / ticksPerSecond;
}

function usageOf(pid: number): [number, Usage][] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold spaces; fields are counted after it.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return [[pid, { parent: Number(fields[1]), ticks }]];
  } catch {
    return []; // it ended meanwhile
  }
}

function descends(pid: number, ancestor: number, usages: ReadonlyMap<number, Usage>): boolean {
  for (let each: number | undefined = pid; each !== undefined && each > 0; each = usages.get(each)?.parent) {
    if (each === ancestor) return true;
  }
  return false;
}
