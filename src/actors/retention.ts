/**
 * Deletes finished processes older than the retention, in the background. The actor decides (it may have been run again since);
 * this only walks the oldest entries of its `finished` index.
 */
import { retentionPageMax, retentionSweepMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Actors } from "../runtime/actors.ts";
import type { ProcessMessage, ProcessState } from "./process.ts";

export interface RetentionOptions {
  readonly processes: Actors<ProcessState, ProcessMessage>;
  readonly clock: Clock;
  readonly log: Log;
  /** null keeps everything. */
  readonly keepMs: number | null;
}

/** The answer stops it. */
export function startRetention({ processes, clock, log, keepMs }: RetentionOptions): () => void {
  if (keepMs === null) return () => {};
  let stopped = false;
  let cancel: (() => void) | undefined;

  const sweep = async (): Promise<void> => {
    let more = false;
    try {
      more = await deleteOldest(processes, clock.now() - keepMs);
    } catch (error) {
      log.warn("retention-failed", "Old processes could not be deleted; the next sweep tries again", { error });
    }
    if (!stopped) cancel = clock.after(more ? 0 : retentionSweepMs, () => void sweep());
  };

  cancel = clock.after(retentionSweepMs, () => void sweep());
  return () => {
    stopped = true;
    cancel?.();
  };
}

/** One page, oldest first. True when a whole page was old: there may be more. */
async function deleteOldest(
  processes: Actors<ProcessState, ProcessMessage>,
  completedBefore: number,
): Promise<boolean> {
  const { items, next } = await processes.list("finished", undefined, retentionPageMax);
  const old = items.filter(({ state }) => state.completedAt !== null && state.completedAt < completedBefore);
  await Promise.all(old.map(({ key }) => processes.ask(key, { type: "expire", completedBefore })));
  return next !== undefined && old.length === items.length;
}
