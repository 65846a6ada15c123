/** An executor with lower limits than the settings allow: those that its environment was configured with. */
import type { Executor } from "../ports/executor.ts";

export interface LowerLimits {
  readonly memoryMb?: number | undefined;
  readonly cpuMs?: number | undefined;
}

/** Limits are only ever lowered. */
export function withLowerLimits(executor: Executor, { memoryMb, cpuMs }: LowerLimits): Executor {
  const lower = (limit: number | null, configured: number | undefined): number | null =>
    configured === undefined ? limit : Math.min(limit ?? Number.POSITIVE_INFINITY, configured);
  return {
    name: executor.name,
    start: (run, events) => {
      const limits = {
        ...run.limits,
        memoryMb: lower(run.limits.memoryMb, memoryMb) ?? run.limits.memoryMb,
        cpuMs: lower(run.limits.cpuMs, cpuMs),
      };
      return executor.start({ ...run, limits }, events);
    },
    inspect: () => executor.inspect(),
    children: () => executor.children?.() ?? [],
    close: () => executor.close(),
  };
}
