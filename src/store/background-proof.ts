/**
 * Proves, while the store serves, the tables that were too much to prove before it opened. Damage found now is logged for the
 * operator, naming the file; what is whole goes on being served.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { tableProofPauseMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { isTableWhole } from "./table-file.ts";

export interface BackgroundProof {
  stop(): Promise<void>;
}

export interface BackgroundProofOptions {
  readonly folder: string;
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

export function proveInBackground({ folder, names, clock, log }: BackgroundProofOptions): BackgroundProof {
  let isStopped = false;
  let wake: (() => void) | undefined;

  const pause = () =>
    new Promise<void>((resolve) => {
      const cancel = clock.after(tableProofPauseMs, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });

  const prove = async () => {
    for (const name of names) {
      await pause();
      if (isStopped) return;
      const bytes = await readIfThere(join(folder, name));
      if (bytes === undefined || isTableWhole(bytes)) continue;
      log.error(
        "store-table-damaged",
        `The file "${name}" in "${folder}" is damaged. Stop the server and restore a backup`,
      );
    }
    if (names.length > 0) log.info("store-tables-proved", `All ${names.length} tables left at the start were read`);
  };
  const work = prove().catch((error: unknown) => {
    log.error("store-proof-failed", "The tables of the store could not be read", { error });
  });

  return {
    async stop() {
      isStopped = true;
      wake?.();
      await work;
    },
  };
}

/** Undefined once LevelDB has merged the table into another and removed it. */
async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
