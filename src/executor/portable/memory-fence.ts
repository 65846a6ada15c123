/**
 * The memory limit that does not depend on the child's honesty: `ulimit -d` = the data size of an idle child that has loaded
 * everything, plus the memory of a run, plus slack. Measured once, from a first child without a limit. Where the system has no
 * /proc or no shell there is no such limit, and the pool polls resident memory instead.
 */
import { executorSlackMb, executorStartMs } from "../../limits.ts";
import type { Log } from "../../ports/log.ts";
import { ChildLink } from "./child-link.ts";
import { hasShell } from "./launch.ts";
import { dataKb } from "./memory-size.ts";

export interface MemoryFence {
  /** KiB for `ulimit -d`, or undefined: poll. */
  readonly dataKbMax: number | undefined;
}

export const memoryPollMs = 250;

/** Rejects when the child cannot be started: then no program could be run either. */
export async function memoryFence(memoryMbMax: number, log: Log): Promise<MemoryFence> {
  const idleKb = await measureIdle();
  if (hasShell && idleKb !== undefined) return { dataKbMax: idleKb + (memoryMbMax + executorSlackMb) * 1024 };
  log.warn("executor-memory-polled", "The memory of programs is polled: this system offers no data size limit");
  return { dataKbMax: undefined };
}

function measureIdle(): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    let idleKb: number | undefined;
    let ready = false;
    const link = new ChildLink(
      { dataKbMax: undefined, measure: true },
      {
        message() {
          ready = true;
          idleKb = link.pid === undefined ? undefined : dataKb(link.pid);
          link.dismiss();
        },
        gone({ lastWords, killedFor }) {
          clearTimeout(timer);
          if (ready) resolve(idleKb);
          else reject(new Error(`Cannot start an executor process: ${killedFor ?? lastWords.trim()}`));
        },
      },
    );
    const timer = setTimeout(() => link.kill("it was not ready in time"), executorStartMs);
  });
}
