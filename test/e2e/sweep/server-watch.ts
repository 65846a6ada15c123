/** Memory of a server and the module processes below it, looked at again and again while something goes on (Linux). */
import { descendants, procFile } from "../../executor/processes.ts";

export interface Seen {
  /** Resident memory of the server alone, MiB. */
  readonly rssMbBegin: number;
  readonly rssMbPeak: number;
  readonly rssMbEnd: number;
  readonly processesBegin: number;
  readonly processesPeak: number;
  readonly processesEnd: number;
}

export interface ServerWatch {
  /** What was seen until now, or until the first time it was called. */
  stop(): Seen;
}

const lookMs = 200;

export function watchServer(pid: number): ServerWatch {
  const rss = [residentMb(pid)];
  const processes = [moduleProcesses(pid)];
  const timer = setInterval(() => {
    rss.push(residentMb(pid));
    processes.push(moduleProcesses(pid));
  }, lookMs);
  return {
    stop() {
      clearInterval(timer);
      return {
        rssMbBegin: rss[0] ?? 0,
        rssMbPeak: Math.max(...rss),
        rssMbEnd: rss.at(-1) ?? 0,
        processesBegin: processes[0] ?? 0,
        processesPeak: Math.max(...processes),
        processesEnd: processes.at(-1) ?? 0,
      };
    },
  };
}

function residentMb(pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(procFile(pid, "status"))?.[1] ?? 0) / 1_024);
}

/** Without the shells and bubblewraps around them. */
function moduleProcesses(pid: number): number {
  const isModule = (child: number): boolean => {
    const [program = "", ...rest] = procFile(child, "cmdline").split("\0");
    return /(^|\/)node$/.test(program) && rest.some((argument) => /\/runner\/main\.[jt]s$/.test(argument));
  };
  return descendants(pid).filter(isModule).length;
}
